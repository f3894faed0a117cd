"""What the timeline shows beside a trace: results of queries as tracks, and a second trace."""

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import polars as pl
from playwright.sync_api import Page, expect
from tests.browser.timeline_page import canvas, heading, opened_timeline, settled, told, words
from typer.testing import CliRunner

from selftime.cli import app
from selftime.units import time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Screenshot = Callable[[Page, str], None]
Served = Callable[..., str]

KERNELS = """-- all kernels
select id, start, duration, name, category from slices where category = 'kernel'"""
NAMES = "select name from slices"


def titles(page: Page) -> list[str]:
    return page.locator(".timeline-title").all_inner_texts()


def middle_of(page: Page, title: str) -> tuple[float, float]:
    """The place on the canvas of the middle of what stands on a track's first row."""
    track = page.locator(".timeline-track", has_text=title).first.bounding_box()
    box = canvas(page)
    assert track is not None
    y = track["y"] + 9
    for at in range(1, 400):
        x = box["x"] + box["width"] * at / 400
        page.mouse.move(x, y)
        if page.locator(".timeline-tip-name").count():
            return x, y
    raise AssertionError(f"nothing stands on {title}")


def test_results_of_queries_are_tracks_until_they_are_closed(
    opened: Open, address: Address, screenshot: Screenshot
) -> None:
    page = opened(f"{address('cuda')}#/sql?q={quote(KERNELS)}")
    page.get_by_role("button", name="Show as a track").click()
    page.get_by_text("all kernels").first.wait_for()
    settled(page)
    assert titles(page)[:2] == ["Queries", "all kernels"]
    x, y = middle_of(page, "all kernels")
    page.mouse.click(x, y)
    facts = told(page)
    assert facts["category"] == "kernel"
    assert "slice" in facts  # the row has the id of one
    name = heading(page)
    page.reload()
    page.get_by_text("all kernels").first.wait_for()
    settled(page)
    page.locator(".timeline-links").wait_for()
    assert heading(page) == name
    screenshot(page, "timeline-query")

    page.get_by_role("button", name="Tracks", exact=True).click()
    page.get_by_role("link", name="Add a track from a query").click()
    editor = page.get_by_label("Query in SQL")
    editor.fill("select start, self as value from slices")
    editor.press("Control+Enter")
    page.get_by_role("button", name="Show as a track").click()
    page.get_by_text("select start, self as").first.wait_for()
    assert titles(page)[:3] == ["Queries", "all kernels", "select start, self as value from slices"]
    page.get_by_role("button", name="More of all kernels").click()
    page.get_by_role("menuitem", name="Close").click()
    expect(page.locator(".timeline-title", has_text="all kernels")).to_have_count(0)
    assert words(page)["track"] == "select start, self as value from slices"


def test_a_query_that_is_no_track_says_why_and_the_rest_is_shown(
    opened: Open, address: Address
) -> None:
    page = opened_timeline(opened, address("cuda"), f"?track={quote(NAMES)}")
    note = page.get_by_role("note").filter(has_text="is no track")
    expect(note).to_contain_text("the result has no column `start`")
    assert "Queries" not in titles(page)
    note.get_by_role("button", name="Close").click()
    expect(note).to_have_count(0)
    assert words(page) == {}


def test_a_second_trace_lies_below_the_first_and_selections_are_compared(
    opened: Open, served: Served, recorded: Mapping[str, Path], screenshot: Screenshot
) -> None:
    page = opened_timeline(opened, served(recorded["cuda"], recorded["rocm"]))
    page.get_by_role("button", name="Second trace").click()
    page.get_by_role("radio", name="rocm").click()
    expect(page.locator(".timeline-rank").first).to_have_text("cuda")
    settled(page)
    page.get_by_role("radio", name="offset").click()
    field = page.get_by_label("later by")
    field.fill("-2 ms")
    field.press("Enter")
    assert words(page)["align"] == "-2000000"
    page.get_by_role("radio", name="step", exact=True).click()
    page.keyboard.press("Escape")
    settled(page)
    kept = words(page)
    assert kept["align"].startswith("step.")
    screenshot(page, "timeline-second-trace")

    main = page.locator(".timeline-track", has_text="operators")
    assert main.count() >= 2
    for number in (0, main.count() - 1):
        box, board = main.nth(number).bounding_box(), canvas(page)
        assert box is not None
        page.mouse.click(board["x"] + board["width"] / 4, box["y"] + 9)
        page.locator(".timeline-details h2").wait_for()
        if number == 0:
            page.get_by_role("button", name="Compare", exact=True).click()
    compared = page.locator(".timeline-compared")
    expect(compared).to_contain_text("of cuda")
    page.reload()
    expect(compared).to_contain_text("of cuda")
    page.get_by_role("button", name="Compare no longer").click()
    assert "compare" not in words(page)


def test_a_marked_area_has_the_statistics_of_both_traces(
    opened: Open,
    served: Served,
    recorded: Mapping[str, Path],
    view: Callable[..., pl.DataFrame],
    screenshot: Screenshot,
) -> None:
    page = opened_timeline(opened, served(recorded["cuda"], recorded["rocm"]))
    page.get_by_role("button", name="Second trace").click()
    page.get_by_role("radio", name="rocm").click()
    expect(page.locator(".timeline-rank").first).to_have_text("cuda")
    settled(page)
    other = words(page)["beside"]
    show = f"?beside={quote(other)}&align=-50000&area=0-900000"
    page.evaluate("hash => { location.hash = hash }", f"#/timeline{show}")
    pane = page.get_by_label("Statistics of the marked area")
    rows = pane.locator("tbody tr")
    expect(rows.first).to_contain_text("all")
    heads = pane.locator("thead th").all_inner_texts()
    assert heads == ["what", "cuda", "rocm", "difference", "count cuda", "count rocm"]
    texts = {row.split("\t")[0].split()[0]: row.split("\t")[1:] for row in rows.all_inner_texts()}
    programs = {"tracks": "host,python,device,other"}
    first = view(recorded["cuda"], "selection", start=0, end=900_000, **programs)
    second = view(recorded["rocm"], "selection", start=50_000, end=950_000, **programs)
    for name in ("all", "aten::addmm", "elementwise_kernel"):
        told = [table.filter(table["what"] == name).row(0, named=True) for table in (first, second)]
        times = [one["self"] for one in told]
        assert texts[name][:2] == [time_text(time) for time in times]
        assert texts[name][3:] == [str(one["count"]) for one in told]
    assert texts["cudaLaunchKernel"][1] == "-"
    assert texts["hipLaunchKernel"][0] == "-"
    screenshot(page, "timeline-area-of-both")

    pane.get_by_role("button", name="count", exact=True).click()
    assert pane.locator("thead th").all_inner_texts() == ["what", "cuda", "rocm", "difference"]
    pane.get_by_role("button", name="rocm", exact=True).click()
    expect(pane.locator("thead th").nth(1)).to_have_text("self")
    expect(pane).not_to_contain_text("cudaLaunchKernel")


def test_a_report_of_two_traces_has_both_timelines(
    opened: Open, recorded: Mapping[str, Path], tmp_path: Path, screenshot: Screenshot
) -> None:
    file = tmp_path / "both.html"
    traces = [str(recorded["cuda"]), str(recorded["rocm"])]
    done = CliRunner().invoke(app, ["compare", *traces, "-o", str(file)])
    assert done.exit_code == 0, done.output
    page = opened(file.as_uri())
    page.get_by_role("link", name="timelines").click()
    expect(page.locator(".timeline-rank").first).to_contain_text("before")
    settled(page)
    middle_of(page, "stream 7")
    assert page.locator(".timeline-rank").last.inner_text().startswith("after")
    page.get_by_role("button", name="Second trace").click()
    expect(page.get_by_label("A second trace below this one")).not_to_contain_text("no other trace")
    page.get_by_role("radio", name="step", exact=True).click()
    assert words(page)["align"].startswith("step.")
    screenshot(page, "timeline-report-of-both")


def test_a_report_says_what_stands_beside_no_trace_of_it(
    opened: Open, recorded: Mapping[str, Path], tmp_path: Path, screenshot: Screenshot
) -> None:
    file = tmp_path / "one.html"
    done = CliRunner().invoke(app, ["report", str(recorded["cuda"]), "-o", str(file)])
    assert done.exit_code == 0, done.output
    asked = f"?beside=other.json&rows=name&track={quote(KERNELS)}"
    page = opened_timeline(opened, file.as_uri(), asked)
    notes = page.get_by_role("note")
    expect(notes).to_have_count(3)
    told = " ".join(notes.all_inner_texts())
    assert "this report does not carry it" in told
    assert "all kernels is no track: a report answers no queries" in told
    assert "rows of streams by depth" in told
    assert page.get_by_role("link", name="Edit the query").count() == 0
    middle_of(page, "stream 7")  # the trace itself is shown
    page.get_by_role("button", name="Second trace").click()
    box = page.get_by_label("A second trace below this one")
    expect(box).to_contain_text("This report carries no other trace")
    screenshot(page, "timeline-report-of-one")
    page.get_by_role("button", name="Tracks", exact=True).click()
    box = page.get_by_role("group", name="Tracks", exact=True)
    expect(box).to_contain_text("A report answers no queries")
