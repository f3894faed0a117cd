"""Memory: the curve, who holds it, and tables that follow a chosen stretch."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest
from playwright.sync_api import Page, expect

from selftime.units import bytes_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
View = Callable[..., pl.DataFrame]
Real = Callable[[str], Path]

VIT = "h100-2025-vit"


def words(page: Page) -> dict[str, str]:
    """What the address says of the panel."""
    query = urlsplit(page.url).fragment.partition("?")[2]
    return {name: values[0] for name, values in parse_qs(query).items()}


def drag(page: Page, begin: int, end: int) -> None:
    """Choose a stretch of the first curve, from so many pixels to so many."""
    place = page.locator(".memory-canvas").first.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + begin, place["y"] + 40)
    page.mouse.down()
    page.mouse.move(place["x"] + end, place["y"] + 50, steps=4)
    page.mouse.up()


@pytest.mark.traces
def test_the_peak_and_its_holders_are_those_of_the_view(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    trace = real(VIT)
    held = view(trace, "memory_peak").filter(device_type="CUDA")

    page = opened(f"{served(real(VIT))}#/memory")
    settle(page, "memory")

    expect(page.locator("figcaption").first).to_contain_text(
        f"peak {bytes_text(sum(held['bytes']))}"
    )
    rows = page.locator(".holders tbody tr")
    expect(rows).to_have_count(held.height)
    expect(rows.nth(1)).to_contain_text(bytes_text(held["bytes"][1]))
    expect(rows.nth(1)).to_contain_text(held["operator"][1])
    rows.nth(1).get_by_role("button", name="where it was released").click()
    freed = view(trace, "memory_lifetimes", by="category+operator+line").filter(
        device_type="CUDA", operator=held["operator"][1], line=held["line"][1]
    )
    expect(page.locator(".memory-freed li")).to_have_count(min(freed.height, 12))
    expect(page.locator(".memory-freed li").first).to_contain_text(bytes_text(freed["bytes"][0]))
    page.get_by_role("radiogroup", name="By").get_by_role("radio", name="module").click()
    by_module = view(trace, "memory_peak", by="module").filter(device_type="CUDA")
    expect(page.locator(".holders tbody tr")).to_have_count(by_module.height)
    expect(page.locator(".holders")).to_contain_text("GELUActivation_1")

    stack = page.get_by_role("radiogroup", name="Stack")
    expect(stack.get_by_role("radio", checked=True)).to_have_text("category")
    stack.get_by_role("radio", name="operator").click()
    page.wait_for_url("**stack=operator**")
    groups = view(trace, "memory_holders", by="operator", device="cuda").unique("group")
    bands = page.get_by_label("What the bands are").get_by_role("listitem")
    expect(bands).to_have_count(groups.height + 1)  # and the instant
    expect(bands.last).to_contain_text("before the recording")
    page.get_by_role("button", name="peak").first.click()
    page.wait_for_url(f"**at={held['time'][0]}**")


@pytest.mark.traces
def test_a_chosen_stretch_filters_the_tables(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    trace = real(VIT)

    page = opened(f"{served(real(VIT))}#/memory?show=blocks")
    settle(page, "memory")
    drag(page, 300, 600)
    page.wait_for_url("**stretch=**")
    begin, end = map(int, words(page)["stretch"].split("-"))
    assert 0 < begin < end
    blocks = view(trace, "memory_events", device="cuda")
    inside = blocks.filter(pl.col("allocated").is_between(begin, end))
    assert 0 < inside.height < blocks.height
    expect(page.locator(".grid-counted")).to_contain_text(f"{inside.height} of {blocks.height}")

    page.get_by_role("radio", name="released").click()
    gone = blocks.filter(pl.col("released").is_between(begin, end))
    expect(page.locator(".grid-counted")).to_contain_text(f"{gone.height} of {blocks.height}")

    page.get_by_role("radio", name="operators").click()
    operators = view(trace, "memory_operators", device="cuda", start=begin, end=end)
    expect(page.locator(".grid-counted")).to_contain_text(f"{operators.height} rows")

    page.get_by_role("radio", name="who holds it").click()
    peak = view(trace, "memory_peak", device="cuda", start=begin, end=end)
    told = f"{bytes_text(sum(peak['bytes']))} CUDA 0, at the peak of the chosen stretch"
    expect(page.locator(".holders-when")).to_contain_text(told)

    page.get_by_role("radio", name="flame graph").click()
    expect(page.locator(".memory-summary")).to_contain_text(told)
    graph = page.get_by_role("application", name="Allocated memory by what allocated it")
    graph.press("ArrowDown")
    page.wait_for_url("**focus=**")
    expect(page.locator(".memory-node")).to_contain_text("of all")


@pytest.mark.traces
def test_an_instant_is_chosen_by_click_and_by_key(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    trace = real(VIT)

    page = opened(f"{served(real(VIT))}#/memory")
    settle(page, "memory")
    page.locator(".memory-canvas").first.click(position={"x": 500, "y": 60})
    page.wait_for_url("**at=**")
    held = view(trace, "memory_peak", device="cuda", at=int(words(page)["at"]))
    expect(page.locator(".holders-when")).to_contain_text(bytes_text(sum(held["bytes"])))
    page.locator(".memory-canvas").first.press("p")
    peak = view(trace, "memory_peak", device="cuda")["time"][0]
    page.wait_for_url(f"**at={peak}**")

    page.get_by_role("button", name="pin to compare").click()
    page.wait_for_url(f"**versus={peak}**")
    page.locator(".memory-canvas").first.click(position={"x": 500, "y": 60})
    page.wait_for_url("**at=**")
    change = bytes_text(
        sum(held["bytes"]) - sum(view(trace, "memory_peak", device="cuda")["bytes"])
    )
    expect(page.locator(".holders-when")).to_contain_text(change)
    page.get_by_label("compared with").select_option("nothing")
    expect(page.get_by_role("columnheader", name="Share")).to_be_visible()
    page.locator(".memory-canvas").first.press("p")
    page.wait_for_url(f"**at={peak}**")
    page.locator(".memory-canvas").first.press("ArrowRight")
    page.wait_for_function("peak => !location.hash.includes(`at=${peak}`)", arg=peak)
    assert int(words(page)["at"]) > peak


@pytest.mark.traces
def test_bands_are_hidden_and_the_curve_is_of_the_others(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    at_peak = view(real(VIT), "memory_peak", device="cuda", by="category")
    earlier = at_peak.filter(pl.col("category") == "before the recording")["bytes"][0]
    page = opened(f"{served(real(VIT))}#/memory")
    settle(page, "memory")
    caption = page.locator(".memory-chart figcaption").first
    page.get_by_role("button", name="before the recording", exact=True).click()
    expect(caption).to_contain_text(f"shown: peak {bytes_text(sum(at_peak['bytes']) - earlier)}")
    page.wait_for_url("**hide=**")
    assert json.loads(words(page)["hide"]) == ["before the recording"]
    page.get_by_role("button", name="only before the recording").click()
    expect(caption).to_contain_text(f"shown: peak {bytes_text(earlier)}")
    page.wait_for_url("**temporary**")
    page.reload()
    expect(caption).to_contain_text(f"shown: peak {bytes_text(earlier)}")
    page.get_by_role("button", name="show all", exact=True).click()
    expect(caption).not_to_contain_text("shown")


@pytest.mark.traces
def test_two_instants_are_compared_as_a_flame_graph(
    opened: Open, settle: Settle, served: Callable[..., str], real: Real, view: View
) -> None:
    peak, later = (
        sum(view(real(VIT), "memory_peak", device="cuda", **at)["bytes"])
        for at in ({}, {"at": 3_000_000})
    )
    page = opened(f"{served(real(VIT))}#/memory?show=flame&at=3000000&versus=peak")
    settle(page, "memory")
    summary = page.locator(".memory-summary")
    expect(summary).to_contain_text(f"{bytes_text(later - peak)} CUDA 0, from {bytes_text(peak)}")
    graph = page.locator(".memory-flame .icicle")
    graph.press("ArrowDown")
    expect(graph).to_have_attribute("aria-label", re.compile(r"MiB before, .*MiB after, -"))
    page.get_by_label("compared with").select_option("nothing")
    expect(graph).to_have_attribute("aria-label", re.compile("by what allocated it"))


def test_an_instant_of_another_recording_is_compared_with(
    opened: Open, settle: Settle, served: Callable[..., str], recorded: Mapping[str, Path]
) -> None:
    page = opened(f"{served(recorded['cuda'], recorded['rocm'])}#/memory")
    settle(page, "memory")
    page.get_by_label("beside").select_option(index=1)
    page.locator(".memory-beside .memory-canvas").first.click(position={"x": 120, "y": 60})
    page.get_by_role("button", name="compare with its memory").click()
    page.wait_for_url("**versus=**")
    versus = re.fullmatch(r"trace:(\w+)@(\d+)", words(page)["versus"])
    assert versus is not None
    assert versus[1] != words(page)["trace"]
    expect(page.locator(".holders-against option:checked")).to_contain_text(" ms of rocm")


def test_zoom_is_in_the_address_and_goes_again(
    address: Address, opened: Open, settle: Settle
) -> None:
    page = opened(f"{address('cuda')}#/memory")
    settle(page, "memory")
    page.locator(".memory-canvas").first.press("+")
    page.wait_for_url("**zoom=**")
    page.get_by_role("button", name="show all").click()
    page.wait_for_function("() => !location.hash.includes('zoom')")


def test_another_recording_is_shown_by_the_same_clock(
    opened: Open, settle: Settle, served: Callable[..., str], recorded: Mapping[str, Path]
) -> None:
    page = opened(f"{served(recorded['cuda'], recorded['cpu'])}#/memory")
    settle(page, "memory")
    page.get_by_label("beside").select_option(index=1)
    other = page.locator(".memory-beside")
    expect(other.locator("figcaption")).to_contain_text("peak")
    expect(other).not_to_contain_text("another time")  # both recorded the same moments
    other.locator(".memory-canvas").click(position={"x": 120, "y": 60})
    page.wait_for_url("**at=**")
    expect(page.locator(".holders-when")).to_contain_text("at the chosen instant")


def test_without_memory_the_flag_is_told(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    assert view(recorded["graphs"], "memory_curve").is_empty()

    page = opened(f"{address('graphs')}#/memory")
    settle(page, "memory")
    expect(page.locator(".empty")).to_contain_text("profile_memory=True")
