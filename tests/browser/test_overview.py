"""Overview and steps: every number is that of the views, and leads to where it is explained."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import selftime
from selftime import units
from selftime.reports.labels import column_labels
from selftime.views import VIEWS

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]

TRACES = [
    "a100-2022-diff-control",
    "cpu-2024-gloo-rank34",
    "mi300-2025-resnet-ddp-recompute",
    "v100-2021-resnet50-workers0.pt.trace",
]


def rows(path: Path, view: str, **options: Any) -> list[dict[str, Any]]:
    trace = selftime.load(str(path))
    assert isinstance(trace, selftime.Trace)
    return list(VIEWS[view](trace, **options).iter_rows(named=True))


def table(page: Page, selector: str) -> list[list[str]]:
    found: list[list[str]] = page.locator(f"{selector} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    return found


@pytest.mark.traces
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.sweep(1)
def test_every_figure_is_that_of_the_view(
    trace: str,
    real: Callable[[str], Path],
    address: Address,
    opened: Open,
    settle: Settle,
    screenshot: Callable[[Page, str], None],
) -> None:
    page = opened(f"{address(trace)}#/overview")
    settle(page, "overview")
    shown = [" ".join(row) for row in table(page, ".overview table.figures")]
    told = " ".join(page.locator(".overview").inner_text().split())
    missing = []
    for row in rows(real(trace), "overview"):
        if row["text"] is None:  # nothing is known, so nothing is told
            continue
        if row["section"] == "execution" and row["value"] == 0:
            if any(line.startswith(f"{row['metric']} 0 ms") for line in shown):
                missing.append((row["section"], row["metric"], ["no row"]))
            continue
        name = row["metric"].partition(", ")[0]
        if row["section"] == "execution":
            value, share = (
                units.value_text(row["value"], "ns"),
                units.value_text(row["share"], "ratio"),
            )
            words = [value] if row["metric"] == "average step" else [value, share]
        else:
            words = [row["text"]]
        if row["metric"] == "bound by":
            definition = row["definition"].replace("`", "")
            found = f"Bound by {row['text']} {definition}" in told
        else:
            found = any(name in line and all(w in line for w in words) for line in shown)
        if not found:
            missing.append((row["section"], row["metric"], words))
    assert missing == []
    screenshot(page, f"overview-{trace}")


@pytest.mark.traces
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.sweep(1)
def test_idle_time_by_cause_is_that_of_the_view_and_leads_to_its_gaps(
    trace: str, real: Callable[[str], Path], address: Address, opened: Open, settle: Settle
) -> None:
    causes = rows(real(trace), "idle", by="cause", counted=True)
    labels = column_labels("idle", "cause")
    page = opened(f"{address(trace)}#/overview")
    settle(page, "overview")
    shown = table(page, ".idle-causes")
    assert [[row[0], row[-4]] for row in shown] == [
        [labels[row["cause"]].text, units.value_text(row["duration"], "ns")] for row in causes
    ]
    if causes:
        page.locator(".idle-causes tbody th a").first.click()
        settle(page, "idle")
        total = page.locator(".grid-totals")
        expect(total).to_contain_text(units.value_text(causes[0]["duration"], "ns"))


@pytest.mark.traces
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.sweep(1)
def test_the_table_beside_the_bars_is_the_view(
    trace: str, real: Callable[[str], Path], address: Address, opened: Open, settle: Settle
) -> None:
    steps = rows(real(trace), "steps")
    page = opened(f"{address(trace)}#/steps")
    settle(page, "steps")
    page.get_by_text("as a table").click()
    expect(page.locator(".chart-table tbody tr")).to_have_count(len(steps))
    shown = table(page, ".chart-table")
    assert [row[:5] for row in shown] == [
        [
            str(row["step"]),
            units.value_text(row["counted"], "flag"),
            *(units.value_text(row[time], "ns") for time in ("time", "host_time", "device_time")),
        ]
        for row in steps
    ]


def test_keys_walk_along_the_bars_and_open_a_step(
    address: Address, opened: Open, settle: Settle
) -> None:
    page = opened(f"{address('cuda')}#/steps")
    settle(page, "steps")
    page.get_by_role("img", name=re.compile("Time of each step")).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".chart-tip")).to_contain_text("Step 1")
    page.keyboard.press("Enter")
    settle(page, "timeline")
    expect(page).to_have_url(re.compile(r"#/timeline\?.*from=1000000&to="))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_bars_have_the_colours_of_the_page(
    scheme: str, address: Address, opened: Open, settle: Settle
) -> None:
    page = opened(f"{address('cuda')}#/steps", color_scheme=scheme)
    settle(page, "steps")
    page.wait_for_selector(".chart-canvas canvas")
    counts = page.evaluate(
        """() => {
          const probe = document.createElement("i");
          probe.style.color = "var(--kernel)";
          document.body.append(probe);
          const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
          const canvas = document.querySelector(".chart-canvas canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let found = 0;
          for (let at = 0; at < data.length; at += 4) {
            if (wanted.every((part, n) => data[at + n] === part)) found += 1;
          }
          return found;
        }"""
    )
    assert counts > 1000


@pytest.mark.traces
def test_steps_that_do_not_count_are_told_with_the_reason(
    real: Callable[[str], Path], address: Address, opened: Open, settle: Settle
) -> None:
    trace = TRACES[-1]
    first = rows(real(trace), "steps")[0]
    assert not first["counted"]
    page = opened(f"{address(trace)}#/overview")
    settle(page, "overview")
    reason = page.locator(".uncounted")
    expect(reason).to_contain_text(f"step {first['step']} does not count: {first['note']}")
    reason.get_by_role("link", name=f"step {first['step']}").click()
    settle(page, "timeline")
    expect(page).to_have_url(re.compile(f"from={first['start']}&to="))
