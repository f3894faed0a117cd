"""The same line makes steps slow, again and again.

## What it means
Most steps take about the same time, and some take much longer. In those the program was seen at the
same line of its own.

In the ledger of the run: steps that take at least twice the median of their kind and 20 ms longer,
two or more of them seen at one line. Their waits for data, evaluations, compilations, garbage
collections and checkpoints are left out, and so is the time in which the thread was ready to run
and had no core, which Linux counts, and so are steps in which workers start and take the
cores: other rules tell of them. A function that samples of usual steps never show is what makes
steps slow: all its lines are one, and it is told on a busy machine, too.

## Why it costs
What comes seldom is in no median, and in few recordings: a log that is written, a picture that is
drawn, a file that is read, metrics of an epoch. Over the whole run it may be more than what every
step could save.

## What to do
Look at the line: do it less often, cheaper, or beside the program. Nobody can tell from outside
what of it is needed: the finding tells the time beyond the usual step as the most. It is reported
from a tenth of the run.

Where other programs took the cores while the run was recorded, computing is slow now and then
whatever the line does: run it again without them.

## Fires on
Every tenth step writes something.

    run | before 1 s
    run | 9 training 100 ms
    run | training 900 ms: program 800 ms at train.py:50 plot
    run | 9 training 100 ms
    run | training 900 ms: program 800 ms at train.py:50 plot
    run | 9 training 100 ms

## Silent on
A slow step that does not come again.

    run | before 1 s
    run | 9 training 100 ms
    run | training 900 ms: program 800 ms at train.py:50 plot
    run | 9 training 100 ms

Slow steps in which the thread had no core most of the time: other programs used them.

    run | before 1 s
    run | 9 training 100 ms
    run | training 900 ms: queued 780 ms, program 800 ms at train.py:50 backward
    run | 9 training 100 ms
    run | training 900 ms: queued 790 ms, program 800 ms at train.py:50 backward
    run | 9 training 100 ms

Slow steps that are evaluations.

    run | before 1 s
    run | 9 training 100 ms
    run | training 900 ms: evaluation 800 ms, program 800 ms at train.py:40 validate
    run | 9 training 100 ms
    run | training 900 ms: evaluation 800 ms, program 800 ms at train.py:40 validate
    run | 9 training 100 ms
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime.advice.detectors import recorded_facts
from selftime.advice.detectors.run_lines import reading_error, where_from_reading
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
)
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.recorded_cores import cores_used_by_others, usable_cores
from selftime.analysis.run.compilation_sites import iterators_with_segments
from selftime.analysis.run.sampled_lines import sampled_lines
from selftime.analysis.run.slow_steps import slow_step_activities, steps_of_run
from selftime.run import Run
from selftime.trace import Trace
from selftime.units import seconds_text, tenths_text

MIN_SLOW_STEPS: Final = 2
"""Smallest number of slow steps at one line for the rule to fire: one may be of the machine."""

MIN_SHARE_OF_RUN: Final = 0.02
"""Smallest share of the run that a line must take to be reported, as for any saving."""

MIN_SAMPLES_OF_USUAL_STEPS: Final = 30
"""Smallest number of samples of usual steps for a function in none of them to be of slow ones only:
what has a tenth of a usual step is then missed in 4 of 100 runs."""

MIN_SHARE_OF_REGULAR_STEPS: Final = 0.75
"""Smallest share of slow steps that lie as far from the last for that distance to be told."""

MAX_SHARE_OF_SLOW_STEPS: Final = 1 / 3
"""Largest share of the steps of a kind that may be slow: where more are, the steps are of two
sizes, such as calls within an optimizer's step and whole rounds of a loop, and none is unusual."""

MIN_SHARE_OF_CORES_USED_BY_OTHERS: Final = 0.25
"""Share of the cores used by other programs from which they may be what makes computing slow."""

PARTS_OF_OTHER_RULES: Final = ("checkpoint", "compile", "data_wait", "imports")
"""Parts of the run that other rules report."""


@rule(covers=("M8",), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    lines = _slow_time_by_line(trace.run)
    lines = lines.filter(pl.col("duration") >= MIN_SHARE_OF_RUN * trace.run.wall_ns)
    if not lines.height:
        yield Checked(
            "no source line recurs in slow steps for a notable share of the run", is_absent=True
        )
        return
    lack_of_cores = _lack_of_cores(trace)
    may_be_others = pl.col("is_computing") & ~pl.col("is_apart")
    is_other_programs = pl.lit(lack_of_cores is not None) & may_be_others
    for row in lines.filter(~is_other_programs).iter_rows(named=True):
        yield _finding(row)
    if lack_of_cores is not None and lines.select(may_be_others.any()).item():
        yield Unknown(lack_of_cores)


def _lack_of_cores(trace: Trace) -> str | None:
    """Returns what to record instead if other programs took cores that the threads need."""
    cores = usable_cores(trace)
    others = cores_used_by_others(trace)
    if cores is None or others is None or others < MIN_SHARE_OF_CORES_USED_BY_OTHERS * cores:
        return None
    if cores - others >= (recorded_facts.intra_op_thread_count(trace) or cores):
        return None
    return (
        f"a run without other programs: they used {tenths_text(others)} of the "
        f"{tenths_text(cores)} cores while this was recorded, which makes computing slow now and "
        "then"
    )


def _slow_time_by_line(run: Run) -> pl.DataFrame:
    """Returns by line how many ns longer than usual it made slow steps, the most first.

    What was seen in a step with an evaluation counts as evaluation as far as it lasted. A function
    that usual steps do not run, `is_apart`, is one line: the one at which most of it was seen.
    """
    starts = iterators_with_segments(run).filter("starts_workers")["segment"]
    steps = steps_of_run(run)
    is_slow = pl.col("excess") > 0
    of_two_sizes = steps.filter(is_slow.mean().over("kind") > MAX_SHARE_OF_SLOW_STEPS)["id"]
    left_out = pl.concat([starts, of_two_sizes])
    seen = slow_step_activities(run).filter(~pl.col("segment").is_in(left_out.implode()))
    whole = pl.col("duration").sum().over("step")
    other = (1 - pl.col("evaluation") / whole).clip(0, 1).fill_nan(0)
    own = seen.with_columns((pl.col("duration") * other).floor().cast(pl.Int64).alias("duration"))
    own = own.filter(
        ~pl.col("part").is_in(PARTS_OF_OTHER_RULES)
        & pl.col("file").is_not_null()
        & (pl.col("duration") > 0)
    )
    of_line = pl.col("duration").sum().over("file", "function", "line")
    most = pl.col("line").sort_by(of_line, descending=True).first().over("file", "function")
    own = _with_functions_apart(run, own).with_columns(
        line=pl.when("is_apart").then(most).otherwise("line")
    )
    place = ("file", "line", "function", "is_apart")
    lines = own.group_by(*place, maintain_order=True).agg(
        pl.col("duration").sum(),
        pl.col("step").n_unique().alias("steps"),
        pl.col("duration").sum().over("step").max().alias("longest"),
        every=_steps_between(),
        is_computing=2 * pl.col("duration").filter(pl.col("part") == "program").sum()
        > pl.col("duration").sum(),
    )
    return lines.filter(pl.col("steps") >= MIN_SLOW_STEPS).sort(
        "duration", descending=True, maintain_order=True
    )


def _with_functions_apart(run: Run, seen: pl.DataFrame) -> pl.DataFrame:
    """Adds `is_apart`: whether samples of usual steps show other functions, and never this one."""
    usual = sampled_lines(run).drop_nulls("function").select("file", "function", "samples")
    if usual["samples"].sum() < MIN_SAMPLES_OF_USUAL_STEPS:
        return seen.with_columns(is_apart=pl.lit(value=False))
    known = usual.select("file", "function").unique().with_columns(is_usual=pl.lit(value=True))
    joined = seen.join(known, on=["file", "function"], how="left", maintain_order="left")
    return joined.with_columns(is_apart=pl.col("is_usual").is_null()).drop("is_usual")


def _steps_between() -> pl.Expr:
    """Returns how many steps lie from one slow step to the next if mostly as many; else null.

    Null as well where each follows the other.
    """
    between = pl.col("step").cast(pl.Int64).unique().sort().diff().drop_nulls()
    usual = between.median()
    is_regular = (between == usual).mean() >= MIN_SHARE_OF_REGULAR_STEPS
    return pl.when(is_regular & (usual > 1)).then(usual)


def _finding(row: dict[str, Any]) -> Finding:
    time = seconds_text(row["duration"])
    title = f"{row['steps']} steps are slow at this line, {time} in all"
    if row["is_apart"]:
        title = (
            f"{row['steps']} steps run `{row['function']}`, which usual ones do not, {time} in all"
        )
    return Finding(
        title=title,
        where=where_from_reading(row),
        claim=RunClaim(row["duration"], noise_ns=reading_error(row["steps"])),
        confidence="medium",
        evidence=(
            Evidence("slow steps at the line", float(row["steps"]), "count"),
            Evidence("beyond the usual step", row["duration"] / row["steps"] / 1e6, "ms"),
            Evidence("most of it in one step", row["longest"] / 1e6, "ms"),
            *([Evidence("steps from one to the next", row["every"], "count")] * bool(row["every"])),
        ),
        fix=Fix("Do this less often, make it cheaper, or do it in another thread or process."),
    )
