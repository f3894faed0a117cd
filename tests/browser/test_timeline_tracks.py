"""The tracks of the timeline, as the reader arranges them."""

from collections.abc import Callable

from playwright.sync_api import Page, expect
from tests.browser.timeline_page import opened_timeline, settled, words

Address = Callable[[str], str]
Open = Callable[..., Page]
Screenshot = Callable[[Page, str], None]


def test_tracks_are_pinned_hidden_moved_grouped_and_filtered(
    opened: Open, address: Address, screenshot: Screenshot
) -> None:
    page = opened_timeline(opened, address("cuda"))
    names = page.locator(".timeline-title")
    usual = names.all_inner_texts()
    kernels = page.locator(".timeline-track", has_text="stream 7").filter(has_text="kernels")
    kernels.hover()
    kernels.get_by_title("Pin to the top").click()
    expect(names.first).to_have_text("Pinned")
    page.get_by_role("button", name="Counters", exact=True).focus()
    page.keyboard.press("Alt+ArrowDown")
    expect(page.get_by_role("button", name="Counters", exact=True)).to_be_focused()
    page.get_by_role("button", name="More of device 0 percent busy").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Hide")).to_be_focused()
    page.keyboard.press("Enter")
    expect(names.filter(has_text="device 0 busy")).to_have_count(0)
    held = words(page)
    assert set(held) == {"pin", "order", "hide"}
    arranged = names.all_inner_texts()
    assert arranged[:3] == ["Pinned", "stream 7", "python"]
    page.reload()
    settled(page)
    assert names.all_inner_texts() == arranged
    screenshot(page, "timeline-arranged")

    page.get_by_role("searchbox", name="Filter tracks").fill("alloc")
    expect(names).to_have_text(["Pinned", "stream 7", "Counters", "CUDA 0 allocated"])
    page.get_by_role("searchbox", name="Filter tracks").fill("")
    page.get_by_role("button", name="Tracks", exact=True).click()
    page.get_by_role("radio", name="kind").click()
    expect(names.filter(has_text="Kernels and copies")).to_have_count(0)  # pinned, it was all
    page.get_by_role("radio", name="by name").click()
    rows = page.locator(".timeline-row")
    expect(rows).to_contain_text(["elementwise_kernel", "sgemm_128x64_nn", "Memcpy HtoD"])
    assert words(page)["rows"] == "name"
    page.get_by_role("button", name="Show device 0 busy").click()
    expect(names.filter(has_text="device 0 busy")).to_be_visible()
    page.get_by_role("button", name="As at first").click()
    expect(names).to_have_text(usual)
    assert words(page) == {}
