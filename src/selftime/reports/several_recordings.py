"""Writes a comparison of three recordings and more as text or JSON."""

import json
from textwrap import fill
from typing import Final

from rich.table import Table
from rich.text import Text

from selftime.compare.several_recordings import MEASURES_TABLE, SeveralComparison
from selftime.reports.measures import measure_value_text
from selftime.reports.plain import plain
from selftime.reports.tables.tabular import column_description_data, nan_and_infinity_as_null
from selftime.reports.terminal import render_as_text
from selftime.units import share_text

FORMAT: Final = "selftime.comparisons/1"
"""Name and version of the JSON form of a comparison of several recordings."""
_DRIFT_SENTENCE: Final = (
    "A verdict holds how steps vary within two recordings, and no drift from one run to the next: "
    "`selftime check --times` compares runs, `selftime bench` times programs in turn."
)


def as_text(comparison: SeveralComparison, *, width: int = 80, colour: bool = False) -> str:
    """Returns the recordings by number, a row for each measure, and what differs besides."""
    names = [Text(f"{at}  {plain(one)}") for at, one in enumerate(comparison.recordings, 1)]
    table = Table.grid(padding=(0, 2, 0, 0))
    numbers = [str(at) for at in range(1, len(names) + 1)]
    table.add_row("measure", *numbers, style="dim")
    for rows in comparison.measures.partition_by("measure", maintain_order=True):
        cells = [
            _cell_text(rows["measure"][0], *row)
            for row in rows.select("value", "change", "verdict").rows()
        ]
        table.add_row(rows["measure"][0], *cells)
    if not comparison.measures.height:
        table.add_row("none: record with a schedule and `prof.step()`, or with `selftime run`")
    page = render_as_text(*names, Text(), table, width=width, colour=colour)
    sentences = [f"- {plain(note)}" for note in comparison.notes] + [_DRIFT_SENTENCE]
    return (
        page
        + "\n"
        + "".join(
            fill(one, width, subsequent_indent="  ", break_on_hyphens=False) + "\n"
            for one in sentences
        )
    )


def _cell_text(measure: str, value: float | None, change: float | None, verdict: str | None) -> str:
    text = measure_value_text(measure, value)
    if verdict is None:
        return text
    by = "" if change is None else f" {share_text(abs(change))}"
    return f"{text},{by} {verdict}"


def as_json(comparison: SeveralComparison) -> str:
    """Returns the comparison as JSON in the format `selftime.comparisons/1` (docs/formats.md)."""
    table = {
        "doc": MEASURES_TABLE.doc,
        "columns": [column_description_data(column) for column in MEASURES_TABLE.columns],
        "rows": nan_and_infinity_as_null(comparison.measures).to_dicts(),
    }
    document = {
        "format": FORMAT,
        "recordings": comparison.recordings,
        "notes": comparison.notes,
        "tables": {"measures": table},
    }
    return json.dumps(document, allow_nan=False) + "\n"
