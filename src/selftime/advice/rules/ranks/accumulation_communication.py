"""Ranks all-reduce gradients for every batch of a gradient accumulation.

## What it means
The program adds up the gradients of several batches before the optimizer's step, and all ranks
all-reduce them after each of these batches.

In the trace: forward passes of a replicated module before one step of the optimizer, each followed
by as many collectives of as many bytes.

## Why it costs
Only the sum is needed, once. With k batches a step, k - 1 of k all-reduces are useless, and the
part of them that the backward pass does not hide is lost.

## What to do
Run all but the last batch of a step under `no_sync()`, the forward pass included. For modules that
are sharded (`fully_shard`), call `set_requires_gradient_sync(False)`, which costs memory.

The estimate removes all of these all-reduces but the last batch's.

## Fires on
Two batches before each step of the optimizer, and an all-reduce in the backward pass of each.

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
Only the second backward pass communicates: the first is under `no_sync()`.

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

from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.detectors.gradient_communication import (
    changes_shortening_communication,
    ddp_forward_passes,
    exposed_communication_times,
    gradient_collectives,
    gradient_communication_rounds,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace
from selftime.units import count_text

FIX_CODE: Final = """for number, batch in enumerate(batches, 1):
    is_last = number == len(batches)
    with contextlib.nullcontext() if is_last else model.no_sync():
        loss = loss_of(model(batch)) / len(batches)
        loss.backward()
optimizer.step()"""
"""Example code of the fix: all-reduce gradients only with the last batch of a step."""


@rule(covers=("I1",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    forward_passes = ddp_forward_passes(trace)
    if step_stats is None or not forward_passes.height:
        yield Checked("no module that is replicated on every rank is in this trace", is_absent=True)
        return
    if not gradient_collectives(trace).height:
        yield Checked("the trace shows no communication of gradients", is_absent=True)
        return
    found = gradient_communication_rounds(trace)
    repeated_forwards = found.are_communicated_again
    if not repeated_forwards.any():
        yield Checked(
            "gradients are all-reduced once for each step of the optimizer, in the recorded steps"
        )
        return
    communication_times = union(found.begin[repeated_forwards], found.end[repeated_forwards])
    yield _finding(
        trace, step_stats, forward_passes.filter(pl.Series(repeated_forwards)), communication_times
    )


def _finding(
    trace: Trace,
    step_stats: StepStatistics,
    repeated_forwards: pl.DataFrame,
    communication_times: Intervals,
) -> Finding:
    steps = counted_step_count(trace)
    changes = changes_shortening_communication(trace, communication_times, 0.0)
    in_the_open = step_stats.scaled_to_typical_step(
        length(intersect(exposed_communication_times(trace), communication_times)) / steps / 1e6
    )
    batches = repeated_forwards.height / steps
    return Finding(
        title=(
            f"Gradients are all-reduced {count_text(np.ceil(batches) + 1)} times a step; once is "
            "enough"
        ),
        where=next(
            slices_by_line(trace, repeated_forwards), LineSlices.as_one_group(repeated_forwards)
        ).where,
        count_per_step=batches,
        claim=RemovalClaim(changes),
        confidence="high",
        evidence=(
            Evidence(
                "batches whose gradients are all-reduced again",
                batches,
                "count",
                (),
                repeated_forwards["id"].to_numpy(),
            ),
            Evidence(
                "their exposed communication time",
                in_the_open,
                "ms",
                LineSlices.as_one_group(repeated_forwards).events(),
            ),
        ),
        fix=Fix("All-reduce gradients with the last batch of a step only.", FIX_CODE),
    )
