"""Hooks or modes run Python code around every operator or layer.

## What it means
A `__torch_function__` or `__torch_dispatch__` of a mode or of a subclass of tensors sees every
operator, or hooks run before and after each layer. Often they are left from debugging or measuring.

In the trace: Python frames of such handlers, or functions of the program that a module's call runs
beside `forward` and in which no layer runs, four times a step or more.

## Why it costs
Each turns one operator of some microseconds into tens of microseconds of Python. Measured: a
`TorchFunctionMode` that does nothing doubles the step of a small transformer. On a device that the
host must feed, the step waits for it.

## What to do
Remove what was for debugging. Register hooks only for the steps that need them, and keep what they
collect on the device. A mode that must stay should return early. `torch.set_default_device` is such
a mode: pass `device=` in place of it, or use `with torch.device(...)` where the model is built.
Take a plain tensor of a subclass, with `x.as_subclass(torch.Tensor)`, before operators that need
nothing of the subclass.

The estimate removes the frames' time; for handlers of operators without the operators within.

## Fires on
A mode that sees every operator.

    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffff
    python 1 | oooo oooo oooo oooo oooo oooo oooo oooo
    cpu 1    |   m    m    m    m    m    m    m    m
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    o = debug.py(12): __torch_function__
    m = aten::mm

Hooks of layers.

    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | cccccccccccccccccccccccccccccccccccccccc
    python 1 | gghh gghh gghh gghh gghh gghh gghh gghh
    cpu 1    |  m    m    m    m    m    m    m    m
    s = ProfilerStep#1
    t = ProfilerStep#2
    c = torch/nn/modules/module.py(1780): _call_impl
    g = net.py(9): forward
    h = debug.py(20): record
    m = aten::mm

## Silent on
Modules that call their `forward`.

    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | cccccccccccccccccccccccccccccccccccccccc
    python 1 | gg   gg   gg   gg   gg   gg   gg   gg
    cpu 1    |  m    m    m    m    m    m    m    m
    s = ProfilerStep#1
    t = ProfilerStep#2
    c = torch/nn/modules/module.py(1780): _call_impl
    g = net.py(9): forward
    m = aten::mm

A mode while the device works on what it has.

    column = 10 us
    mark 1   | sssssssssssssssssssstttttttttttttttttttt
    python 1 | ffffffffffffffffffffffffffffffffffffffff
    python 1 | oooo oooo oooo oooo oooo oooo oooo oooo
    cpu 1    |   m    m    m    m    m    m    m    m
    call 1   |   m    m    m    m    m    m    m    m
    gpu 7    |   kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = train.py(3): main
    o = debug.py(12): __torch_function__
    m = aten::mm
    k = gemm
"""

import ast
from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    significance_limits_for_cause,
    slices_in_counted_steps,
    times_of_slices_named,
)
from selftime.advice.detectors.source_lines import LineSlices
from selftime.advice.lines.line_from_source import class_of_place
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.frame_origins import parse_frame_of_trace
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length, subtract
from selftime.names.tensor_operators import intercepts_operators, is_module_call
from selftime.nesting import NO_SLICE
from selftime.trace import Trace
from selftime.units import count_text, whole_percent_text

MIN_HOOK_CALLS_PER_STEP: Final = 4
"""Smallest number of calls of a hook per step to report."""

MIN_HOOK_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in a hook to report; recording Python frames alone adds a third."""

SUBCLASS_FIX_CODE: Final = """# before many operators:
x = x.as_subclass(torch.Tensor)
# where the subclass is needed again:
x = x.as_subclass(Tagged)"""
"""Example code of the fix of a subclass of tensors: operators run on a plain tensor."""

FIX_CODE: Final = """handle = layer.register_forward_hook(record)
...                                   # only the steps that need it
handle.remove()"""
"""Example code of the fix: register a hook only for the steps that need it."""


@rule(covers=("D8",), needs=("stacks",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    found = [*_operator_handlers(trace), *_module_hooks(trace)]
    if step_stats is None or not found:
        yield Checked("no Python hook or mode runs around the operators or layers", is_absent=True)
        return
    if slices_in_counted_steps(
        trace, filter_by_name(slices_on(trace, "host"), names.is_capture_begin)
    ).height:
        yield Checked("the steps capture a CUDA graph, which later runs without Python")
        return
    for description, hook_calls, times in found:
        spent = step_stats.scaled_to_typical_step(length(times) / counted_step_count(trace) / 1e6)
        if spent < MIN_HOOK_SHARE_OF_STEP * step_stats.step_ms:
            least = whole_percent_text(MIN_HOOK_SHARE_OF_STEP)
            yield Checked(
                f"{description} ({hook_calls.where}) takes less than {least} of the step", spent
            )
        else:
            own = significance_limits_for_cause(trace, step_stats, times)
            yield _finding(trace, own, description, hook_calls, times)


def _operator_handlers(trace: Trace) -> Iterator[tuple[str, LineSlices, Intervals]]:
    """Yields (description, calls, intervals) of each function that runs around every operator."""
    frames = filter_by_name(_python_frames_in_steps(trace), intercepts_operators)
    own = frames.filter(~_are_called_by(trace, frames, frames["id"]))
    ops = covered_time(outermost_operators(trace))
    for hook_calls in _frequently_called_functions(trace, own):
        yield "a handler of every operator", hook_calls, subtract(hook_calls.times, ops)


def _module_hooks(trace: Trace) -> Iterator[tuple[str, LineSlices, Intervals]]:
    """Yields (description, calls, intervals) of each hook that modules call besides `forward`."""
    frames = _python_frames_in_steps(trace)
    calls = filter_by_name(slices_on(trace, "python"), is_module_call)["id"]
    beside = frames.filter(_are_called_by(trace, frames, calls))
    beside = filter_by_name(beside, partial(_may_be_module_hook, trace))
    work = np.sort(
        filter_by_name(outermost_operators(trace), names.is_layer_operator)["start"].to_numpy()
    )
    begin = beside["start"].to_numpy()
    end = begin + beside["duration"].to_numpy()
    idle = pl.Series(np.searchsorted(work, begin) == np.searchsorted(work, end), dtype=pl.Boolean)
    for hook_calls in _frequently_called_functions(trace, beside.filter(idle)):
        yield "a hook of layers", hook_calls, hook_calls.times


def _python_frames_in_steps(trace: Trace) -> pl.DataFrame:
    """Returns the Python frames of the measured steps that are not part of a compilation."""
    frames = slices_in_counted_steps(trace, slices_on(trace, "python"))
    return frames.filter(
        ~begins_during_intervals(frames, times_of_slices_named(trace, names.is_compilation))
    )


def _are_called_by(trace: Trace, frames: pl.DataFrame, caller_ids: pl.Series) -> pl.Series:
    """Returns for each frame whether the slice that called it is one of `caller_ids`."""
    marked = np.zeros(trace.slices.height, bool)
    marked[caller_ids.to_numpy()] = True
    parent = frames["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    found = (parent != NO_SLICE) & (marked[np.maximum(parent, 0)] if marked.size else False)
    return pl.Series(found, dtype=pl.Boolean)


def _may_be_module_hook(trace: Trace, frame_name: str) -> bool:
    known = parse_frame_of_trace(trace, frame_name)
    if known is None or intercepts_operators(frame_name):
        return False
    return known.origin == "user" and known.function != "forward"


def _frequently_called_functions(trace: Trace, frames: pl.DataFrame) -> Iterator[LineSlices]:
    for name in frames["name"].unique(maintain_order=True):
        same = frames.filter(pl.col("name") == name)
        if same.height >= MIN_HOOK_CALLS_PER_STEP * counted_step_count(trace):
            known = names.parse_frame(str(name))
            told = Where(known.file, known.line, known.function, "definition") if known else Where()
            yield LineSlices(told, same)


def _finding(
    trace: Trace,
    step_stats: StepStatistics,
    description: str,
    hook_calls: LineSlices,
    times: Intervals,
) -> Finding:
    steps = counted_step_count(trace)
    count = hook_calls.slices.height / steps
    spent = step_stats.scaled_to_typical_step(length(times) / steps / 1e6)
    function = hook_calls.where.function or "it"
    subclass = _tensor_subclass(trace, hook_calls.where)
    title = f"`{function}`, {description}, runs {count_text(count)} times a step"
    fix = Fix("Remove it, or register it only for the steps that need it.", FIX_CODE)
    if subclass is not None:
        title = (
            f"The tensor subclass `{subclass}` runs Python around {count_text(count)} operators a "
            "step"
        )
        text = f"Run operators that need nothing of `{subclass}` on a plain tensor."
        fix = Fix(text, SUBCLASS_FIX_CODE.replace("Tagged", subclass))
    return Finding(
        title=title,
        where=hook_calls.where,
        count_per_step=count,
        claim=RemovalClaim((CutHostTime(times),), noise_ms=step_stats.noise_ms),
        confidence="medium",
        evidence=(
            Evidence(
                "Python time of the hook"
                if subclass is None
                else f"Python time of the dispatch of `{subclass}`",
                spent,
                "ms",
            ),
            Evidence("calls a step", count, "count"),
        ),
        fix=fix,
    )


def _tensor_subclass(trace: Trace, where: Where) -> str | None:
    """Returns the class whose handler of operators it is; None for a mode, a hook, or unknown."""
    if not (where.function or "").startswith("__torch_"):
        return None
    found = class_of_place(trace, where)
    if found is None or any(ast.unparse(base).endswith("Mode") for base in found.bases):
        return None
    return found.name
