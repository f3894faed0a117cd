"""The backward pass runs twice over the same forward pass.

## What it means
`backward` is called for several losses one after the other, with `retain_graph=True`, or
`torch.autograd.grad` for several outputs: autograd evaluates the same nodes again, as a rule the
whole trunk of the network that the losses share. Gradients of gradients are left out.

In the trace: backward nodes of one name, sequence number and thread that run more than once in a
step.

## Why it costs
Each further pass costs as much as the first, which is about twice the forward pass. And the graph
that `retain_graph=True` keeps stays in memory.

## What to do
Add the losses and call `backward` once: gradients add up all the same. Drop `retain_graph=True`
where nothing needs the graph again. Several gradients of one graph are computed at once with
`is_grads_batched=True`, or with `torch.func.vmap`. Methods that compare the losses' gradients with
each other need them apart.

The estimate removes all but the first run of each node.

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
from selftime.advice.detectors.counted_steps import (
    counted_step_count,
    significance_limits_for_cause,
)
from selftime.advice.detectors.operator_changes import changes_shortening_intervals
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.intervals import length
from selftime.names.tensor_operators import calls_backward
from selftime.trace import Trace
from selftime.units import count_text

SINGLE_BACKWARD_FIX_CODE: Final = """first.backward(retain_graph=True)   # before
second.backward()

(first + second).backward()         # after"""
"""Example code of the fix: one backward pass for both losses."""


@rule(covers=("F7",), needs=("operators", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    nodes = _backward_nodes_marked_as_repeated(trace)
    again = nodes.filter("again")
    if limits is None or not again.height:
        yield Checked("the backward pass evaluates each node once", is_absent=True)
        return
    if _does_autograd_record_backward_pass(trace, nodes):
        yield Checked("autograd records the backward pass itself, for gradients of gradients")
        return
    repeated = LineSlices.as_one_group(again)
    yield _finding(
        trace, significance_limits_for_cause(trace, limits, repeated.times), repeated, nodes.height
    )


def _backward_nodes_marked_as_repeated(trace: Trace) -> pl.DataFrame:
    """Returns the backward nodes in the measured steps, with a flag for those that run again.

    The flag is the column `again`: it is true for all runs but the first in a step.

    The number of a node is that of its forward operator, unique within a step.
    """
    nodes = filter_by_name(slices_on(trace, "host"), names.is_backward_node)
    nodes = nodes.filter(pl.col("duration").is_not_null())
    nodes = slices_with_arguments(trace, "op_args", nodes, "sequence", "forward_thread")
    windows = counted_step_windows(trace)
    begun, start = nodes["start"].to_numpy(), windows["start"].to_numpy()
    step = np.searchsorted(start, begun, side="right") - 1
    inside = step >= 0
    if windows.height:
        inside &= begun < windows["end"].to_numpy()[np.maximum(step, 0)]
    numbered = nodes.with_columns(step=pl.Series(step, dtype=pl.Int64))
    numbered = numbered.filter(pl.Series(inside) & (pl.col("sequence") >= 0)).sort("start", "id")
    identity = ("step", "name", "sequence", "forward_thread")
    return numbered.with_columns(again=pl.int_range(pl.len()).over(identity) > 0)


def _does_autograd_record_backward_pass(trace: Trace, backward_nodes: pl.DataFrame) -> bool:
    """Returns whether autograd records the backward pass itself, as with `create_graph=True`.

    Recomputed operators are numbered too: a pass within the pass evaluates their nodes.
    """
    begin, end = (
        backward_nodes["start"].to_numpy(),
        (backward_nodes["start"] + backward_nodes["duration"]).to_numpy(),
    )
    numbered = trace.op_args.filter((pl.col("sequence") >= 0) & (pl.col("forward_thread") == 0))
    within = trace.slices["start"].gather(numbered["id"])
    track = trace.slices["track"].gather(numbered["id"])
    for own in backward_nodes["track"].unique().to_list():
        when = np.sort(within.filter(track == own).to_numpy())
        mine = (backward_nodes["track"] == own).to_numpy()
        first, last = np.searchsorted(when, begin[mine]), np.searchsorted(when, end[mine])
        if (last > first).any():
            return True
    return False


def _finding(
    trace: Trace,
    statistics: StepStatistics,
    repeated_nodes: LineSlices,
    backward_node_count: int,
) -> Finding:
    steps = counted_step_count(trace)
    count = repeated_nodes.slices.height / steps
    changes, calls = (
        changes_shortening_intervals(trace, repeated_nodes.times, 0.0),
        _calls_that_repeat_backward_nodes(trace, repeated_nodes),
    )
    spent_ms = statistics.scaled_to_typical_step(length(repeated_nodes.times) / steps / 1e6)
    return Finding(
        title=(
            f"The backward pass evaluates {count_text(count)} autograd nodes of one forward pass "
            "again"
        ),
        where=calls.where,
        count_per_step=count,
        claim=RemovalClaim(changes, noise_ms=statistics.noise_ms),
        confidence="medium",
        evidence=(
            Evidence(
                "host time of nodes evaluated again, a step",
                spent_ms,
                "ms",
                calls.events(),
                repeated_nodes.ids,
            ),
            Evidence(
                "nodes evaluated again, as a share of all",
                repeated_nodes.slices.height / backward_node_count,
                "ratio",
            ),
        ),
        fix=Fix("Add the losses, and call `backward` once.", SINGLE_BACKWARD_FIX_CODE),
    )


def _calls_that_repeat_backward_nodes(trace: Trace, repeated_nodes: LineSlices) -> LineSlices:
    """Returns a line's repeated `backward` calls; the repeated nodes if calls are not recorded."""
    frames = filter_by_name(slices_on(trace, "python"), calls_backward)
    windows = counted_step_windows(trace)
    if not frames.height or not windows.height:
        return next(slices_by_line(trace, repeated_nodes.slices), repeated_nodes)
    within = frames.filter(pl.col("start") >= int(windows["start"][0]))
    return next(slices_by_line(trace, within.drop_nulls("duration")), repeated_nodes)
