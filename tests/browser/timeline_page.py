"""The timeline in a browser: when all of its picture is there, and what it tells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import FloatRect, Page

import selftime

DRAWN: Final = """() =>
  document.querySelector(".timeline-stage")?.getAttribute("aria-busy") === "false"
  && performance.getEntriesByName("timeline whole").length > 0"""


def opened_timeline(
    opened: Callable[..., Page], address: str, query: str = "", **options: Any
) -> Page:
    page = opened(f"{address}#/timeline{query}", **options)
    settled(page)
    return page


def settled(page: Page) -> None:
    for _ in range(1500):
        if page.evaluate(DRAWN):
            return
        page.wait_for_timeout(20)
    pytest.fail("the picture did not come")


def canvas(page: Page) -> FloatRect:
    box = page.locator(".timeline-stage canvas").bounding_box()
    assert box is not None
    return box


def words(page: Page, after: dict[str, str] | None = None) -> dict[str, str]:
    """What the address holds of the timeline's state, once it no longer changes, or did."""
    known: str | None = None
    for _ in range(60):
        query = urlsplit(urlsplit(page.url).fragment).query
        found = {name: values[0] for name, values in parse_qs(query).items()}
        if query == known and found != after:
            return found
        known = query
        page.wait_for_timeout(600)
    pytest.fail("the address did not come to rest")


def told(page: Page) -> dict[str, str]:
    """The facts that stand beside the chosen slice."""
    page.locator(".timeline-links, .timeline-column").first.wait_for()
    pairs: list[tuple[str, str]] = page.locator(".timeline-details dl > div").evaluate_all(
        "rows => rows.map(row => [row.children[0].innerText, row.children[1].innerText.trim()])"
    )
    return dict(pairs)


def heading(page: Page) -> str:
    return page.locator(".timeline-details h2").inner_text()


def id_of(path: Path, name: str, number: int = 0) -> int:
    trace = selftime.load(path)
    assert isinstance(trace, selftime.Trace)
    found = trace.view("matches", text=name, by="slice")
    return int(found.filter(found["name"].cast(str) == name)["id"][number])
