"""Sums up the steps of a run by kind, and over time."""

from typing import Final

import polars as pl

from selftime.analysis.run.slow_steps import steps_of_run
from selftime.run import PHASES, Run


def timed_steps(run: Run) -> pl.DataFrame:
    """Returns the steps from which durations of their kind are computed, with two more columns.

    kind: The name of the kind, as text.
    own: The duration without selftime's own work, in ns.

    Steps that a profiler recorded are left out, for that slows them down, unless all of their kind
    were recorded.
    """
    steps = steps_of_run(run).with_columns(
        pl.col("kind").cast(pl.String), (pl.col("duration") - pl.col("recording")).alias("own")
    )
    is_all = pl.col("recorded").all().over("kind")
    return steps.filter(~pl.col("recorded") | is_all)


def step_kinds(run: Run) -> pl.DataFrame:
    """Returns a row for each kind of step, the kind with most time first. Times are in ns.

    kind: The name of the kind.
    count: The number of steps.
    median, p95: The median and the 95th percentile of how long `timed_steps` took.
    data_wait: The mean time that these waited for data.
    forward, backward, optimizer, device: The medians of these phases of `timed_steps`; null where
        no step shows one.
    total: The durations of all steps together.
    slow: The number of slow steps.
    excess: How much longer the slow steps took than the median, together.
    recorded: The number of steps that a profiler recorded.
    covered: The time of the run that the recorded steps stand for: all steps of the kind if one of
        them was recorded, else 0.
    file, line: The loop whose iterations are the steps; null if it is not known.
    """
    recorded = pl.col("recorded").sum().cast(pl.Int64)
    total = pl.col("duration").sum()
    kinds = (
        steps_of_run(run)
        .group_by(pl.col("kind").cast(pl.String))
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            total.alias("total"),
            (pl.col("excess") > 0).sum().cast(pl.Int64).alias("slow"),
            pl.col("excess").sum().alias("excess"),
            recorded.alias("recorded"),
            pl.when(recorded > 0).then(total).otherwise(0).alias("covered"),
        )
        .sort("total", "kind", descending=[True, False])
    )
    timed = (
        timed_steps(run)
        .group_by("kind")
        .agg(
            pl.col("own").median().alias("median"),
            pl.col("own").quantile(0.95).alias("p95"),
            pl.col("data_wait").mean(),
            pl.col(PHASES).median(),
            _passes().median().alias("passes"),
        )
    )
    kinds = kinds.join(timed, on="kind", how="left", maintain_order="left")
    lines = [(kind, file, line) for kind, (file, line) in run.loop_lines.items()]
    known = pl.DataFrame(
        lines, schema={"kind": pl.String, "file": pl.String, "line": pl.Int32}, orient="row"
    )
    return kinds.join(known, on="kind", how="left", maintain_order="left")


def _passes() -> pl.Expr:
    """Returns the number of backward passes of each segment; null where there are none."""
    return pl.when(pl.col("backward").is_not_null()).then(pl.col("passes").fill_null(1))


_LONGEST_COLUMNS: Final = ("step", "data_wait", "cause", "file", "line", "function", "trace_start")
"""Columns that describe the longest of the merged steps."""


def step_curve(steps: pl.DataFrame, start: int, end: int, pixels: int) -> pl.DataFrame:
    """Returns the steps that begin between two instants, at most a few rows for each pixel.

    Steps of one pixel are merged if they are of one kind, all slow or none, and all recorded or
    none. So a slow step is never hidden by usual ones. Times are in ns.

    Args:
        steps: The steps, as `steps_of_run` returns them, with the column trace_start.
        start: The first instant, in ns since the process started.
        end: The instant after the last one; after `start`.
        pixels: Into how many pixels the time is divided; 1 or more.

    Returns:
        start: When the first of the merged steps begins.
        kind, slow, recorded: Of the merged steps.
        count: How many steps are merged.
        shortest, median, longest: Their durations.
        step, data_wait, cause, file, line, function, trace_start: Of the longest of them.
    """
    width = max(1, -(-(end - start) // pixels))
    shown = steps.filter(pl.col("start").is_between(start, end, closed="left"))
    longest = pl.col("duration").arg_max()
    merged = (
        shown.with_columns(
            pl.col("kind").cast(pl.String),
            ((pl.col("start") - start) // width).alias("pixel"),
            (pl.col("excess") > 0).alias("slow"),
        )
        .group_by("pixel", "kind", "slow", "recorded")
        .agg(
            pl.col("start").min(),
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("duration").min().alias("shortest"),
            pl.col("duration").median().round().cast(pl.Int64).alias("median"),
            pl.col("duration").max().alias("longest"),
            *(pl.col(name).get(longest) for name in _LONGEST_COLUMNS),
        )
    )
    return merged.sort("start", "step")
