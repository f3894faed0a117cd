"""What changed between two recordings, for a terminal, for programs, and as a table."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Final

import polars as pl

from selftime import units
from selftime.compare import TABLES, Comparison
from selftime.reports.plain import plain
from selftime.reports.tables.table import as_text as as_table
from selftime.reports.tables.tabular import described, known
from selftime.schema import Column

FORMAT: Final = "selftime.comparison/1"
"""The name and version of the JSON form."""


@dataclass(frozen=True, slots=True)
class _Section:
    """What a terminal shows of a table."""

    title: str
    table: str
    columns: tuple[str, ...]
    """In its order; by the second, the difference, rows are sorted."""
    kind: str | None = None
    """Only rows of this kind."""


_SECTIONS: Final = (
    _Section(
        "WHAT A STEP IS MADE OF, on average",
        "parts",
        ("part", "difference", "before", "after", "change", "verdict"),
    ),
    _Section(
        "MODULES, time of {of} a step with all within them",
        "tree",
        ("path", "total_difference", "total_before", "total_after", "total_verdict"),
        "module",
    ),
    _Section(
        "MODULES AND OPERATORS, time of {of} a step that is their own",
        "tree",
        ("path", "difference", "before", "after", "verdict"),
    ),
    _Section(
        "KERNELS AND COPIES, time of the device a step",
        "kernels",
        ("what", "difference", "before", "after", "count_before", "count_after", "verdict"),
    ),
)


def as_text(found: Comparison, *, width: int = 80, rows: int = 10, colour: bool = False) -> str:
    """The step before and after; in what the recordings differ; the greatest differences."""
    return "\n".join(_parts(found, width=width, rows=rows, colour=colour))


def _parts(found: Comparison, *, width: int, rows: int, colour: bool) -> Iterator[str]:
    yield "".join(_folded(sentence, width) for sentence in _head(found))
    if found.notes:
        yield "NOT ALIKE\n" + "".join(_folded(f"- {plain(note)}", width) for note in found.notes)
    of = "the device" if found.metric == "device" else "the host"
    for section in _SECTIONS:
        table = found.tables()[section.table]
        if section.kind is not None:
            table = table.filter(pl.col("kind") == section.kind)
        if table.height:
            columns = _columns(section)
            difference = pl.col(section.columns[1])
            most = table.height if section.table == "parts" else rows or table.height
            told = table.filter(difference != 0).select(c.name for c in columns)
            told = told.sort(difference.abs(), descending=True, maintain_order=True)
            shown = as_table(told, columns, width=width, rows=most, colour=colour)
            yield f"{section.title.format(of=of)}\n{shown}"


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


def _columns(section: _Section) -> tuple[Column, ...]:
    by_name = {column.name: column for column in TABLES[section.table].columns}
    return tuple(by_name[column] for column in section.columns)


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
