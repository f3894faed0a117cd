"""The menu of a column's head: the distribution of its values, which filters the table."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import polars as pl
import pytest
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from selftime.cli import app

Open = Callable[..., Page]
Show = Callable[..., None]
Real = Callable[[str], Path]
View = Callable[..., pl.DataFrame]

TRACE = "h100-2025-bert-small"


def open_menu(page: Page, column: str) -> None:
    page.get_by_role("columnheader", name=re.compile(f"^{column}")).first.hover()
    page.get_by_role("button", name=f"Filter {column}", exact=True).click()


def filters(page: Page) -> list[dict[str, str]]:
    query = parse_qs(urlparse(page.url).fragment.partition("?")[2])
    return list(json.loads(query["where"][0])) if "where" in query else []


def drag_over_the_left_half(page: Page) -> None:
    bars = page.locator(".spread-histogram")
    box = bars.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
    page.mouse.up()


@pytest.mark.traces
def test_a_histogram_filters_the_table_through_the_address(
    opened: Open, served: Callable[..., str], real: Real, view: View
) -> None:
    times = view(real(TRACE), "kernels")["total"]
    page = opened(f"{served(real(TRACE))}#/kernels")
    open_menu(page, "Total")
    spread = page.get_by_role("region", name="Distribution")
    expect(spread).to_contain_text(f"{times.len()} values")
    page.get_by_role("radio", name="linear").click()

    drag_over_the_left_half(page)
    page.wait_for_url("**where=**")
    low, high = filters(page)
    assert (low["op"], high["op"], low["column"]) == ("from", "to", "total")
    shown = page.locator(".grid-counted")
    expect(shown).to_contain_text("match")
    count = int(shown.inner_text().split(" of ")[0])
    middle = (times.min() + times.max()) / 2  # type: ignore[operator]  # whole numbers
    assert 0 < count < times.len()
    assert count >= times.filter(times <= middle).len()
    expect(page.get_by_role("status").filter(has_text="of them")).to_contain_text(f"{count} row")


@pytest.mark.traces
def test_texts_are_listed_by_how_often_they_are_there(
    opened: Open, served: Callable[..., str], real: Real, view: View
) -> None:
    classes = view(real(TRACE), "kernels")["class"]
    top = classes.value_counts().sort("count", "class", descending=[True, False]).row(0)
    page = opened(f"{served(real(TRACE))}#/kernels")
    open_menu(page, "Class")
    first = page.locator(".spread-values li").first
    expect(first).to_contain_text(str(top[0]))
    expect(first.locator(".number").first).to_have_text(str(top[1]))
    first.get_by_role("button").click()
    page.wait_for_url("**where=**")
    assert filters(page) == [{"column": "class", "op": "is", "value": top[0]}]
    expect(page.locator(".grid-counted")).to_contain_text(f"{top[1]} of {classes.len()} rows match")


@pytest.mark.traces
def test_a_report_has_the_distribution_too(
    opened: Open, show: Show, real: Real, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", str(real("a100-2023-alexnet")), "-o", str(file)])
    assert done.exit_code == 0, done.output
    page = opened(file.as_uri())
    show(page, "kernels")
    open_menu(page, "Total")
    page.get_by_role("radio", name="linear").click()
    drag_over_the_left_half(page)
    expect(page.locator(".grid-counted")).to_contain_text("match")
    show(page, "critical_path")  # its picture is of the same report
    expect(page.locator(".path-canvas")).to_have_attribute("data-segments", re.compile("[1-9]"))
    show(page, "modules", "?by=category")
    expect(page.locator(".tree-row:not(.tree-head)").first).to_be_visible()
