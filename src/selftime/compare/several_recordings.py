"""Compares three recordings and more: what each took, and how that differs from the first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.compare.check.measured_runs import MeasuredRun, is_time
from selftime.compare.comparability import recording_differences
from selftime.compare.difference_columns import VERDICT_CONFIDENCE_LEVEL
from selftime.compare.section_statistics import difference_interval
from selftime.compare.statistical_significance import median_shift
from selftime.schema import Column, Table
from selftime.trace import Trace

MEASURES_TABLE: Final = Table(
    "measures",
    "What a step, or the run, took in each of several recordings.",
    (
        Column("measure", pl.String, "name", "Name of the measure, as in `selftime check`."),
        Column("recording", pl.Int64, "count", "Number of the recording, from 1."),
        Column(
            "value",
            pl.Float64,
            "text",
            "Median of the steps, or the run's figure, in the unit of the measure's name: ms, s, "
            "else a count or bytes; null if the recording lacks it.",
            True,
        ),
        Column("difference", pl.Float64, "text", "`value` less that of the first recording.", True),
        Column(
            "change",
            pl.Float64,
            "ratio",
            "`difference` divided by the first recording's value; null if that is 0.",
            True,
        ),
        Column(
            "verdict",
            pl.String,
            "name",
            "Of a count: more or fewer. Of a time: slower or faster than the first recording by "
            "more than steps vary within the two; else null.",
            True,
        ),
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class SeveralComparison:
    """What several recordings of a program took, in the order in which they were named."""

    recordings: tuple[str, ...]
    notes: tuple[str, ...]
    """In what a recording differs from the first, one sentence each."""
    measures: pl.DataFrame
    """The columns of `MEASURES_TABLE`."""


def compare_several(traces: Sequence[Trace]) -> SeveralComparison:
    """Compares recordings with the first of them."""
    runs = [MeasuredRun.from_trace(trace) for trace in traces]
    names = dict.fromkeys(name for run in runs for name in (*run.measures, *run.run_measures))
    rows = [
        {"measure": name, "recording": number, **_differences(name, runs[0], run)}
        for name in names
        for number, run in enumerate(runs, 1)
    ]
    notes = [
        f"recording {number} beside the first: {note}"
        for number, trace in enumerate(traces[1:], 2)
        for note in recording_differences(traces[0], trace)
    ]
    table = pl.DataFrame(rows, schema=MEASURES_TABLE.dtypes)
    return SeveralComparison(tuple(trace.source for trace in traces), tuple(notes), table)


def _differences(name: str, first: MeasuredRun, other: MeasuredRun) -> dict[str, Any]:
    before, after = first.figure(name), other.figure(name)
    if before is None or after is None or first is other:
        return {"value": after, "difference": None, "change": None, "verdict": None}
    difference = after - before
    return {
        "value": after,
        "difference": difference,
        "change": difference / before if before > 0 else None,
        "verdict": next(_verdicts(name, first, other, difference), None),
    }


def _verdicts(
    name: str, first: MeasuredRun, other: MeasuredRun, difference: float
) -> Iterator[str]:
    """Yields whether a measure is larger or smaller than in the first one, if that is sure."""
    if not is_time(name):
        if difference:
            yield "more" if difference > 0 else "fewer"
        return
    word = "slower" if difference > 0 else "faster"
    if name in first.measures and name in other.measures:
        if median_shift(first.measures[name], other.measures[name]).is_significant:
            yield word
    elif name in first.run_measures and name in other.run_measures:
        sides = first.run_measures[name], other.run_measures[name]
        interval = difference_interval(*sides, VERDICT_CONFIDENCE_LEVEL)
        if interval is not None and (interval[0] > 0 or interval[1] < 0):
            yield word
