"""The backward pass runs twice over the same forward pass.

## What it means
`backward` is called for several losses one after the other, with `retain_graph=True`, or
`torch.autograd.grad` for several outputs: autograd evaluates the same nodes again, as a rule the
whole trunk of the network that the losses share. A gradient of a gradient is none of it.

## Why it costs
Each further pass costs as much as the first, which is about twice the forward pass. And what
`retain_graph=True` retains stays in memory.

## What to do
Add the losses and call `backward` once: gradients add up all the same. Drop `retain_graph=True`
where nothing needs the graph again. Several gradients of one graph are computed at once with
`is_grads_batched=True`, or with `torch.func.vmap`. Methods that compare the losses' gradients with
each other need them apart.

## Fires on
The nodes of one forward pass, evaluated twice.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | mmmm bbb bbbmmmm bbb bbbmmmm bbb bbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    m = aten::mm; sequence = 5; forward_thread = 0; line = train.py:7 main
    b = autograd::engine::evaluate_function: MmBackward0; sequence = 5; forward_thread = 1

## Silent on
A pass for each forward pass.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | mmmm bbb    mmmm bbb    mmmm bbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    m = aten::mm; sequence = 5; forward_thread = 0
    b = autograd::engine::evaluate_function: MmBackward0; sequence = 5; forward_thread = 1

A gradient of a gradient: the backward pass itself is recorded.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    cpu 1  | mmmm bbb bbbmmmm bbb bbbmmmm bbb bbb
    cpu 1  |      nn          nn          nn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    m = aten::mm; sequence = 5; forward_thread = 0
    n = aten::mm; sequence = 6; forward_thread = 0
    b = autograd::engine::evaluate_function: MmBackward0; sequence = 5; forward_thread = 1
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.changes import shortened
from selftime.advice.detectors.counted_steps import gate_of, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.intervals import length
from selftime.names.tensors import calls_backward
from selftime.trace import Trace

CODE: Final = """first.backward(retain_graph=True)   # before
second.backward()

(first + second).backward()         # after"""
"""One pass for both."""


@rule(covers=("F7",), needs=("operators", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    nodes = _nodes(trace)
    again = nodes.filter("again")
    if limits is None or not again.height:
        yield Checked("the backward pass evaluates each node once", is_absent=True)
        return
    if _is_recorded(trace, nodes):
        yield Checked("the backward pass is recorded itself: for gradients of gradients")
        return
    place = Place.of(again)
    yield gate_of(trace, limits, place.times).judge(_finding(trace, limits, place, nodes.height))


def _nodes(trace: Trace) -> pl.DataFrame:
    """Nodes of the backward pass in the steps that count; `again`: not the first of its number.

    The number of a node is its forward operator's; within a step each has one.
    """
    nodes = filter_by_name(slices_on(trace, "host"), names.is_backward_node)
    nodes = nodes.filter(pl.col("duration").is_not_null())
    nodes = with_arguments(trace, "op_args", nodes, "sequence", "forward_thread")
    windows = counted_windows(trace)
    begun, start = nodes["start"].to_numpy(), windows["start"].to_numpy()
    step = np.searchsorted(start, begun, side="right") - 1
    inside = step >= 0
    if windows.height:
        inside &= begun < windows["end"].to_numpy()[np.maximum(step, 0)]
    numbered = nodes.with_columns(step=pl.Series(step, dtype=pl.Int64))
    numbered = numbered.filter(pl.Series(inside) & (pl.col("sequence") >= 0)).sort("start", "id")
    same = ("step", "name", "sequence", "forward_thread")
    return numbered.with_columns(again=pl.int_range(pl.len()).over(same) > 0)


def _is_recorded(trace: Trace, nodes: pl.DataFrame) -> bool:
    """Whether operators of the backward pass are numbered as those of a forward pass are.

    What is recomputed for it is, too: such nodes are evaluated by a pass within the pass.
    """
    begin, end = nodes["start"].to_numpy(), (nodes["start"] + nodes["duration"]).to_numpy()
    numbered = trace.op_args.filter((pl.col("sequence") >= 0) & (pl.col("forward_thread") == 0))
    within = trace.slices["start"].gather(numbered["id"])
    track = trace.slices["track"].gather(numbered["id"])
    for own in nodes["track"].unique().to_list():
        when = np.sort(within.filter(track == own).to_numpy())
        mine = (nodes["track"] == own).to_numpy()
        first, last = np.searchsorted(when, begin[mine]), np.searchsorted(when, end[mine])
        if (last > first).any():
            return True
    return False


def _finding(trace: Trace, limits: Gate, again: Place, every: int) -> Finding:
    steps = steps_counted(trace)
    count = again.slices.height / steps
    less, asked = shortened(trace, again.times, 0.0), _called(trace, again)
    spent = limits.typical(length(again.times) / steps / 1e6)
    return Finding(
        title=f"The backward pass evaluates {count:.0f} nodes of the same forward pass again",
        where=asked.where,
        count_per_step=count,
        saving=priced(trace, limits, *less),
        confidence="medium",
        evidence=(
            Evidence("host time of what is evaluated again", spent, "ms", asked.events()),
            Evidence("share of all nodes", again.slices.height / every, "ratio"),
        ),
        fix=Fix("Add the losses, and call `backward` once.", CODE),
        changes=less,
    )


def _called(trace: Trace, again: Place) -> Place:
    """The function that starts backward passes, where frames tell it; else the forward line."""
    frames = filter_by_name(slices_on(trace, "python"), calls_backward)
    windows = counted_windows(trace)
    if not frames.height or not windows.height:
        return next(places(trace, again.slices), again)
    within = frames.filter(pl.col("start") >= int(windows["start"][0]))
    return next(places(trace, within.drop_nulls("duration")), again)
