"""A table shows its main columns and one kind of rows; what the reader chooses is remembered."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
from playwright.sync_api import Page, expect

from selftime.units import time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Show = Callable[..., None]
View = Callable[..., pl.DataFrame]


def cells(page: Page, column: int) -> set[str]:
    found = page.locator(f".grid-body .grid-row [aria-colindex='{column}']").all_inner_texts()
    return set(found)


def test_the_main_columns_and_operators_alone_are_shown_at_first(
    address: Address, opened: Open, show: Show, settle: Callable[[Page, str], None]
) -> None:
    page = opened(address("cuda"), width=2400)
    show(page, "operators")
    columns = page.get_by_role("columnheader")
    kind = page.get_by_role("columnheader", name="Kind")
    assert columns.count() == 8
    expect(kind).to_have_count(0)  # all are of one
    assert cells(page, 1) >= {"aten::linear", "aten::addmm"}
    assert not cells(page, 1) & {"sgemm_128x64_nn", "ProfilerStep*"}

    page.get_by_role("radio", name="kernel", exact=True).click()
    settle(page, "operators")
    assert cells(page, 1) == {"sgemm_128x64_nn", "elementwise_kernel"}
    page.get_by_role("radio", name="all", exact=True).click()
    settle(page, "operators")
    expect(kind).to_have_count(1)
    assert columns.count() == 8
    assert cells(page, 2) > {"kernel", "operator"}

    show(page, "operators", "?find=kernel")  # a search is of all kinds
    expect(page.get_by_role("radio", name="all", exact=True)).to_be_checked()


def test_the_tooltip_of_a_number_is_exact_and_digits_stand_in_line(
    address: Address, opened: Open, show: Show, recorded: Mapping[str, Path], view: View
) -> None:
    table = view(recorded["cuda"], "operators")
    spent = table.filter(pl.col("name") == "aten::linear")["self_cpu_time_total"][0]
    page = opened(address("cuda"))
    show(page, "operators")
    cell = page.locator(f".grid-row .grid-amount[title='{spent:,} ns']").first
    assert cell.inner_text() == time_text(spent)
    units = page.locator(".grid-row [aria-colindex='3'] .grid-unit")
    assert len({round(box["x"]) for unit in units.all() if (box := unit.bounding_box())}) == 1


def test_the_chosen_columns_are_remembered(address: Address, opened: Open, show: Show) -> None:
    page = opened(address("cuda"))
    show(page, "operators")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="All", exact=True).click()
    whole = page.get_by_role("button", name="Columns 50 of 50")
    expect(whole).to_be_visible()

    show(page, "kernels")
    show(page, "operators")  # an address without columns
    assert "cols" not in page.url
    expect(whole).to_be_visible()
    whole.click()
    page.get_by_role("button", name="The main ones").click()
    expect(page.get_by_role("button", name="Columns 8 of 50")).to_be_visible()
