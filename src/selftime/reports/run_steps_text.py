"""Writes how many steps a run made of each kind, with the lines of their loops."""

from collections.abc import Iterable
from typing import Any, Final

import polars as pl

from selftime.analysis.run.sampled_lines import sampled_lines
from selftime.analysis.run.step_kinds import step_kinds
from selftime.ledger_format import ROLLOUT_KIND, UNCOUNTED_STEPS_NAME, UNUSUAL_KIND_SUFFIX
from selftime.reports.advice.wording import file_and_line_text
from selftime.reports.plain import plain
from selftime.run import Run
from selftime.units import count_text, whole_percent_text

_MAX_KINDS: Final = 3
"""Largest number of kinds of steps that the text counts apart."""


def has_uncounted_steps(run: Run) -> bool:
    """Returns whether the run made steps that the ledger did not count one by one."""
    kinds = run.segments["kind"].cast(pl.String)
    return bool((kinds == UNCOUNTED_STEPS_NAME).any())


def text_of_steps(run: Run, count: int, root: str | None) -> str:
    """Returns how many steps a run made of each kind of work, and the lines of their loops."""
    families = _steps_by_work(run)
    counted = families.filter(pl.col("count") > 0)
    more = "more than " if has_uncounted_steps(run) else ""
    if not count:
        return f"steps that were not counted{_loop_text(run, families['kinds'], root)}"
    if counted.height == 1:
        where = _loop_text(run, families["kinds"], root)
        where += _passes_text(run, counted["kinds"][0].to_list())
        where += _sampled_text(run, counted["kinds"][0].to_list(), root)
        return f"{more}{number_text(count, 'step')}{where}"
    texts = []
    for work, steps, kinds in counted.head(_MAX_KINDS).select("work", "count", "kinds").rows():
        where = _loop_text(run, [kinds], root) + _passes_text(run, kinds)
        where += _sampled_text(run, kinds, root)
        texts.append(f"{number_text(steps, step_noun(work))}{where}")
    left = count - int(counted["count"].head(_MAX_KINDS).sum())
    return more + ", ".join([*texts, *([number_text(left, "other step")] if left else [])])


def step_noun(kind: str) -> str:
    """Returns what one step of a kind is called, such as `training step`.

    >>> step_noun("training"), step_noun("step"), step_noun("optimizer step")
    ('training step', 'step', 'optimizer step')
    """
    name = plain(kind)
    return name if kind == ROLLOUT_KIND or name.endswith("step") else f"{name} step"


def _steps_by_work(run: Run) -> pl.DataFrame:
    """Returns work, kinds, count: the steps of a run by kind of work, most time first.

    Steps that differ from most, such as those with an evaluation, are of the same work. Those that
    were not counted one by one are work of their own, with the count 0.
    """
    kind = pl.col("kind").cast(pl.String)
    is_counted = kind != UNCOUNTED_STEPS_NAME
    return (
        run.segments.drop_nulls("kind")
        .group_by(kind.str.strip_suffix(UNUSUAL_KIND_SUFFIX).alias("work"), maintain_order=True)
        .agg(
            kind.unique(maintain_order=True).alias("kinds"),
            is_counted.sum().cast(pl.Int64).alias("count"),
            pl.col("duration").sum(),
        )
        .sort("duration", descending=True, maintain_order=True)
    )


def _loop_text(run: Run, kinds: Iterable[list[str]], root: str | None) -> str:
    """Returns text with file and line of the first known loop of kinds of steps; may be empty."""
    known = [run.loop_lines[kind] for some in kinds for kind in some if kind in run.loop_lines]
    if not known:
        return ""
    file, line = known[0]
    return f" of the loop at {file_and_line_text(file, line, root)}"


def _passes_text(run: Run, kinds: list[str]) -> str:
    """Returns how many backward passes each of some steps makes; empty for one, or none."""
    passes = step_kinds(run).filter(pl.col("kind").is_in(kinds)).drop_nulls("passes")["passes"]
    return f", {passes[0]:g} backward passes each" if passes.len() and passes[0] > 1 else ""


def _sampled_text(run: Run, kinds: list[str], root: str | None) -> str:
    """Returns the line that takes most of steps of which none was recorded; may be empty."""
    of_kinds = run.segments.filter(pl.col("kind").cast(pl.String).is_in(kinds))
    lines = sampled_lines(run).filter(pl.col("kind").is_in(kinds)).drop_nulls("file")
    if of_kinds["recorded"].any() or not lines.height:
        return ""
    row = lines.row(0, named=True)
    share = whole_percent_text(row["share"])
    return f", {share} of {number_text(row['samples'], 'sample')}{at_file_and_line_text(row, root)}"


def at_file_and_line_text(row: dict[str, Any], root: str | None) -> str:
    """Returns " at", and the file and line of a row; empty if the row has none."""
    if not row.get("file"):
        return ""
    return f" at {file_and_line_text(row['file'], row['line'], root)}"


def number_text(count: int, noun: str) -> str:
    """Returns a count with its noun, such as `1,200 steps`."""
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"
