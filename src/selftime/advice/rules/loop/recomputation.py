"""The backward pass runs parts of the forward pass again.

## What it means
Activation checkpointing keeps the inputs of a part of the network only, and runs that part once
more when its gradients are due.

## Why it costs
The forward pass of these parts is paid twice, about a third more for the step if it is all of the
network. It buys memory; where there is memory to spare it buys nothing.

## What to do
Where the peak of memory leaves room, checkpoint fewer parts or none; where it does not, keep it, or
save what is expensive to compute and recompute the rest (selective checkpointing).

## Fires on
Forward operators within the nodes of the backward pass.

    column = 1 ms
    mark 1 | ssssssssssssssssssssttttttttttttttttttttt
    cpu 1  | mmmmmm bbbbbbbbbbbb mmmmmm bbbbbbbbbbbb
    cpu 1  |        nnnnnn              nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = aten::linear; sequence = 3; forward_thread = 0; line = net.py:6 forward
    n = aten::linear; sequence = 4; forward_thread = 0; line = net.py:6 forward
    b = autograd::engine::evaluate_function: CheckpointBackward; sequence = 3; forward_thread = 1

## Silent on
A backward pass of its own operators.

    column = 1 ms
    mark 1 | ssssssssssssssssssssttttttttttttttttttttt
    cpu 1  | mmmmmm bbbbbbbbbbbb mmmmmm bbbbbbbbbbbb
    cpu 1  |        nnnnnn              nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = aten::linear; sequence = 3; forward_thread = 0; line = net.py:6 forward
    n = aten::mm
    b = autograd::engine::evaluate_function: AddmmBackward0; sequence = 3; forward_thread = 1
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.changes import shortened
from selftime.advice.detectors.counted_steps import both, counted, gate_of, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.analysis.call_tree.passes import RECOMPUTE, may_recompute, passes_of
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length
from selftime.names.tensors import is_checkpoint_call, is_checkpoint_overhead
from selftime.trace import Trace

ROOM: Final = 0.6
"""With this share of the device's memory in use at most, the activations may fit as they are."""

CODE: Final = (
    """hidden = block(hidden)   # in place of checkpoint(block, hidden, use_reentrant=False)"""
)
"""Without checkpointing."""


@rule(covers=("F8",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    again = _recomputed(trace)
    if limits is None or not again.height:
        yield Checked("the backward pass recomputes nothing", is_absent=True)
        return
    used = _used(trace)
    if used is not None and used > ROOM:
        yield Checked(f"recomputation is needed: {used:.0%} of the device's memory is in use")
        return
    time = _time(trace, again)
    own = gate_of(trace, limits, time)
    yield own.judge(_finding(trace, limits, again, time, used))


def _recomputed(trace: Trace) -> pl.DataFrame:
    """The outermost slices that the backward pass recomputes, in the steps that count."""
    if not may_recompute(trace):
        return trace.slices.clear()
    tree = passes_of(trace)
    again = tree.running == RECOMPUTE
    parent = tree.entries.parent
    outer = again & ~((parent >= 0) & again[np.maximum(parent, 0)])
    ids = pl.Series(tree.entries.id[outer], dtype=pl.UInt32)
    return counted(trace, trace.slices.filter(pl.col("id").is_in(ids.implode())))


def _time(trace: Trace, again: pl.DataFrame) -> Intervals:
    """The time of what runs again, and where frames tell it, of what checkpointing adds besides.

    It notes what the forward pass would have saved, and compares the second run with it.
    """
    frames = filter_by_name(slices_on(trace, "python"), is_checkpoint_overhead)
    return both(Place.of(again).times, covered_time(counted(trace, frames)))


def _asked(trace: Trace) -> Place | None:
    """The line that asks for checkpoints most, where frames tell it."""
    calls = filter_by_name(slices_on(trace, "python"), is_checkpoint_call)
    parents = calls["parent"]
    outer = calls.filter(~parents.is_in(calls["id"].implode()).fill_null(value=False))
    return next(places(trace, counted(trace, outer)), None)


def _used(trace: Trace) -> float | None:
    """The peak of a device's memory as a share of what it has; None where that is not told."""
    peaks = trace.memory.filter(pl.col("device_type") != 0)["reserved"].drop_nulls().to_list()
    sizes = trace.devices["memory"].drop_nulls().to_list()
    return max(peaks) / min(sizes) if peaks and sizes and min(sizes) > 0 else None


def _finding(
    trace: Trace, limits: Gate, again: pl.DataFrame, time: Intervals, used: float | None
) -> Finding:
    steps = steps_counted(trace)
    asked = _asked(trace) or next(places(trace, again), Place.of(again))
    changes = shortened(trace, time, 0.0)
    spent = limits.typical(length(time) / steps / 1e6)
    room = [Evidence("share of the device's memory in use", used, "ratio")] if used else []
    return Finding(
        title="The backward pass runs a part of the forward pass again",
        where=asked.where,
        count_per_step=again.height / steps,
        saving=priced(trace, limits, *changes),
        confidence="low" if used is None else "medium",
        evidence=(
            Evidence("host time of the recomputation", spent, "ms", asked.events()),
            *room,
        ),
        fix=Fix(
            "Checkpoint fewer parts if memory allows: record with `profile_memory=True` to see.",
            CODE,
        ),
        changes=changes,
    )
