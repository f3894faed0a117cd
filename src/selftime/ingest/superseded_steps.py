"""Corrects the kinds of steps that were found from events that a more reliable kind superseded.

A program that begins to train after it has called modules for some time shows its steps by these
calls first. A line of the ledger says so, once the optimizer steps. What these steps were is known
when the whole ledger is: the first steps of the same work, iterations of the same loop that only
prepared it, the calls of one phase, such as a rollout, or work of their own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from selftime.ledger_format import (
    BEFORE_FIRST_STEP,
    MIN_PRELUDE_STEPS,
    MODULE_STEP_KIND,
    ROLLOUT_KIND,
    UNUSUAL_KIND_SUFFIX,
)
from selftime.run import COUNTED, PHASES


def with_superseded_steps(
    segments: pl.DataFrame,
    lines: Iterable[Mapping[str, Any]],
    kinds: Mapping[int, str | None],
    loop_lines: Mapping[str, tuple[str, int]],
) -> pl.DataFrame:
    """Returns the segments with the kinds that superseded steps are found to have.

    Args:
        segments: Columns start (ns) and kind (number), among others, in order.
        lines: The decoded lines of the ledger.
        kinds: The name of each kind, by its number; None of one that is no step.
        loop_lines: The file and line of each loop whose iterations are steps, by the kind's name.
    """
    superseded = [line["superseded"] for line in lines if _is_complete(line.get("superseded"))]
    phases = {told["start"] for told in superseded if told.get("is_phase") is True}
    for told in superseded:
        if told.get("is_phase") is True:
            segments = _with_phase(segments, told, kinds)
        elif told["start"] not in phases:  # else what was told of them at first is not so
            segments = _with_kinds_corrected(segments, told, kinds, loop_lines)
    return segments


def with_acting(segments: pl.DataFrame, lines: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Returns the segments without evaluations before the model was known to act in them.

    A model that acts in an environment may be in evaluation mode.
    """
    told = (line.get("acts_in_environment") for line in lines)
    known = max((instant for instant in told if type(instant) is int), default=None)
    if known is None:
        return segments
    is_acting = pl.col("start") < known
    return segments.with_columns(
        pl.when(is_acting).then(0).otherwise("evaluation").alias("evaluation")
    )


def _is_complete(told: object) -> bool:
    return isinstance(told, dict) and all(
        type(told.get(name)) is int for name in ("start", "end", "by")
    )


def _with_phase(
    segments: pl.DataFrame, told: Mapping[str, Any], kinds: Mapping[int, str | None]
) -> pl.DataFrame:
    """Returns the segments with superseded module calls as one phase; the time before is setup."""
    is_superseded = pl.col("start").is_between(told["start"], told["end"], closed="left")
    is_step = is_superseded & (pl.col("kind") >= 0)
    calls = [number for number, name in kinds.items() if _work(name) == MODULE_STEP_KIND]
    first = segments.filter(is_step & pl.col("kind").is_in(calls))["start"].min()
    if first is not None:
        is_phase = is_superseded & (pl.col("start") >= first)
        segments = _with_segments_joined(segments, is_phase, told["by"], is_recorded=False)
        is_step &= pl.col("start") < first
    return _with_kind(segments, is_step, BEFORE_FIRST_STEP)


def _with_kind(segments: pl.DataFrame, is_chosen: pl.Expr, kind: int) -> pl.DataFrame:
    return segments.with_columns(
        pl.when(is_chosen).then(pl.lit(kind, pl.Int64)).otherwise("kind").alias("kind")
    )


def _with_segments_joined(
    segments: pl.DataFrame, is_joined: pl.Expr, kind: int, *, is_recorded: bool | None = None
) -> pl.DataFrame:
    """Returns the segments with some that follow each other as one of a kind.

    Its backward pass, optimizer and recording are those of the last of them, unless `is_recorded`
    says whether it is recorded. What precedes its backward pass is not known.
    """
    rows = segments.with_columns(is_joined.alias("is_joined"))
    joined = rows.filter("is_joined")
    if not joined.height:
        return segments
    whole = joined.select(
        _joined_column(name, kind, is_recorded).cast(segments.schema[name])
        for name in segments.columns
    )
    first = int(joined["start"][0])
    others = rows.filter(~pl.col("is_joined")).drop("is_joined")
    before, after = pl.col("start") < first, pl.col("start") >= first
    return pl.concat([others.filter(before), whole, others.filter(after)])


def _joined_column(name: str, kind: int, is_recorded: bool | None) -> pl.Expr:
    """Returns the value of a column in a segment that several are joined to."""
    if name == "kind":
        return pl.lit(kind).alias(name)
    if name == "recorded" and is_recorded is not None:
        return pl.lit(int(is_recorded)).alias(name)
    if name in ("duration", "queued", "passes", *COUNTED):
        return pl.col(name).sum()
    if name == PHASES[0]:
        return pl.lit(None).alias(name)
    return pl.col(name).first() if name == "start" else pl.col(name).last()


def _with_kinds_corrected(
    segments: pl.DataFrame,
    told: Mapping[str, Any],
    kinds: Mapping[int, str | None],
    loop_lines: Mapping[str, tuple[str, int]],
) -> pl.DataFrame:
    is_superseded = pl.col("start").is_between(told["start"], told["end"], closed="left")
    is_step = is_superseded & (pl.col("kind") >= 0)
    if told.get("is_part_of_step") is True:
        is_part = pl.col("start").is_between(told["start"], told["end"])  # with the step itself
        return _with_segments_joined(segments, is_part, told["by"])
    if told.get("is_evaluation") is True:
        segments, kind = _with_evaluation(segments, is_step), BEFORE_FIRST_STEP
    elif told.get("is_same_work") is True:
        kind = told["by"]
    elif told.get("is_preparation") is True:
        kind = BEFORE_FIRST_STEP
    else:
        old = segments.filter(is_step)["kind"]
        if _is_own_work(
            old, segments.filter(~is_superseded)["kind"], told["by"], kinds, loop_lines
        ):
            return segments
        kind = BEFORE_FIRST_STEP
    return _with_kind(segments, is_step, kind)


def _with_evaluation(segments: pl.DataFrame, is_evaluation: pl.Expr) -> pl.DataFrame:
    """Returns the segments with all that was not counted, of those chosen, as evaluation."""
    other = pl.sum_horizontal(name for name in COUNTED if name != "evaluation")
    left = (pl.col("duration") - other).clip(lower_bound=0)
    return segments.with_columns(
        pl.when(is_evaluation).then(left).otherwise("evaluation").alias("evaluation")
    )


def _is_own_work(
    superseded: pl.Series,
    others: pl.Series,
    by: int,
    kinds: Mapping[int, str | None],
    loop_lines: Mapping[str, tuple[str, int]],
) -> bool:
    """Returns whether superseded steps are work of their own, such as of a loop before training."""
    if superseded.len() < MIN_PRELUDE_STEPS:
        return False
    loops = {loop_lines.get(_work(kinds.get(number))) for number in superseded.unique()} - {None}
    if loop_lines.get(ROLLOUT_KIND) in loops:
        return False
    work = _work(kinds.get(by))
    same = [number for number, name in kinds.items() if _work(name) == work]
    if int(others.is_in(same).sum()) < superseded.len():
        return True
    return loop_lines.get(work) not in loops


def _work(name: str | None) -> str:
    return (name or "").removesuffix(UNUSUAL_KIND_SUFFIX)
