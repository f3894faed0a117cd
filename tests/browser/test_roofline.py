"""The roofline: each operator with a model, at what it computes a second and for each byte."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from selftime.units import value_text


@pytest.mark.traces
def test_the_costliest_operator_stands_at_its_rates(
    real: Callable[[str], Path],
    address: Callable[[str], str],
    opened: Callable[..., Page],
    settle: Callable[[Page, str], None],
    view: Callable[..., pl.DataFrame],
) -> None:
    trace = "h100-2025-bert-small"
    own, bytes_ = pl.col("self_model_flops"), pl.col("self_model_bytes")
    modelled = view(real(trace), "operators").filter(own == pl.col("model_flops"), bytes_ > 0)
    first = modelled.sort("device_time_total", descending=True).row(0, named=True)
    flops, seconds = first["self_model_flops"], first["device_time_total"] / 1e9

    page = opened(f"{address(trace)}#/roofline")
    settle(page, "roofline")
    page.get_by_text("as a table").click()
    cells = page.locator(".chart-table tbody tr").first.locator("td")
    assert cells.nth(0).inner_text() == first["name"]
    assert cells.nth(3).inner_text() == value_text(flops / first["self_model_bytes"], "flops/byte")
    assert cells.nth(4).inner_text() == value_text(flops / seconds, "flops/s")

    chart = page.locator(".chart-canvas")
    chart.focus()
    page.keyboard.press("Home")
    expect(page.locator(".chart-tip")).to_contain_text(first["name"])
    page.keyboard.press("Enter")
    settle(page, "operators")
    expect(page.locator(".grid-body .grid-row")).to_have_count(1)
