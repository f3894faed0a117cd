"""The backward pass runs parts of the forward pass again.

## What it means
Activation checkpointing keeps the inputs of a part of the network only, and runs that part once
more when its gradients are due.

In the trace: within a backward node, operators that autograd numbers, or frames of modules.

## Why it costs
The forward pass of these parts is paid twice, about a third more for the step if it is all of the
network. It buys memory; where there is memory to spare it buys nothing.

## What to do
Where the peak of memory leaves room, checkpoint fewer parts or none; where it does not, keep it, or
save what is expensive to compute and recompute the rest (selective checkpointing).

The estimate removes what runs again, and what checkpointing adds to the forward pass.

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

from selftime.advice.detectors.counted_steps import (
    counted_step_count,
    significance_limits_for_cause,
    slices_in_counted_steps,
    union_of_interval_sets,
)
from selftime.advice.detectors.operator_changes import changes_shortening_intervals
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Argument, Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.call_tree.training_passes import (
    RECOMPUTE_PASS,
    find_training_passes,
    may_recompute_forward_work,
)
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length
from selftime.names.tensor_operators import is_checkpoint_call, is_checkpoint_overhead
from selftime.trace import Trace
from selftime.units import whole_percent_text

MAX_DEVICE_MEMORY_SHARE_IN_USE: Final = 0.6
"""Largest share of device memory in use at which all activations may fit without recomputation."""

NO_CHECKPOINTING_FIX_CODE: Final = (
    """hidden = block(hidden)  # in place of checkpoint(block, hidden, ...)"""
)
"""Example code of the fix: a block called without checkpointing."""


@rule(covers=("F8",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    recomputed = _recomputed_slices(trace)
    if limits is None or not recomputed.height:
        yield Checked("no recorded backward pass recomputes layers", is_absent=True)
        return
    device_memory_share = _peak_share_of_device_memory(trace)
    if device_memory_share is not None and device_memory_share > MAX_DEVICE_MEMORY_SHARE_IN_USE:
        yield Checked(
            f"{whole_percent_text(device_memory_share)} of the device's memory is in use; "
            "without recomputation it may not suffice"
        )
        return
    recomputation_times = _recomputation_intervals(trace, recomputed)
    own = significance_limits_for_cause(trace, limits, recomputation_times)
    yield _finding(trace, own, recomputed, recomputation_times, device_memory_share)


def _recomputed_slices(trace: Trace) -> pl.DataFrame:
    """Returns the outermost trace slices of forward work that the backward pass runs again.

    Only those of the measured steps.
    """
    if not may_recompute_forward_work(trace):
        return trace.slices.clear()
    tree = find_training_passes(trace)
    again = tree.pass_code == RECOMPUTE_PASS
    parent = tree.entries.parent
    outer = again & ~((parent >= 0) & again[np.maximum(parent, 0)])
    ids = pl.Series(tree.entries.id[outer], dtype=pl.UInt32)
    return slices_in_counted_steps(trace, trace.slices.filter(pl.col("id").is_in(ids.implode())))


def _recomputation_intervals(trace: Trace, recomputed_slices: pl.DataFrame) -> Intervals:
    """Returns the intervals of recomputed forward work and of activation checkpointing's overhead.

    Checkpointing notes what the forward pass would have saved, and compares the second run.
    """
    frames = filter_by_name(slices_on(trace, "python"), is_checkpoint_overhead)
    return union_of_interval_sets(
        LineSlices.as_one_group(recomputed_slices).times,
        covered_time(slices_in_counted_steps(trace, frames)),
    )


def _checkpoint_calls_of_slowest_line(trace: Trace) -> LineSlices | None:
    """Returns the `checkpoint` calls of the source line with most time in them; None if none."""
    calls = filter_by_name(slices_on(trace, "python"), is_checkpoint_call)
    parents = calls["parent"]
    outer = calls.filter(~parents.is_in(calls["id"].implode()).fill_null(value=False))
    return next(slices_by_line(trace, slices_in_counted_steps(trace, outer)), None)


def _peak_share_of_device_memory(trace: Trace) -> float | None:
    """Returns the peak of reserved memory as a share of the device's memory; None if unknown."""
    peaks = trace.memory.filter(pl.col("device_type") != 0)["reserved"].drop_nulls().to_list()
    sizes = trace.devices["memory"].drop_nulls().to_list()
    return max(peaks) / min(sizes) if peaks and sizes and min(sizes) > 0 else None


def _finding(
    trace: Trace,
    statistics: StepStatistics,
    recomputed_slices: pl.DataFrame,
    recomputation_times: Intervals,
    device_memory_share: float | None,
) -> Finding:
    steps = counted_step_count(trace)
    calls = _checkpoint_calls_of_slowest_line(trace) or next(
        slices_by_line(trace, recomputed_slices), LineSlices.as_one_group(recomputed_slices)
    )
    changes = changes_shortening_intervals(trace, recomputation_times, 0.0)
    spent_ms = statistics.scaled_to_typical_step(length(recomputation_times) / steps / 1e6)
    room = (
        [Evidence("share of the device's memory in use", device_memory_share, "ratio")]
        if device_memory_share
        else []
    )
    return Finding(
        title="The backward pass runs a part of the forward pass again",
        where=calls.where,
        count_per_step=recomputed_slices.height / steps,
        claim=RemovalClaim(changes, noise_ms=statistics.noise_ms),
        confidence="low" if device_memory_share is None else "medium",
        evidence=(
            Evidence(
                "host time of the recomputation, a step",
                spent_ms,
                "ms",
                calls.events(),
                recomputed_slices["id"].to_numpy(),
            ),
            *room,
        ),
        fix=Fix(
            "Checkpoint fewer parts if memory allows: record with `profile_memory=True` to see.",
            NO_CHECKPOINTING_FIX_CODE,
            Argument("loop", "checkpointing", "False"),
        ),
    )
