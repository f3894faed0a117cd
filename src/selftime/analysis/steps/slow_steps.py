"""Finds by how much slow steps are longer than the others, and in what."""

import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.steps.breakdown import STEP_TIME_CATEGORIES, step_breakdown
from selftime.analysis.steps.steady_steps import OUTLIER_NOTE, steps_with_counted_flags
from selftime.trace import Trace


@cached_per_trace
def slow_step_excesses(trace: Trace) -> pl.DataFrame:
    """Returns `excess` (ns) and `longer_in` of each step; null unless it is far longer than others.

    The excess is the step's time above the median of the steps that count; `longer_in` is the time
    category that exceeds its own median most.
    """
    found = steps_with_counted_flags(trace)
    parts = step_breakdown(trace)
    is_slow = found["note"].eq(OUTLIER_NOTE).fill_null(value=False)
    usual = parts.filter(found["counted"])
    names = [*STEP_TIME_CATEGORIES, "other"]
    beyond = parts.select(pl.col(name) - (usual[name].median() or 0) for name in names)
    longest = [
        max(names, key=lambda name: row[name] or 0) if slow else None
        for row, slow in zip(beyond.iter_rows(named=True), is_slow, strict=True)
    ]
    excess = (parts["time"] - (usual["time"].median() or 0)).cast(pl.Int64)
    return pl.select(
        pl.when(is_slow).then(excess).alias("excess"),
        pl.Series("longer_in", longest, dtype=pl.String),
    )
