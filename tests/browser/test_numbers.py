"""The numbers on the page are those of the command line, in every table, and so are their sums."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page
from typer.testing import CliRunner

from selftime.cli import app
from selftime.units import value_text
from selftime.views import VIEWS

TRACES: Final = (
    "cpu-2024-gloo-rank34",
    "h100-2025-vit",
    "mi300-2026-vllm-decode-graph-replay",
)
LARGE: Final = {"occurrences", "timeline"}
"""As a whole these have a row for each slice; what the page shows of them is tested elsewhere."""

ROWS: Final = 10
WIDE: Final = 9000
"""The window's width in pixels: no column is out of sight."""

WORDS: Final = {"name", "text", "sentence"}
"""Units of columns that hold words in place of numbers."""

NOT_KNOWN: Final = "\u2013"

Table = dict[str, Any]


def printed(view: str, path: Path) -> Table:
    """The table as the command line prints it; without rows where the recording lacks them."""
    done = CliRunner().invoke(app, ["view", view, str(path), "--format", "json", "--rows", "0"])
    assert done.exit_code == 0, done.output
    table: Table = json.loads(done.stdout)
    return table


def cells(page: Page, selector: str) -> list[list[str]]:
    found: list[list[str]] = page.locator(selector).evaluate_all(
        """rows => rows
            .toSorted((one, other) => one.ariaRowIndex - other.ariaRowIndex)
            .map(row => [...row.querySelectorAll("[role=rowheader], [role=gridcell]")]
              .map(cell => cell.innerText))"""
    )
    return found


def written(value: Any, unit: Any) -> str:
    return NOT_KNOWN if value is None else value_text(value, unit)


def sum_of(rows: list[dict[str, Any]], column: dict[str, Any]) -> str:
    known = [value for row in rows if (value := row[column["name"]]) is not None]
    return written(sum(known) if known else None, column["unit"])


def differing(page: Page, table: Table) -> list[str]:
    """Numbers of the first rows, and sums, that differ from those of the command line."""
    columns, rows = table["columns"], table["rows"]
    found = []
    shown = cells(page, ".grid-body .grid-row")
    assert len(shown) >= min(len(rows), ROWS)
    for number, (row, texts) in enumerate(zip(rows[:ROWS], shown, strict=False)):
        for column, told in zip(columns, texts, strict=True):
            expected = written(row[column["name"]], column["unit"])
            if column["unit"] not in WORDS and told != expected:
                found.append(f"{column['name']}[{number}]: {told!r}, not {expected!r}")
    for texts in cells(page, ".grid-totals"):
        for column, told in list(zip(columns, texts, strict=True))[1:]:
            if told and told != (expected := sum_of(rows, column)):
                found.append(f"sum of {column['name']}: {told!r}, not {expected!r}")
    return found


@pytest.mark.traces
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.sweep(1)
def test_every_table_has_the_numbers_of_the_command_line(
    trace: str,
    real: Callable[[str], Path],
    address: Callable[[str], str],
    opened: Callable[..., Page],
    show: Callable[..., None],
) -> None:
    page = opened(address(trace), width=WIDE, height=900)
    amiss, compared = {}, 0
    for view in sorted(set(VIEWS) - LARGE):
        table = printed(view, real(trace))
        names = ",".join(column["name"] for column in table["columns"])
        show(page, "view", f"?{urlencode({'name': view, 'cols': names})}")
        if table["rows"] and (found := differing(page, table)):
            amiss[view] = found
        compared += bool(table["rows"])
    assert amiss == {}
    assert compared > 8
