"""Corrects the kinds of steps that were found from events that a more reliable kind superseded.

A program that begins to train after it has called modules for some time shows its steps by these
calls first. A line of the ledger says so, once the optimizer steps. What these steps were is known
when the whole ledger is: the first steps of the same work, iterations of the same loop that only
prepared it, or work of their own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from selftime.ledger_format import (
    BEFORE_FIRST_STEP,
    MIN_PRELUDE_STEPS,
    ROLLOUT_KIND,
    UNUSUAL_KIND_SUFFIX,
)
from selftime.run import COUNTED


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
    for line in lines:
        told = line.get("superseded")
        if isinstance(told, dict) and _is_complete(told):
            segments = _with_kinds_corrected(segments, told, kinds, loop_lines)
    return segments


def _is_complete(told: Mapping[str, Any]) -> bool:
    return all(type(told.get(name)) is int for name in ("start", "end", "by"))


def _with_kinds_corrected(
    segments: pl.DataFrame,
    told: Mapping[str, Any],
    kinds: Mapping[int, str | None],
    loop_lines: Mapping[str, tuple[str, int]],
) -> pl.DataFrame:
    is_superseded = pl.col("start").is_between(told["start"], told["end"], closed="left")
    is_step = is_superseded & (pl.col("kind") >= 0)
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
    return segments.with_columns(
        pl.when(is_step).then(pl.lit(kind, pl.Int64)).otherwise("kind").alias("kind")
    )


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
