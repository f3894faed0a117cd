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


NO_STEPS: Final = (
    "Steps cannot be compared, as a recording has none: record with a schedule and "
    "`prof.step()`, or with `selftime run`."
)


@dataclass(frozen=True, slots=True)
class StepWords:
    """What is said of a time of the step, before and after."""

    title: str
    before: str
    after: str
    verdict: str | None
    """`slower` or `faster`; None where the difference may be chance."""
    said: str
    """What is said of the difference."""
    surely: str
    """Its interval, and of how many steps it is."""


def step_words(steps: pl.DataFrame) -> tuple[StepWords, ...]:
    """The rows of a comparison's table `steps` in words."""
    return tuple(map(_step_words, steps.iter_rows(named=True)))


def _step_words(row: dict[str, Any]) -> StepWords:
    before, after = (units.time_text(row[side]) for side in ("before", "after"))
    title, verdict = row["time"].capitalize(), row["verdict"]
    counts = f"{row['steps_before']} and {row['steps_after']} steps"
    if row["chance"] is None:
        said = "too few steps to tell a difference from chance"
        return StepWords(title, before, after, None, said, counts)
    ends = sorted(row[end] if row["difference"] > 0 else -row[end] for end in ("low", "high"))
    low, high = map(units.time_text, ends)
    surely = f"95 % interval {low} to {high}; {counts}"
    if verdict is None:
        said = "no difference beyond chance"
        return StepWords(title, before, after, None, said, surely)
    change = f" ({units.share_text(abs(row['change']))})" if row["change"] is not None else ""
    said = f"{units.time_text(abs(row['difference']))}{change} {verdict}"
    return StepWords(title, before, after, verdict, said, surely)


def as_text(found: Comparison, *, width: int = 80, rows: int = 10, colour: bool = False) -> str:
    """The step before and after; in what the recordings differ; the greatest differences."""
    return "\n".join(_parts(found, width=width, rows=rows, colour=colour))


def _parts(found: Comparison, *, width: int, rows: int, colour: bool) -> Iterator[str]:
    yield "".join(_folded(sentence, width) for sentence in _head(found))
    if found.notes:
        yield "DIFFERENCES BETWEEN THE RECORDINGS\n" + "".join(
            _folded(f"- {plain(note)}", width) for note in found.notes
        )
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
    for words in step_words(found.steps):
        times = f"{words.title}: {words.before} before, {words.after} after"
        yield f"{times}; {words.said} ({words.surely})."
    if not found.steps.height:
        yield NO_STEPS


def _folded(text: str, width: int) -> str:
    return fill(text, width, subsequent_indent="  ", break_on_hyphens=False) + "\n"


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
