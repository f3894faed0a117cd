"""Finds the steps of a run that took much longer than similar steps, and why."""

from typing import Final

import polars as pl

from selftime.analysis.run.compilation_sites import iterators_with_segments
from selftime.ledger_format import (
    MIN_SLOW_STEP_EXCESS_NS,
    MIN_SLOW_STEP_TIME_FACTOR,
    UNCOUNTED_STEPS_NAME,
    UNUSUAL_KIND_SUFFIX,
)
from selftime.run import COUNTED, Run


def steps_of_run(run: Run) -> pl.DataFrame:
    """Returns the steps of a run: number, usual duration, excess in ns, cause, source line.

    step: The number, from 0.
    median: The median duration of steps of the kind, in ns.
    excess: How much longer than that it took without selftime's own work, in ns; 0 unless it is
        slow.
    cause: What most of the excess is, a part of the run; null unless it is slow.
    file, line, function: The user's line that was seen most often; null where nothing was read. Of
        a step that is slow as it made an iterator of a DataLoader, the line that made it.
    """
    kind = pl.col("kind").cast(pl.String)
    is_step = kind.is_not_null() & (kind != UNCOUNTED_STEPS_NAME)
    steps = run.segments.filter(is_step).with_row_index("step")
    # Those with an evaluation or a new pass over the data are of their kind, and slow.
    family = kind.str.strip_suffix(UNUSUAL_KIND_SUFFIX)
    own = pl.col("duration") - pl.col("recording")
    median = own.median().over(family).cast(pl.Int64)
    steps = steps.with_columns(median.alias("median"))
    beyond = own - pl.col("median")
    is_longer = own >= MIN_SLOW_STEP_TIME_FACTOR * pl.col("median")
    slow = is_longer & (beyond >= MIN_SLOW_STEP_EXCESS_NS)
    steps = steps.with_columns(pl.when(slow).then(beyond).otherwise(0).alias("excess"))
    seen = _longest_seen_activities(run)
    steps = steps.join(seen, left_on="id", right_on="segment", how="left", maintain_order="left")
    steps = steps.with_columns(
        pl.when(pl.col("excess") > 0).then(_slow_step_cause_expression()).alias("cause")
    )
    return _with_lines_of_iterators(run, steps)


def _with_lines_of_iterators(run: Run, steps: pl.DataFrame) -> pl.DataFrame:
    """Puts the line that made an iterator in place of what was seen, where that was the cause.

    No stack is read while an iterator is made, so that line is another one.
    """
    place = ["file", "line", "function"]
    made = iterators_with_segments(run).sort("duration", descending=True)
    made = made.unique("segment", keep="first", maintain_order=True)
    own = made.select("segment", *(pl.col(name).alias(f"made_{name}") for name in place))
    joined = steps.join(own, left_on="id", right_on="segment", how="left", maintain_order="left")
    is_cause = (pl.col("cause") == "epoch_boundary").fill_null(value=False)
    chosen = [
        pl.when(is_cause).then(pl.col(f"made_{name}")).otherwise(name).alias(name) for name in place
    ]
    return joined.with_columns(chosen).drop(f"made_{name}" for name in place)


def _longest_seen_activities(run: Run) -> pl.DataFrame:
    """Returns for each segment with stack samples the activity and source line sampled longest."""
    ordered = run.readings.sort("duration", descending=True, maintain_order=True)
    return ordered.group_by("segment", maintain_order=True).agg(
        pl.col("part").first().cast(pl.String).alias("seen"),
        pl.col("file", "line", "function").first(),
    )


def _slow_step_cause_expression() -> pl.Expr:
    """Returns a column expression for the cause of a slow step, from measured times or samples."""
    parts = [part for part in COUNTED if part != "recording"]
    parts.append("queued")
    largest = pl.max_horizontal(parts)
    named = pl.coalesce(*(pl.when(pl.col(part) == largest).then(pl.lit(part)) for part in parts))
    return pl.when(2 * largest >= pl.col("excess")).then(named).otherwise("seen")


_COUNTED_WITHOUT_READINGS: Final = [
    *(part for part in COUNTED if part not in {"recording", "evaluation"}),
    "queued",
]
"""Counted parts in which no stack is read, and the time in which the thread had no core, which is
no line's."""


def slow_step_activities(run: Run) -> pl.DataFrame:
    """Returns what slow steps were seen busy with: one row a step, part and line.

    Columns: step, segment, part, what, file, line, function; duration, in ns, which is the share
    of the step's excess; and evaluation, in ns, the step's evaluation as it was counted.
    """
    steps = steps_of_run(run)
    steps = steps.with_columns(pl.col("queued").fill_null(0).clip(upper_bound=pl.col("duration")))
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
