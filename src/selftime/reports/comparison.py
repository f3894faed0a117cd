"""What changed between two recordings, for a terminal, for programs, and as a table."""

import json
from collections.abc import Iterator
from textwrap import fill
from typing import Any, Final

import polars as pl

from selftime import units
from selftime.compare import TABLES, Comparison
from selftime.reports.plain import plain
from selftime.reports.table import as_text as as_table
from selftime.reports.tabular import described, known
from selftime.schema import Column

__all__ = ["FORMAT", "as_json", "as_text"]

FORMAT: Final = "selftime.comparison/1"
"""The name and version of the JSON form."""

_SHOWN: Final = {
    "parts": ("part", "difference", "before", "after", "change", "verdict"),
    "tree": ("path", "difference", "before", "after", "verdict"),
    "kernels": ("what", "difference", "before", "after", "count_before", "count_after", "verdict"),
}
"""The columns that a terminal shows, in its order."""


def as_text(found: Comparison, *, width: int = 80, rows: int = 10, colour: bool = False) -> str:
    """The step before and after; in what the recordings differ; the greatest differences."""
    return "\n".join(_parts(found, width=width, rows=rows, colour=colour))


def _parts(found: Comparison, *, width: int, rows: int, colour: bool) -> Iterator[str]:
    yield "".join(_folded(sentence, width) for sentence in _head(found))
    if found.notes:
        yield "NOT ALIKE\n" + "".join(_folded(f"- {plain(note)}", width) for note in found.notes)
    of = "the device" if found.metric == "device" else "the host"
    titles = {
        "parts": "WHAT A STEP IS MADE OF, on average",
        "tree": f"MODULES AND OPERATORS, time of {of} a step that is their own",
        "kernels": "KERNELS AND COPIES, time of the device a step",
    }
    for name, title in titles.items():
        table = found.tables()[name]
        if table.height:
            columns = _columns(name)
            most = table.height if name == "parts" else rows or table.height
            told = table.filter(pl.col("difference") != 0).select(c.name for c in columns)
            told = told.sort(pl.col("difference").abs(), descending=True, maintain_order=True)
            yield f"{title}\n{as_table(told, columns, width=width, rows=most, colour=colour)}"


def _head(found: Comparison) -> Iterator[str]:
    yield from map(_sentence, found.steps.iter_rows(named=True))
    if not found.steps.height:
        yield (
            "Steps cannot be compared, as a recording has none: record with a schedule and "
            "`prof.step()`, or with `selftime run`."
        )


def _folded(text: str, width: int) -> str:
    return fill(text, width, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def _sentence(row: dict[str, Any]) -> str:
    before, after = (units.time_text(row[side]) for side in ("before", "after"))
    said = f"{row['time'].capitalize()}: {before} before, {after} after"
    if row["chance"] is None:
        return f"{said}; too few steps to tell what varies."
    ends = sorted(row[end] if row["difference"] > 0 else -row[end] for end in ("low", "high"))
    low, high = map(units.time_text, ends)
    counts = f"{row['steps_before']} and {row['steps_after']} steps"
    interval = f"{low} to {high}, 95 %; {counts}"
    if row["verdict"] is None:
        return f"{said}: no difference that is more than chance ({interval})."
    change = f" ({units.share_text(abs(row['change']))})" if row["change"] is not None else ""
    much = units.time_text(abs(row["difference"]))
    return f"{said}: {much}{change} {row['verdict']} ({interval})."


def _columns(name: str) -> tuple[Column, ...]:
    by_name = {column.name: column for column in TABLES[name].columns}
    return tuple(by_name[column] for column in _SHOWN[name])


def as_json(found: Comparison) -> str:
    """`FORMAT` (docs/formats.md): all tables, each with what its columns mean."""
    tables = {
        name: {
            "doc": TABLES[name].doc,
            "columns": [described(column) for column in TABLES[name].columns],
            "rows": known(table).to_dicts(),
        }
        for name, table in found.tables().items()
    }
    head = {
        "format": FORMAT,
        "before": found.before,
        "after": found.after,
        "metric": found.metric,
        "notes": found.notes,
        "tables": tables,
    }
    return json.dumps(head, allow_nan=False).replace("\x7f", "\\u007f") + "\n"
