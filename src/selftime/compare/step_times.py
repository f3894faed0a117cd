"""Compares the step times of two recordings, in total and by category such as data loading."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.steps.breakdown import STEP_TIME_CATEGORIES, step_breakdown
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Floats
from selftime.compare.difference_columns import (
    CHANGE_COLUMN,
    DIFFERENCE_COLUMNS,
    INTERVAL_COLUMNS,
    difference_columns,
    difference_verdicts,
)
from selftime.compare.statistical_significance import MeanAndVariance, MedianShift, median_shift
from selftime.schema import Column, Table
from selftime.trace import Trace

STEPS_TABLE: Final = Table(
    "steps",
    "Step times before and after: medians of the steady steps.",
    (
        Column(
            "time",
            pl.String,
            "name",
            "Kind of step time: of the device, of the host, or of unprofiled steps.",
        ),
        Column(
            "before",
            pl.Float64,
            "ns",
            "Median of this step time in the recording before the change.",
        ),
        Column(
            "after", pl.Float64, "ns", "Median of this step time in the recording after the change."
        ),
        Column(
            "difference",
            pl.Float64,
            "ns",
            "Step time after the change minus before; negative means faster.",
        ),
        CHANGE_COLUMN,
        *INTERVAL_COLUMNS,
        Column(
            "chance",
            pl.Float64,
            "ratio",
            "The p-value of the difference in step time; null if there are too few steps.",
            True,
        ),
        Column(
            "verdict",
            pl.String,
            "name",
            "Effect on the step time: slower or faster; null if it may be chance.",
            True,
        ),
        Column(
            "steps_before",
            pl.Int64,
            "count",
            "Number of compared steps in the recording before the change.",
        ),
        Column(
            "steps_after",
            pl.Int64,
            "count",
            "Number of compared steps in the recording after the change.",
        ),
    ),
)

PARTS_TABLE: Final = Table(
    "parts",
    "Time per step by category, before and after; the rows add up to the step time.",
    (
        Column(
            "part",
            pl.String,
            "name",
            "Category of step time, as in the view `overview`, or `other`.",
        ),
        *DIFFERENCE_COLUMNS,
    ),
)


def compared_steps(before: Trace, after: Trace) -> pl.DataFrame:
    """Returns `STEPS_TABLE`: device, host and unprofiled step times, before and after."""
    rows = []
    kinds = {
        "step, not recorded": [unrecorded_step_times(trace) for trace in (before, after)],
        "device step time": [step_times(trace, "device_time") for trace in (before, after)],
        "host step time": [step_times(trace, "host_time") for trace in (before, after)],
    }
    for time, (first, second) in kinds.items():
        if first.size and second.size:
            rows.append(
                {"time": time, **_step_time_row(median_shift(first, second), first, second)}
            )
    return pl.DataFrame(rows, schema=STEPS_TABLE.dtypes)


def _step_time_row(shift: MedianShift, before: Floats, after: Floats) -> dict[str, Any]:
    slower_or_faster = "slower" if shift.difference > 0 else "faster"
    return {
        "before": shift.before,
        "after": shift.after,
        "difference": shift.difference,
        "change": shift.difference / shift.before if shift.before > 0 else None,
        "low": shift.low,
        "high": shift.high,
        "chance": shift.p_value,
        "verdict": slower_or_faster if shift.is_significant else None,
        "steps_before": before.size,
        "steps_after": after.size,
    }


def compared_parts(before: Trace, after: Trace) -> pl.DataFrame:
    """Returns `PARTS_TABLE`: time per step by category; omits categories without any time."""
    tables = [_parts_of_steady_steps(trace) for trace in (before, after)]
    if not all(table.height for table in tables):
        return pl.DataFrame(schema=PARTS_TABLE.dtypes)
    parts = [*STEP_TIME_CATEGORIES, "other"]
    spreads = [
        _mean_and_variance_over_rows(table.select(parts).fill_null(0).to_numpy())
        for table in tables
    ]
    once = [np.array([table[part].fill_null(0).sum() for part in parts]) > 0 for table in tables]
    table = pl.DataFrame(
        {
            "part": parts,
            **difference_columns(*spreads),
            "verdict": difference_verdicts(*spreads, *(there.astype(np.int64) for there in once)),
        },
        schema_overrides=PARTS_TABLE.dtypes,
    )
    return table.filter(pl.Series(once[0] | once[1])).select(*PARTS_TABLE.dtypes)


def _mean_and_variance_over_rows(amounts: Floats) -> MeanAndVariance:
    """Returns the mean and variance over the steps (rows) of each of the k columns."""
    steps = amounts.shape[0]
    variance = amounts.var(axis=0, ddof=1) if steps > 1 else np.zeros(amounts.shape[1])
    return MeanAndVariance(amounts.mean(axis=0), variance, steps)


def _parts_of_steady_steps(trace: Trace) -> pl.DataFrame:
    steps, parts = steps_with_counted_flags(trace), step_breakdown(trace)
    counted = steps["counted"]
    return parts.filter(counted) if counted.any() else parts


def step_times(trace: Trace, column: str) -> Floats:
    """Returns one time in ns per steady step, from `column`; leaves out steps without a value."""
    steps = steps_with_counted_flags(trace)
    counted = steps.filter("counted") if steps["counted"].any() else steps
    return counted[column].drop_nulls().cast(pl.Float64).to_numpy()


def unrecorded_step_times(trace: Trace) -> Floats:
    """Returns the times in ns of steps that ran while the profiler was off; empty if unknown."""
    steps = trace.facts.get("steps")
    durations = steps.get("unprofiled_ns") if isinstance(steps, dict) else None
    known = (
        [t for t in durations if isinstance(t, int | float)] if isinstance(durations, list) else []
    )
    return np.array(known, np.float64)
