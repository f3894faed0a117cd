"""Compare the steps of two recordings: their times, and the parts of those times."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.analysis.steps.breakdown import breakdown
from selftime.analysis.steps.category_times import CATEGORIES
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Floats
from selftime.compare.noise import Shift, Spread, shift
from selftime.compare.rows import DIFFERENCE, differences, verdicts
from selftime.schema import Column, Table
from selftime.trace import Trace

STEPS: Final = Table(
    "steps",
    "Step times before and after: medians of the steady steps.",
    (
        Column("time", pl.String, "name", "The kind of step time."),
        Column("before", pl.Float64, "ns", "Its median before."),
        Column("after", pl.Float64, "ns", "Its median after."),
        Column("difference", pl.Float64, "ns", "After minus before: negative is faster."),
        Column("change", pl.Float64, "ratio", "The difference relative to before.", True),
        Column("low", pl.Float64, "ns", "Lower bound of the 95 % interval.", True),
        Column("high", pl.Float64, "ns", "Upper bound of it.", True),
        Column("chance", pl.Float64, "ratio", "The p-value of the difference.", True),
        Column("verdict", pl.String, "name", "slower or faster; null: unclear.", True),
        Column("steps_before", pl.Int64, "count", "The number of steps before."),
        Column("steps_after", pl.Int64, "count", "The number of steps after."),
    ),
)

PARTS: Final = Table(
    "parts",
    "The parts of the step time, before and after; rows add up to it.",
    (
        Column("part", pl.String, "name", "A category of the view `overview`, or other."),
        *DIFFERENCE,
    ),
)


def compared_steps(before: Trace, after: Trace) -> pl.DataFrame:
    """Returns `STEPS`: time without the recorder if known, then device and host time."""
    rows = []
    kinds = {
        "step, not recorded": [unrecorded_step_times(trace) for trace in (before, after)],
        "device step time": [step_times(trace, "device_time") for trace in (before, after)],
        "host step time": [step_times(trace, "host_time") for trace in (before, after)],
    }
    for time, (first, second) in kinds.items():
        if first.size and second.size:
            rows.append({"time": time, **_row(shift(first, second), first, second)})
    return pl.DataFrame(rows, schema=STEPS.dtypes)


def _row(found: Shift, before: Floats, after: Floats) -> dict[str, Any]:
    slower_or_faster = "slower" if found.difference > 0 else "faster"
    return {
        "before": found.before,
        "after": found.after,
        "difference": found.difference,
        "change": found.difference / found.before if found.before > 0 else None,
        "low": found.low,
        "high": found.high,
        "chance": found.chance,
        "verdict": slower_or_faster if found.is_significant else None,
        "steps_before": before.size,
        "steps_after": after.size,
    }


def compared_parts(before: Trace, after: Trace) -> pl.DataFrame:
    """Returns `PARTS` in the order of the categories, without empty ones."""
    tables = [_counted(trace) for trace in (before, after)]
    if not all(table.height for table in tables):
        return pl.DataFrame(schema=PARTS.dtypes)
    parts = [*CATEGORIES, "other"]
    spreads = [_spread(table.select(parts).fill_null(0).to_numpy()) for table in tables]
    once = [np.array([table[part].fill_null(0).sum() for part in parts]) > 0 for table in tables]
    table = pl.DataFrame(
        {
            "part": parts,
            **differences(*spreads),
            "verdict": verdicts(*spreads, *(there.astype(np.int64) for there in once)),
        },
        schema_overrides=PARTS.dtypes,
    )
    return table.filter(pl.Series(once[0] | once[1])).select(*PARTS.dtypes)


def _spread(each: Floats) -> Spread:
    """Returns the spread of amounts of shape (steps, k)."""
    steps = each.shape[0]
    variance = each.var(axis=0, ddof=1) if steps > 1 else np.zeros(each.shape[1])
    return Spread(each.mean(axis=0), variance, steps)


def _counted(trace: Trace) -> pl.DataFrame:
    steps, parts = assessed_steps(trace), breakdown(trace)
    counted = steps["counted"]
    return parts.filter(counted) if counted.any() else parts


def step_times(trace: Trace, column: str) -> Floats:
    """Returns one kind of time of the steady steps, in ns; empty if unknown."""
    steps = assessed_steps(trace)
    counted = steps.filter("counted") if steps["counted"].any() else steps
    return counted[column].drop_nulls().cast(pl.Float64).to_numpy()


def unrecorded_step_times(trace: Trace) -> Floats:
    """Returns the times of steps that ran without the recorder, in ns."""
    steps = trace.facts.get("steps")
    durations = steps.get("unprofiled_ns") if isinstance(steps, dict) else None
    known = (
        [t for t in durations if isinstance(t, int | float)] if isinstance(durations, list) else []
    )
    return np.array(known, np.float64)
