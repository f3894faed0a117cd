"""Compiled code is compiled again and again.

## What it means
`torch.compile` made code for one kind of arguments, met arguments that do not satisfy its guards,
and compiled the function anew, in step after step.

## Why it costs
A compilation takes tenths of a second to many seconds, in which nothing else of the program runs.
After eight versions of a function (`recompile_limit`) PyTorch gives up and runs it uncompiled.

## What to do
Make what differs a tensor: a Python number that changes from call to call is compiled in as a
constant. Where sizes differ, say so with `torch._dynamo.mark_dynamic(x, 0)` or pad to a few sizes.
`TORCH_LOGS=recompiles` prints which guard failed; the trace does not hold it.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.counted_steps import covered
from selftime.advice.detectors.places import by_line
from selftime.advice.gate import gate
from selftime.advice.replay import Cut
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.trace import Trace

LEAST_STEPS: Final = 2
"""A recompilation in one step only is one that made the code general; it is paid once."""

SAVED_AT_LEAST: Final = 0.75
"""Of the time: code for all sizes may run slower than code for one."""

CODE: Final = """torch._dynamo.mark_dynamic(batch, 0)     # sizes that differ
scale = torch.tensor(scale)              # a number that differs from call to call"""
"""How what differs is kept out of the code."""


@rule(covers=("H1",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    steps = _steps(trace)
    again = _recompilations(trace)
    step = np.searchsorted(steps["start"].to_numpy(), again["start"].to_numpy(), "right") - 1
    again = again.with_columns(step=pl.Series(step)).filter(pl.col("step") >= 0)
    if limits is None or again["step"].n_unique() < LEAST_STEPS:
        yield Checked("no function was compiled again in several steps", is_absent=True)
        return
    whole = float((steps["end"] - steps["start"]).mean() or 0) / 1e6  # type: ignore[arg-type]  # integers
    for place, part in by_line(trace, again):
        yield limits.of_cause(0.0).judge(_finding(part, place, whole, steps.height))


def _steps(trace: Trace) -> pl.DataFrame:
    """The steps after the first, in which all is compiled that can be known."""
    steps = assessed_steps(trace).select("start", "end").sort("start")
    return steps.slice(1) if steps.height > LEAST_STEPS else steps


def _recompilations(trace: Trace) -> pl.DataFrame:
    """Compilations of functions that had been compiled before: id, track, start, end, number."""
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    whole = filter_by_name(host, names.is_graph_compilation).select(
        "id", "track", "start", end=pl.col("start") + pl.col("duration")
    )
    numbered = filter_by_name(host, lambda name: names.recompilation_count(name) is not None)
    told = [names.recompilation_count(name) for name in numbered["name"].cast(pl.String).to_list()]
    marks = numbered.select("track", at="start", number=pl.Series(told, dtype=pl.Int64))
    found = whole.sort("start").join_asof(
        _nearest(marks),
        left_on="start",
        right_on="at",
        by="track",
        check_sortedness=False,
        strategy="nearest",
    )
    return found.filter(pl.col("number") >= 1)


def _nearest(marks: pl.DataFrame) -> pl.DataFrame:
    return marks.sort("at")


def _finding(part: pl.DataFrame, place: Where, step_ms: float, steps: int) -> Finding:
    when = covered(part)
    spent = min(float((when.ends - when.starts).sum()) / 1e6 / steps, step_ms)
    return Finding(
        title=f"A function is compiled again {part.height} times in {steps} steps",
        where=place,
        count_per_step=part.height / steps,
        saving=Saving.of_step(
            step_ms,
            spent,
            method="model",
            low_ms=SAVED_AT_LEAST * spent,
            high_ms=spent,
            upper_ms=spent,
        ),
        confidence="high",
        evidence=(
            Evidence("compilation time a step", spent, "ms", tuple(part["id"].head(8).to_list())),
            Evidence("versions of the function", _versions(part), "count"),
        ),
        fix=Fix(
            "Make numbers that change tensors, and mark sizes that change as dynamic; "
            "`TORCH_LOGS=recompiles` names the argument.",
            CODE,
        ),
        changes=(Cut(when),),
    )


def _versions(part: pl.DataFrame) -> float:
    number: int = max(part["number"].to_list())
    return float(number + 1)
