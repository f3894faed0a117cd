"""Divides what slow steps took beyond others of their kind among what the program was seen doing.

The parts that are counted are taken off first, except evaluation: within it, stacks are read.
"""

from typing import Final

import polars as pl

from selftime.analysis.run.slow_steps import steps_of_run
from selftime.run import COUNTED, Run

_COUNTED_WITHOUT_READINGS: Final = [
    part for part in COUNTED if part not in {"recording", "evaluation"}
]
"""Counted parts in which no stack is read."""


def slow_step_activities(run: Run) -> pl.DataFrame:
    """Returns what slow steps were seen busy with: one row a step, part and line.

    Columns: step, segment, part, what, file, line, function; duration, in ns, which is the share
    of the step's excess; and evaluation, in ns, the step's evaluation as it was counted.
    """
    steps = steps_of_run(run)
    usual = [pl.col(part).median().over(pl.col("kind")) for part in _COUNTED_WITHOUT_READINGS]
    beyond = pl.sum_horizontal(
        (pl.col(part) - median).clip(lower_bound=0)
        for part, median in zip(_COUNTED_WITHOUT_READINGS, usual, strict=True)
    )
    slow = steps.with_columns((pl.col("excess") - beyond).clip(lower_bound=0).alias("left")).filter(
        pl.col("excess") > 0
    )
    readings = run.readings.with_columns(
        pl.col("part").cast(pl.String),
        (pl.col("duration") / pl.col("duration").sum().over("segment")).alias("share"),
    ).drop("duration", "count")
    joined = slow.select(pl.col("id").alias("segment"), "step", "left", "evaluation").join(
        readings, on="segment"
    )
    return joined.with_columns(
        (pl.col("left") * pl.col("share")).floor().cast(pl.Int64).alias("duration")
    ).select(
        "step", "segment", "part", "what", "file", "line", "function", "duration", "evaluation"
    )


def checkpoint_time_by_step(run: Run) -> pl.DataFrame:
    """Returns the time (ns) that slow steps took for writing checkpoints: one row a step and line.

    Columns: segment, file, line, function, duration. What `torch.load` reads is left out.
    """
    is_saved = (pl.col("part") == "checkpoint") & (pl.col("what").fill_null("save") != "load")
    return (
        slow_step_activities(run)
        .filter(is_saved)
        .group_by("segment", "file", "line", "function", maintain_order=True)
        .agg(pl.col("duration").sum())
    )
