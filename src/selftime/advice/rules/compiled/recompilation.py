"""Compiled code is compiled again and again.

## What it means
`torch.compile` made code for one kind of arguments, met arguments that do not satisfy its guards,
and compiled the function anew, in step after step.

In the trace: compilations beside a record that counts earlier ones of the same function, in two
steps or more.

## Why it costs
A compilation takes tenths of a second to many seconds, in which nothing else of the program runs.
After eight versions of a function (`recompile_limit`) PyTorch gives up and runs it uncompiled.

## What to do
Make what differs a tensor: a Python number that changes from call to call is compiled in as a
constant. Where sizes differ, say so with `torch._dynamo.mark_dynamic(x, 0)` or pad to a few sizes.
`TORCH_LOGS=recompiles` prints which guard failed; the trace does not hold it.

The estimate removes the compilations from the mean step; at least three quarters of that, as code
for all sizes may be slower.

## Fires on
A compilation in every step.

    column = 10 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | ccccccccaaccccccccaaccccccccaaccccccccaa
    mark 1 | n         n         n         n
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    c = _compile.compile_inner (dynamo_timed); line = train.py:16 main
    n = entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/3
    a = Torch-Compiled Region: 0/3

## Silent on
The first compilation, before which nothing can run.

    column = 10 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | ccccccccaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    mark 1 | n
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    c = _compile.compile_inner (dynamo_timed)
    n = entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/0
    a = Torch-Compiled Region: 0/0

One recompilation, after which the code is good for all that comes.

    column = 10 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | aaaaaaaaaaccccccccaaaaaaaaaaaaaaaaaaaaaa
    mark 1 |           n
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    c = _compile.compile_inner (dynamo_timed)
    n = entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/1
    a = Torch-Compiled Region: 0/1
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import operator_intervals
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import ModelledClaim, SavingRange
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace

MIN_RECOMPILING_STEPS: Final = 2
"""Smallest number of recompiling steps to report: the first recompilation makes the code
general."""

MIN_SAVED_COMPILATION_SHARE: Final = 0.75
"""Smallest share of compilation time that the fix saves; the rest allows for slower general
code."""

FIX_CODE: Final = """torch._dynamo.mark_dynamic(batch, 0)     # sizes that differ
scale = torch.tensor(scale)              # a number that differs"""
"""Example code of the fix: mark sizes as dynamic, and pass numbers that change as tensors."""


@rule(covers=("H1",), needs=("operators",), min_steps=MIN_RECOMPILING_STEPS)
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    step_count = _steps_after_first_compilation(trace)
    again = _recompilations(trace)
    step = np.searchsorted(step_count["start"].to_numpy(), again["start"].to_numpy(), "right") - 1
    again = again.with_columns(step=pl.Series(step)).filter(pl.col("step") >= 0)
    if step_stats is None or again["step"].n_unique() < MIN_RECOMPILING_STEPS:
        compiling = _compiling_step_count(trace, step_count)
        yield Checked(
            "no function was compiled again in several steps"
            if compiling < MIN_RECOMPILING_STEPS
            else f"{compiling} steps compile; not in several of them what was compiled before",
            is_absent=compiling < MIN_RECOMPILING_STEPS,
        )
        return
    whole = float((step_count["end"] - step_count["start"]).mean() or 0) / 1e6  # type: ignore[arg-type]  # integers
    for location, compilations in operators_by_line(trace, again):
        yield _finding(compilations, location, whole, step_count.height)


def _compiling_step_count(trace: Trace, steps: pl.DataFrame) -> int:
    compiling = filter_by_name(slices_on(trace, "host"), names.is_graph_compilation)["start"]
    step = np.searchsorted(steps["start"].to_numpy(), compiling.to_numpy(), "right")
    return int(np.unique(step[step > 0]).size)


def _steps_after_first_compilation(trace: Trace) -> pl.DataFrame:
    """Returns all steps except the first, or all if there are at most `MIN_RECOMPILING_STEPS`.

    Columns: start and end in ns.
    """
    step_count = steps_with_counted_flags(trace).select("start", "end").sort("start")
    return step_count.slice(1) if step_count.height > MIN_RECOMPILING_STEPS else step_count


def _recompilations(trace: Trace) -> pl.DataFrame:
    """Returns one row per compilation of a function that had been compiled before.

    Columns: id, track, start and end in ns, and number, how often the code was compiled before.
    """
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    whole = filter_by_name(host, names.is_graph_compilation).select(
        "id", "track", "start", end=pl.col("start") + pl.col("duration")
    )
    numbered = filter_by_name(host, lambda name: names.recompilation_count(name) is not None)
    told = [names.recompilation_count(name) for name in numbered["name"].cast(pl.String).to_list()]
    marks = numbered.select("track", at="start", number=pl.Series(told, dtype=pl.Int64))
    found = whole.sort("start").join_asof(
        _recompilation_marks_sorted_by_time(marks),
        left_on="start",
        right_on="at",
        by="track",
        check_sortedness=False,
        strategy="nearest",
    )
    return found.filter(pl.col("number") >= 1)


def _recompilation_marks_sorted_by_time(marks: pl.DataFrame) -> pl.DataFrame:
    return marks.sort("at")


def _finding(
    compilations: pl.DataFrame, location: Where, step_ms: float, step_count: int
) -> Finding:
    when = operator_intervals(compilations)
    spent = min(float((when.ends - when.starts).sum()) / 1e6 / step_count, step_ms)
    return Finding(
        title=f"A function is compiled again {compilations.height} times in {step_count} steps",
        where=location,
        count_per_step=compilations.height / step_count,
        claim=ModelledClaim(
            spent,
            spent,
            changes=(CutHostTime(when),),
            interval=SavingRange(MIN_SAVED_COMPILATION_SHARE, None),
            step_ms=step_ms,
            method="model",
            noise_ms=0.0,
        ),
        confidence="high",
        evidence=(
            Evidence(
                "compilation time a step",
                spent,
                "ms",
                tuple(compilations["id"].head(8).to_list()),
                compilations["id"].to_numpy(),
            ),
            Evidence("versions of the function", _count_compiled_versions(compilations), "count"),
        ),
        fix=Fix(
            "Make numbers that change tensors, and mark sizes that change as dynamic; "
            "`TORCH_LOGS=recompiles` names the argument.",
            FIX_CODE,
        ),
    )


def _count_compiled_versions(compilations: pl.DataFrame) -> float:
    number: int = max(compilations["number"].to_list())
    return float(number + 1)
