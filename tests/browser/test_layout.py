"""Nothing on the page overlaps or leaves the window, and numbers are as people write them."""

import re
from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Browser, Page
from tests.browser import page_layout

WIDTHS: Final = ((400, 800), (1024, 768), (1440, 900))
NOT_FOR_PEOPLE: Final = re.compile(
    r"\d us\b"  # micro has a sign
    r"|\b0 ns\b"
    r"|[1-9]\d*\.\d{3,} ?(?:us|\u00b5s|%|[KMG]i?B)"  # more than three digits
    r"|\d\.\d{4,} ?m?s\b"  # an instant has a microsecond at the least
    r"|\b\d{5,} ?(?:[num\u00b5]?s|B|[KMG]iB)\b"
    r"|\b(?:NaN|undefined|Infinity)\b"
)


@pytest.mark.parametrize(
    "name",
    [
        "cuda",
        pytest.param("h100-2025-vit", marks=[pytest.mark.traces, pytest.mark.sweep]),
        pytest.param(
            "mi300-2025-resnet-ddp-recompute", marks=[pytest.mark.traces, pytest.mark.sweep]
        ),
        pytest.param("cpu-2024-gloo-rank34", marks=[pytest.mark.traces, pytest.mark.sweep]),
    ],
)
def test_panels_keep_within_the_window_and_nothing_overlaps(
    name: str,
    address: Callable[[str], str],
    opened: Callable[..., Page],
    panels: Callable[[Page], list[str]],
    show: Callable[..., None],
) -> None:
    page = opened(address(name))
    found: dict[str, list[str]] = {}
    for panel in panels(page):
        show(page, panel)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate(
                "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))"
            )
            if told := page_layout.amiss(page):
                found[f"{panel} at {width}"] = told
        if told := list(filter(NOT_FOR_PEOPLE.search, page_layout.texts(page))):
            found[f"numbers of {panel}"] = told
    assert found == {}


def test_what_overlaps_or_leaves_the_window_is_found(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 300})
    page.set_content(
        """<main style="overflow: auto"><p style="height: 20px; margin: 0">below</p>
        <p style="margin: -20px 0 0">above</p>
        <p style="white-space: nowrap; width: 500px">far to the right</p>
        <div style="display: flex"><div style="width: 90px; overflow: hidden; white-space: nowrap">
        a name that is cut</div><b>beside it</b></div></main>"""
    )
    told = page_layout.amiss(page)
    page.close()
    assert [line.split('"')[0] for line in told] == [
        "main scrolls sideways by 116 px",
        "overlap: text ",
    ]
    assert '"below"' in told[1]
    assert '"above"' in told[1]
