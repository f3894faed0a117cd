"""Finds the evaluations of a run: one may reach over several segments of its ledger."""

from typing import Any, Final

import polars as pl

from selftime.analysis.run.segment_lines import longest_line_of_segments
from selftime.analysis.run.slow_steps import checkpoint_time_by_step
from selftime.ledger_format import (
    MODULE_STEP_KIND,
    ROLLOUT_KIND,
    UNCOUNTED_STEPS_NAME,
    UNUSUAL_KIND_SUFFIX,
)
from selftime.run import Run

_KINDS_WITHIN_EVALUATIONS: Final = (MODULE_STEP_KIND, "batch", UNCOUNTED_STEPS_NAME)
"""Kinds of steps of which an evaluation may consist: calls of modules and batches of data. A step
of training, or an iteration of the program's main loop, contains an evaluation of its own."""


KINDS_WITHOUT_TRAINING: Final = (MODULE_STEP_KIND, ROLLOUT_KIND)
"""Kinds of steps in which a model is called without being trained."""

MIN_SHARE_OF_STEPS: Final = 0.9
"""Smallest share of the steps with time in evaluation mode at which it is a part of them."""

MAX_STEPS_PER_EVALUATION: Final = 2.0
"""Longest time in evaluation mode that is a part of a step, in times of the rest of that step."""


def is_short_part_of_every_step(run: Run) -> bool:
    """Returns whether nearly every step of training holds a short time in evaluation mode."""
    own = pl.col("kind").cast(pl.String).str.strip_suffix(UNUSUAL_KIND_SUFFIX)
    steps = run.segments.filter(
        pl.col("kind").is_not_null(), own.is_in(KINDS_WITHOUT_TRAINING).not_()
    )
    held = steps.filter(pl.col("evaluation") > 0)
    if not held.height or held.height < MIN_SHARE_OF_STEPS * steps.height:
        return False
    rest = (pl.col("duration") - pl.col("evaluation")).median().alias("rest")
    evaluation, rest_ns = held.select(pl.col("evaluation").median(), rest).row(0)
    return bool(evaluation <= MAX_STEPS_PER_EVALUATION * rest_ns)


def evaluations_of_run(run: Run) -> pl.Series:
    """Returns the time (ns) of each evaluation, without the checkpoints seen within it.

    Segments that follow each other, each with some evaluation, are one where they are no steps of
    training: the model's calls within an evaluation.
    """
    times = run.segments.select(
        evaluation_number().alias("evaluation"), _time_without_checkpoints(run).alias("time")
    )
    whole = times.drop_nulls().group_by("evaluation", maintain_order=True).agg(pl.col("time").sum())
    return whole.filter(pl.col("time") > 0)["time"]


def evaluation_number() -> pl.Expr:
    """Returns for each segment of a run which evaluation it holds, from 1; null for none."""
    is_evaluation = pl.col("evaluation") > 0
    kind = pl.col("kind").cast(pl.String).str.strip_suffix(UNUSUAL_KIND_SUFFIX)
    # What has no kind is no step: calls of the model before the first step of training.
    may_continue = kind.is_in(_KINDS_WITHIN_EVALUATIONS).fill_null(value=True)
    continues = is_evaluation.shift(fill_value=False) & may_continue & may_continue.shift()
    begins = is_evaluation & ~continues.fill_null(value=False)
    return pl.when(is_evaluation).then(begins.cast(pl.Int64).cum_sum())


def line_of_evaluations(run: Run) -> dict[str, Any] | None:
    """Returns the line that stacks show for longest in segments with an evaluation.

    A step that evaluates also trains: lines that stacks show in steps without an evaluation are
    left out. A row with file, line and function; None where no other line was read.
    """
    evaluates = run.segments.filter(pl.col("evaluation") > 0)["id"]
    others = run.segments.filter(
        (pl.col("evaluation") == 0) & pl.col("kind").is_in(KINDS_WITHOUT_TRAINING).not_()
    )["id"]
    return longest_line_of_segments(run, evaluates, not_in=others)


def _time_without_checkpoints(run: Run) -> pl.Series:
    saved = checkpoint_time_by_step(run).group_by("segment").agg(pl.col("duration").sum())
    joined = run.segments.join(
        saved.select(pl.col("segment").alias("id"), pl.col("duration").alias("saved")),
        on="id",
        how="left",
        maintain_order="left",
    )
    beside = pl.col("duration") - pl.col("evaluation")
    within = (pl.col("saved").fill_null(0) - beside).clip(lower_bound=0)
    return joined.select((pl.col("evaluation") - within).alias("time"))["time"]
