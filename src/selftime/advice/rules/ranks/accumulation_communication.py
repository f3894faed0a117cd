"""Gradients are exchanged between ranks before all of them are there.

## What it means
The program adds up the gradients of several batches before the optimizer's step, and all ranks
exchange them after each of these batches.

## Why it costs
Only the sum is needed, once. With k batches a step, k - 1 of k exchanges are for nothing, and what
of them the backward pass does not hide is lost.

## What to do
Run all but the last batch of a step under `no_sync()`, the forward pass included. For modules that
are sharded (`fully_shard`), call `set_requires_gradient_sync(False)`, which costs memory.

## Fires on
Two batches before each step of the optimizer, and an exchange in the backward pass of each.

    column = 1 ms
    mark 1 | ssssssssssssssssssttttttttttttttttttuuuuuuuuuuuuuuuuuu
    mark 2 | ff      ff        ff      ff        ff      ff
    cpu 2  | aabbc   aabbc   ooaabbc   aabbc   ooaabbc   aabbc   oo
    cpu 2  |     r       r         r       r         r       r
    mark 2 |                 pp                pp                pp
    mark 3 |      ggg     ggg       ggg     ggg       ggg     ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    b = aten::mm
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[1000000]]]
    g = gloo:all_reduce
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step

## Silent on
Only the second backward pass exchanges: the first is under `no_sync()`.

    column = 1 ms
    mark 1 | ssssssssssssssssssttttttttttttttttttuuuuuuuuuuuuuuuuuu
    mark 2 | ff      ff        ff      ff        ff      ff
    cpu 2  | aabbc   aabbc   ooaabbc   aabbc   ooaabbc   aabbc   oo
    cpu 2  |             r                 r                 r
    mark 2 |                 pp                pp                pp
    mark 3 |              ggg               ggg               ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    b = aten::mm
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[1000000]]]
    g = gloo:all_reduce
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step

Two networks, each with its own batch and its own optimizer.

    column = 1 ms
    mark 1 | ssssssssssssssssssttttttttttttttttttuuuuuuuuuuuuuuuuuu
    mark 2 | ff       ff       ff       ff       ff       ff
    cpu 2  | aabbc   oaabbc   oaabbc   oaabbc   oaabbc   oaabbc   o
    cpu 2  |     r        r        r        r        r        r
    mark 2 |         p        p        p        p        p        p
    mark 3 |      ggg      ggg      ggg      ggg      ggg      ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    b = aten::mm
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[1000000]]]
    g = gloo:all_reduce
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.communication import (
    exposed,
    gradients,
    less_exchange,
    replica_forwards,
    rounds,
)
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace

CODE: Final = """for number, batch in enumerate(batches, 1):
    with model.no_sync() if number < len(batches) else contextlib.nullcontext():
        loss = loss_of(model(batch)) / len(batches)
        loss.backward()
optimizer.step()"""
"""Gradients of all but the last batch stay on their rank."""


@rule(covers=("I1",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    forwards = replica_forwards(trace)
    if limits is None or not forwards.height:
        yield Checked("no module that is replicated on every rank is in this trace", is_absent=True)
        return
    if not gradients(trace).height:
        yield Checked("no gradients are seen to be exchanged", is_absent=True)
        return
    found = rounds(trace)
    again = found.repeated
    if not again.any():
        yield Checked("gradients are exchanged once for each step of the optimizer")
        return
    when = union(found.begin[again], found.end[again])
    yield limits.judge(_finding(trace, limits, forwards.filter(pl.Series(again)), when))


def _finding(trace: Trace, limits: Gate, again: pl.DataFrame, when: Intervals) -> Finding:
    steps = steps_counted(trace)
    changes = less_exchange(trace, when, 0.0)
    in_the_open = limits.typical(length(intersect(exposed(trace), when)) / steps / 1e6)
    batches = again.height / steps
    return Finding(
        title=f"Gradients are exchanged {np.ceil(batches):.0f} times too often in a step",
        where=next(places(trace, again), Place.of(again)).where,
        count_per_step=batches,
        saving=priced(trace, limits, *changes),
        confidence="high",
        evidence=(
            Evidence("batches with a repeated gradient exchange", batches, "count"),
            Evidence(
                "their exposed communication time",
                in_the_open,
                "ms",
                Place.of(again).events(),
            ),
        ),
        fix=Fix("Exchange gradients with the last batch of a step only.", CODE),
        changes=changes,
    )
