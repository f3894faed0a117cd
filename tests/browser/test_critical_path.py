"""The critical path as a chart: its lanes, a chosen segment, a stretch, and another step."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Page, expect

Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
View = Callable[..., pl.DataFrame]
Real = Callable[[str], Path]

TRACE = "mi300-2025-resnet-ddp-recompute"


@pytest.mark.traces
def test_the_path_is_drawn_and_a_segment_leads_to_the_timeline(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    band = view(real(TRACE), "critical_path_band")
    page = opened(f"{served(real(TRACE))}#/critical_path")
    settle(page, "critical_path")
    chart = page.locator(".path-canvas")
    expect(chart).to_have_attribute("data-segments", str(band.height))
    expect(chart).to_have_attribute("data-lanes", str(band["lane"].n_unique()))
    expect(page.locator(".path-legend")).to_contain_text("communicating 83.8 %")

    box = chart.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 30)
    longest = band.sort("time", descending=True).head(2)["name"].cast(pl.String)
    expect(page.locator(".path-name")).to_contain_text(longest[0][:12])
    expect(page.locator(".path-details")).to_contain_text("It began because")
    link = page.get_by_role("link", name="in the timeline").get_attribute("href")
    assert (link or "").startswith("#/timeline")


@pytest.mark.traces
def test_a_stretch_and_a_step_are_in_the_address(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    page = opened(f"{served(real(TRACE))}#/critical_path")
    settle(page, "critical_path")
    chart = page.locator(".path-canvas")
    before = chart.get_attribute("data-segments")
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 115, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 30)
    page.mouse.up()
    page.wait_for_url("**from=**")
    expect(chart).not_to_have_attribute("data-segments", before or "")
    page.get_by_role("button", name="show all").click()
    expect(chart).to_have_attribute("data-segments", before or "")

    page.get_by_label("Step", exact=True).select_option("all")
    page.wait_for_url("**step=all**")
    whole = view(real(TRACE), "critical_path_band", step="all")
    expect(chart).to_have_attribute("data-segments", str(whole.height))
    page.get_by_role("radio", name="off the path").click()
    off = view(real(TRACE), "off_path", step="all")
    expect(page.locator(".grid-counted")).to_contain_text(f"{off.height} rows")
