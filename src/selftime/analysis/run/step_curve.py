"""The steps of a run over time, with those that begin within one pixel merged."""

from typing import Final

import polars as pl

_LONGEST_COLUMNS: Final = ("step", "data_wait", "cause", "file", "line", "function", "trace_start")
"""What is told of the longest of the merged steps."""


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
