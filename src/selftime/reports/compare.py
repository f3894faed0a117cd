"""Writes a comparison of two recordings as text or JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any, Final

import polars as pl

from selftime import units
from selftime.compare import TABLES, Comparison
from selftime.reports.plain import plain
from selftime.reports.tables.tabular import column_description_data, nan_and_infinity_as_null
from selftime.reports.tables.text_table import as_text as as_table
from selftime.schema import Column

FORMAT: Final = "selftime.comparison/1"
"""Name and version of the JSON form of a comparison."""


@dataclass(frozen=True, slots=True)
class _TableSection:
    """A table in the text of a comparison: its title, and the shown columns and kind of rows."""

    title: str
    table: str
    columns: tuple[str, ...]
    """Names of the shown columns; the second, `difference`, is the sort key."""
    kind: str | None = None
    """Kind of the rows that are shown, such as `module`; None shows all rows."""


_SECTIONS_OF_COMPARISON_TEXT: Final = (
    _TableSection(
        "WHAT A STEP IS SPENT ON, along its critical path",
        "account",
        ("class", "difference", "before", "after", "verdict", "what"),
    ),
    _TableSection(
        "THE RUN BY PART",
        "run_parts",
        ("part", "difference", "before", "after", "change", "count_before", "count_after"),
    ),
    _TableSection(
        "WHAT A STEP IS MADE OF, on average",
        "parts",
        ("part", "difference", "before", "after", "change", "verdict"),
    ),
    _TableSection(
        "MODULES, total time of {of} per step",
        "tree",
        ("path", "total_difference", "total_before", "total_after", "total_verdict"),
        "module",
    ),
    _TableSection(
        "MODULES AND OPERATORS, self time of {of} per step",
        "tree",
        ("path", "difference", "before", "after", "verdict"),
    ),
    _TableSection(
        "KERNELS AND COPIES, device time per step",
        "kernels",
        ("what", "difference", "before", "after", "count_before", "count_after", "verdict"),
    ),
)
"""Sections of the comparison's text that show tables, in order."""


_TABLES_SHOWN_WHOLE: Final = ("parts", "run_parts")
"""Tables of a few rows, which the text shows all."""
MIN_CHANGE_IN_TIMES: Final = 10.0
"""Smallest difference, as a ratio to what was before, that is written as a number of times."""
NO_STEPS_SENTENCE: Final = (
    "Steps cannot be compared: one of the recordings has none. Record with a schedule and "
    "`prof.step()`, or with `selftime run`."
)
"""Sentence for a comparison in which a recording has no steps."""


@dataclass(frozen=True, slots=True)
class StepComparisonText:
    """Texts that compare one kind of step time, such as host time, before and after a change."""

    title: str
    before: str
    after: str
    verdict: str | None
    """`slower` or `faster`; None if the difference may be chance."""
    difference_text: str
    """The difference and its direction as text, such as `1.2 ms (8 %) faster`."""
    interval_text: str
    """Text with the difference's 95 % interval and the numbers of compared steps."""


def step_comparison_texts(steps: pl.DataFrame) -> tuple[StepComparisonText, ...]:
    """Returns texts for each kind of step time in the table `steps` of a comparison."""
    return tuple(map(_step_comparison_text, steps.iter_rows(named=True)))


def _step_comparison_text(row: dict[str, Any]) -> StepComparisonText:
    before, after = (units.time_text(row[side]) for side in ("before", "after"))
    title, verdict = row["time"].capitalize(), row["verdict"]
    counts = f"{row['steps_before']} and {row['steps_after']} steps"
    if row["chance"] is None:
        difference_text = "too few steps to tell a difference from chance"
        return StepComparisonText(title, before, after, None, difference_text, counts)
    ends = sorted(row[end] if row["difference"] > 0 else -row[end] for end in ("low", "high"))
    interval_text = f"95 % interval {units.time_range_text(*ends)}; {counts}"
    if verdict is None:
        difference_text = "no difference beyond chance"
        return StepComparisonText(title, before, after, None, difference_text, interval_text)
    change = "" if row["change"] is None else f" ({change_text(abs(row['change']))})"
    difference_text = f"{units.time_text(abs(row['difference']))}{change} {verdict}"
    return StepComparisonText(title, before, after, verdict, difference_text, interval_text)


def change_text(change: float) -> str:
    """Returns a difference relative to what was before: as a percentage, or how many times it is.

    >>> change_text(-0.25), change_text(9.5), change_text(161.876)
    ('-25.0 %', '950.0 %', '162 times')
    """
    if change < MIN_CHANGE_IN_TIMES:
        return units.share_text(change)
    return f"{units.count_text(change)} times"


def run_comparison_sentence(run_parts: pl.DataFrame) -> str:
    """Returns a sentence on the wall time of both runs, from the comparison's table of parts."""
    before, after = (float(run_parts[side].sum()) for side in ("before", "after"))
    apart = after - before
    word = "longer" if apart > 0 else "shorter"
    share = f" ({change_text(abs(apart) / before)})" if before > 0 else ""
    times = f"{units.seconds_text(before)} before, {units.seconds_text(after)} after"
    return (
        f"Run: {times}; {units.seconds_text(abs(apart))}{share} {word}. These are one run each, "
        "which does not show how much runs vary."
    )


def as_text(
    comparison: Comparison, *, width: int = 80, rows: int = 10, colour: bool = False
) -> str:
    """Returns a comparison as text: step times, notes, and tables of the largest changes."""
    return "\n".join(_comparison_text_blocks(comparison, width=width, rows=rows, colour=colour))


def _comparison_text_blocks(
    comparison: Comparison, *, width: int, rows: int, colour: bool
) -> Iterator[str]:
    """Yields the text's blocks: step times, notes, and one table per section."""
    yield "".join(
        _wrap_sentence(sentence, width) for sentence in _step_comparison_sentences(comparison)
    )
    if comparison.notes:
        yield "DIFFERENCES BETWEEN THE RECORDINGS\n" + "".join(
            _wrap_sentence(f"- {plain(note)}", width) for note in comparison.notes
        )
    weighted_time = "the device" if comparison.metric == "device" else "the host"
    for section in _SECTIONS_OF_COMPARISON_TEXT:
        table = comparison.tables()[section.table]
        if section.kind is not None:
            table = table.filter(pl.col("kind") == section.kind)
        if table.height:
            columns = _columns_of_table_section(section)
            difference = pl.col(section.columns[1])
            row_limit = (
                table.height if section.table in _TABLES_SHOWN_WHOLE else rows or table.height
            )
            changed_rows = table.filter(difference != 0).select(c.name for c in columns)
            changed_rows = changed_rows.sort(difference.abs(), descending=True, maintain_order=True)
            text = as_table(
                _with_changes_as_text(changed_rows),
                columns,
                width=width,
                rows=row_limit,
                colour=colour,
            )
            yield f"{section.title.format(of=weighted_time)}\n{text}"
        if section.table == "run_parts":
            yield from _blocks_of_steps_of_run(comparison.run_steps, width=width, colour=colour)


def _with_changes_as_text(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of a table with the texts of its column `change`, if it has one."""
    if "change" not in table.columns:
        return table
    texts = [None if change is None else change_text(change) for change in table["change"]]
    return table.with_columns(pl.Series("change", texts, pl.String))


_COLUMNS_OF_STEPS_OF_RUN: Final = (
    "time",
    "difference",
    "low",
    "high",
    "before",
    "after",
    "verdict",
)
"""Columns of the text's tables of steps of the run; one table for each kind of step."""


def _blocks_of_steps_of_run(run_steps: pl.DataFrame, *, width: int, colour: bool) -> Iterator[str]:
    """Yields a table for each kind of step of the runs, the kind with most time first."""
    by_name = {column.name: column for column in TABLES["run_steps"].columns}
    columns = tuple(by_name[name] for name in _COLUMNS_OF_STEPS_OF_RUN)
    for rows in run_steps.partition_by("kind", maintain_order=True):
        before, after = (rows[f"steps_{side}"][0] for side in ("before", "after"))
        title = (
            f"STEPS OF THE RUN, {plain(rows['kind'][0])}: {units.count_text(before)} and "
            f"{units.count_text(after)} steps"
        )
        shown = rows.select(_COLUMNS_OF_STEPS_OF_RUN)
        yield f"{title}\n{as_table(shown, columns, width=width, rows=rows.height, colour=colour)}"


def _step_comparison_sentences(comparison: Comparison) -> Iterator[str]:
    """Yields a sentence about the run, and about each kind of step time."""
    if comparison.run_parts.height:
        yield run_comparison_sentence(comparison.run_parts)
    for step_text in step_comparison_texts(comparison.steps):
        times = f"{step_text.title}: {step_text.before} before, {step_text.after} after"
        yield f"{times}; {step_text.difference_text} ({step_text.interval_text})."
    if not (comparison.steps.height or comparison.run_parts.height):
        yield NO_STEPS_SENTENCE


def _wrap_sentence(text: str, width: int) -> str:
    return fill(text, width, subsequent_indent="  ", break_on_hyphens=False) + "\n"


def _columns_of_table_section(section: _TableSection) -> tuple[Column, ...]:
    """Returns the descriptions of the table columns that a section shows.

    The column `change` holds texts, to the right like numbers.
    """
    by_name = {column.name: column for column in TABLES[section.table].columns}
    columns = (by_name[column] for column in section.columns)
    return tuple(
        replace(column, unit="id") if column.name == "change" else column for column in columns
    )


def as_json(comparison: Comparison) -> str:
    """Returns a comparison as JSON: all tables with descriptions of their columns."""
    tables = {
        name: {
            "doc": TABLES[name].doc,
            "columns": [column_description_data(column) for column in TABLES[name].columns],
            "rows": nan_and_infinity_as_null(table).to_dicts(),
        }
        for name, table in comparison.tables().items()
    }
    document = {
        "format": FORMAT,
        "before": comparison.before,
        "after": comparison.after,
        "metric": comparison.metric,
        "notes": comparison.notes,
        "tables": tables,
    }
    return json.dumps(document, allow_nan=False).replace("\x7f", "\\u007f") + "\n"
