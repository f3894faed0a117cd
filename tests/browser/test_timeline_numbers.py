"""From a number of a finding to its slices in the timeline, and from a slice to its findings."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.timeline_page import heading, opened_timeline, settled, words

REAL_TRACE = "v100-2021-resnet50-workers0.pt.trace"
FINDING = "The loop loads data on the main thread for 33 % of each step"
COLOURS = """() => {
  const shown = document.querySelector(".timeline-stage canvas");
  const { width, height } = shown;
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(shown, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  let strong = 0;
  for (let at = 0; at < data.length; at += 4) {
    const parts = [data[at], data[at + 1], data[at + 2]];
    if (Math.max(...parts) - Math.min(...parts) > 70) strong += 1;
  }
  return strong;
}"""
"""How many pixels of the picture are of a strong colour: dimmed slices are not."""


@pytest.mark.traces
def test_a_number_shows_its_slices_and_a_slice_its_findings(
    opened: Callable[..., Page],
    served: Callable[..., str],
    real: Callable[[str], Path],
    screenshot: Callable[[Page, str], None],
) -> None:
    address = served(real(REAL_TRACE))
    page = opened(f"{address}#/answer")
    page.locator(".finding-saving a").first.click()
    settled(page)
    note = page.get_by_role("group", name="Highlighted slices")
    expect(note).to_contain_text(f"6 slices of the finding {FINDING} (saves 55.9 ms a step)")
    screenshot(page, "timeline-finding")

    for key, place in ((".", "4 of 6"), (",", "3 of 6"), (".", "4 of 6")):
        page.keyboard.press(key)
        expect(note).to_contain_text(place)
        words(page)  # the address has followed
    assert heading(page).startswith("enumerate(DataLoader)")
    part = page.locator(".part-of")
    expect(part).to_contain_text(f"Finding: {FINDING} (saves 55.9 ms a step)")
    expect(part).to_contain_text("Row of the account: waiting for data")
    held = words(page)
    page.reload()
    settled(page)
    expect(note).to_contain_text("6 slices")
    assert words(page) == held
    shown = page.evaluate(COLOURS)
    page.keyboard.press("Escape")  # the slice, then the number
    page.keyboard.press("Escape")
    expect(note).to_have_count(0)
    page.wait_for_url(lambda url: "of=" not in url)
    page.wait_for_timeout(100)
    assert page.evaluate(COLOURS) > 1.5 * shown

    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Panel, name").fill("slices loop loads data")
    page.keyboard.press("Enter")
    expect(note).to_contain_text("6 slices")
    note.get_by_role("link", name=FINDING).click()
    expect(page.locator('.finding[data-open="true"] h3')).to_have_text(FINDING)
    expect(page).to_have_url(re.compile("open=slow_input-"))


def test_an_address_of_no_number_says_so_and_can_be_left(
    opened: Callable[..., Page], served: Callable[..., str], real: Callable[[str], Path]
) -> None:
    page = opened_timeline(opened, served(real(REAL_TRACE)), "?of=account:none-000000")
    note = page.get_by_role("group", name="Highlighted slices")
    expect(note).to_contain_text("which is no finding and no row of this answer")
    note.get_by_role("button", name="Clear").click()
    expect(note).to_have_count(0)
