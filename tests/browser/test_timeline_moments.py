"""From gap to gap, wait to wait and slow step to slow step in the timeline."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect
from tests.browser.timeline_page import heading, opened_timeline, settled, words


def test_the_keys_go_to_gaps_waits_and_slow_steps_and_tell_why(
    opened: Callable[..., Page],
    served: Callable[..., str],
    real: Callable[[str], Path],
    screenshot: Callable[[Page, str], None],
) -> None:
    page = opened_timeline(opened, served(real("v100-2021-resnet50-workers4.pt.trace")))
    note = page.locator(".timeline-moment")
    page.keyboard.press("x")
    expect(note).to_contain_text("Slow step 1 of 1")
    expect(note).to_contain_text(
        "step 9 takes 38.3 ms more than the median, most in operators of the host."
    )
    screenshot(page, "timeline-slow-step")
    held = words(page)
    assert held["at"] == "slow.559207000"
    page.reload()
    settled(page)
    expect(note).to_contain_text("step 9 takes")
    assert words(page) == held

    page.keyboard.press("x")
    expect(note).to_have_text("There is no later slow step.all\u00d7")
    page.keyboard.press("i")
    expect(note).to_contain_text("Gap of the device")
    expect(note).to_contain_text("idle: ")
    gap = words(page, held)["at"]
    page.keyboard.press("Shift+I")
    expect(note).to_contain_text("of the 200 longest")
    page.get_by_role("button", name="Next gap of the device").click()
    page.wait_for_url(f"**at={gap}*")
    page.get_by_label("Jump to").select_option("wait of the host")
    page.get_by_role("button", name="Previous wait of the host").click()
    expect(note).to_contain_text("waiting for a copy to the device")
    assert heading(page) == "cudaMemcpyAsync"
    page.keyboard.press("Escape")
    expect(note).to_have_count(0)
    page.wait_for_url(lambda url: "at=" not in url)
