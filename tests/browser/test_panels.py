"""Every panel shows every kind of trace, without a complaint and without asking elsewhere."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page

MADE: Final = ("cpu", "cuda", "rocm", "graphs", "bare", "damaged")
REAL: Final = (
    "cpu-2024-gloo-rank34",
    "v100-2021-resnet50-workers0.pt.trace",
    "h100-2025-vit",
    "b200-2025-vllm-eager",
    "mi300-2025-resnet-ddp-recompute",
    "mi300-2026-vllm-decode-graph-replay",
)

WITHOUT_TRACE: Final = {"compare", "view"}
"""Panels that begin with what there is to choose, and read no trace yet."""

Address = Callable[[str], str]
Show = Callable[..., None]
Panels = Callable[[Page], list[str]]
Screenshot = Callable[[Page, str], None]
Open = Callable[..., Page]


def widest(page: Page) -> list[int]:
    """How much wider than their place the document and the panel are."""
    found: list[int] = page.evaluate(
        """() => [document.documentElement, document.querySelector("main")]
            .map(element => element.scrollWidth - element.clientWidth)"""
    )
    return found


def wrong(page: Page) -> list[str]:
    """What is amiss with the shown panel."""
    found: list[str] = page.locator("main .failed").all_inner_texts()
    found += page.locator("main .empty h2", has_text="cannot be shown").all_inner_texts()
    found += [f"{over} px too wide" for over in widest(page) if over > 0]
    return found


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.sweep(1)
def test_every_panel_shows_every_kind_of_recording(
    kind: str,
    address: Address,
    opened: Open,
    panels: Panels,
    show: Show,
) -> None:
    page = opened(address(kind))
    names = panels(page)
    assert len(names) > 10
    amiss = {}
    for name in names:
        show(page, name)
        if found := wrong(page):
            amiss[name] = found
    assert amiss == {}


@pytest.mark.traces
@pytest.mark.parametrize("trace", REAL)
@pytest.mark.sweep
def test_every_panel_shows_real_traces(
    trace: str,
    address: Address,
    opened: Open,
    panels: Panels,
    show: Show,
    screenshot: Screenshot,
) -> None:
    page = opened(address(trace))
    amiss = {}
    for name in panels(page):
        show(page, name)
        screenshot(page, f"{trace}/{name}")
        if found := wrong(page):
            amiss[name] = found
    assert amiss == {}


def test_two_traces_are_compared(
    recorded: Mapping[str, Path], served: Callable[..., str], opened: Open, show: Show
) -> None:
    page = opened(served(recorded["cuda"], recorded["rocm"]))
    page.wait_for_selector("main")
    show(page, "compare")
    assert wrong(page) == []
    assert "There is only one trace here" not in page.inner_text("main")


@pytest.mark.parametrize("width", [640, 1000])
@pytest.mark.sweep(1)
def test_a_narrow_window_is_not_too_narrow(
    width: int,
    address: Address,
    opened: Open,
    panels: Panels,
    show: Show,
    screenshot: Screenshot,
) -> None:
    page = opened(address("cuda"), width=width, height=700, color_scheme="dark")
    amiss = {}
    for name in panels(page):
        show(page, name)
        screenshot(page, f"narrow-{width}/{name}")
        if found := wrong(page):
            amiss[name] = found
    assert amiss == {}


def test_a_trace_that_cannot_be_read_says_why_in_every_panel(
    address: Address, opened: Open, panels: Panels, show: Show
) -> None:
    page = opened(address("empty"))
    shown = set(panels(page)) - WITHOUT_TRACE
    assert {"answer", "timeline"} <= shown
    for name in shown:
        show(page, name)
        assert "it holds no events: record at least one step" in page.inner_text("main"), name


def test_names_from_a_trace_do_nothing(
    address: Address,
    opened: Open,
    panels: Panels,
    show: Show,
) -> None:
    page = opened(address("hostile"))
    shown = ""
    for name in panels(page):
        show(page, name)
        shown += page.inner_text("body")
        assert wrong(page) == [], name
        assert page.evaluate("window.harmed") is None, name
        assert page.locator("main script, main img, main iframe").count() == 0, name
        assert page.locator('main a[href^="javascript:"]').count() == 0, name
    assert "<script>window.harmed = 1</script>" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e", "\u200b", "\u2028"}
