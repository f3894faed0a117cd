"""Python runs around every operator or layer: hooks and modes.

## What it means
A `__torch_function__` or `__torch_dispatch__` of a mode or of a subclass of tensors sees every
operator, or hooks run before and after each layer. Often they are left from debugging or measuring.

## Why it costs
Each turns one operator of some microseconds into tens of microseconds of Python. Measured: a
`TorchFunctionMode` that does nothing doubles the step of a small transformer. On a device that the
host must feed, the step waits for it.

## What to do
Remove what was for debugging. Register hooks only for the steps that need them, and keep what they
collect on the device. A mode that must stay should return early. `torch.set_default_device` is such
a mode: pass `device=` in place of it, or use `with torch.device(...)` where the model is built.

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

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.detectors.counted_steps import (
    counted,
    gate_of,
    is_during,
    regions_of,
    steps_counted,
)
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.detectors.places import Place
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length, subtract
from selftime.names.tensors import intercepts_operators, is_module_call
from selftime.nesting import NONE
from selftime.trace import Trace

LEAST_A_STEP: Final = 4
"""Fewer calls a step are no crowd around every operator or layer."""

LEAST_SHARE: Final = 0.05
"""Of the step: recording Python frames itself makes Python look longer by a third and more."""

CODE: Final = """handle = layer.register_forward_hook(record)
...                                   # only the steps that need it
handle.remove()"""
"""A hook for some steps."""


@rule(covers=("D8",), needs=("stacks",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = [*_modes(trace), *_hooks(trace)]
    if limits is None or not found:
        yield Checked("no Python runs around the operators and layers", is_absent=True)
        return
    if counted(trace, filter_by_name(slices_on(trace, "host"), names.is_capture_begin)).height:
        yield Checked("the steps capture a graph, which then runs without Python")
        return
    for what, place, times in found:
        spent = limits.typical(length(times) / steps_counted(trace) / 1e6)
        if spent < LEAST_SHARE * limits.step_ms:
            most = limits.unrecorded(spent)
            yield Checked(f"{what} ({place.where}) takes {most:.2f} ms of the step", most)
        else:
            own = gate_of(trace, limits, times)
            yield own.judge(_finding(trace, limits, what, place, times))


def _modes(trace: Trace) -> Iterator[tuple[str, Place, Intervals]]:
    """What sees every operator: its frames by function, and their time without the operators."""
    frames = filter_by_name(_frames(trace), intercepts_operators)
    own = frames.filter(~_called_by(trace, frames, frames["id"]))
    ops = covered_time(outermost_operators(trace))
    for place in _often(trace, own):
        yield "a handler of every operator", place, subtract(place.times, ops)


def _hooks(trace: Trace) -> Iterator[tuple[str, Place, Intervals]]:
    """The program's own functions that a layer's call runs, beside `forward` and what works."""
    frames = _frames(trace)
    calls = filter_by_name(slices_on(trace, "python"), is_module_call)["id"]
    beside = frames.filter(_called_by(trace, frames, calls))
    beside = filter_by_name(beside, _is_of_program)
    work = np.sort(
        filter_by_name(outermost_operators(trace), names.is_layer_operator)["start"].to_numpy()
    )
    begin = beside["start"].to_numpy()
    end = begin + beside["duration"].to_numpy()
    idle = pl.Series(np.searchsorted(work, begin) == np.searchsorted(work, end), dtype=pl.Boolean)
    for place in _often(trace, beside.filter(idle)):
        yield "a hook of layers", place, place.times


def _frames(trace: Trace) -> pl.DataFrame:
    """Frames of the steps that count, but what compiles."""
    frames = counted(trace, slices_on(trace, "python"))
    return frames.filter(~is_during(frames, regions_of(trace, names.is_compilation)))


def _called_by(trace: Trace, frames: pl.DataFrame, callers: pl.Series) -> pl.Series:
    """Whether the frame right around each is one of these."""
    marked = np.zeros(trace.slices.height, bool)
    marked[callers.to_numpy()] = True
    parent = frames["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    found = (parent != NONE) & (marked[np.maximum(parent, 0)] if marked.size else False)
    return pl.Series(found, dtype=pl.Boolean)


def _is_of_program(name: str) -> bool:
    known = names.frame(name)
    if known is None or intercepts_operators(name):
        return False
    return known.origin == "user" and known.function != "forward"


def _often(trace: Trace, frames: pl.DataFrame) -> Iterator[Place]:
    for name in frames["name"].unique(maintain_order=True):
        same = frames.filter(pl.col("name") == name)
        if same.height >= LEAST_A_STEP * steps_counted(trace):
            known = names.frame(str(name))
            told = Where(known.file, known.line, known.function, "definition") if known else Where()
            yield Place(told, same)


def _finding(trace: Trace, limits: Gate, what: str, place: Place, times: Intervals) -> Finding:
    steps = steps_counted(trace)
    count = place.slices.height / steps
    spent = limits.typical(length(times) / steps / 1e6)
    function = place.where.function or "it"
    return Finding(
        title=f"`{function}`, {what}, runs {count:.0f} times a step",
        where=place.where,
        count_per_step=count,
        saving=priced(trace, limits, Cut(times)),
        confidence="medium",
        evidence=(
            Evidence("Python time of the hook", spent, "ms"),
            Evidence("calls a step", count, "count"),
        ),
        fix=Fix("Remove it, or register it only for the steps that need it.", CODE),
        changes=(Cut(times),),
    )
