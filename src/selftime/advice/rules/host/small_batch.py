"""Batches are too small to keep the device busy.

## What it means
The step trains a network, the host cannot issue its kernels as fast as the device runs them, most
of the kernels have fewer blocks than the device has multiprocessors, and there is memory to spare.

In the trace: launch-bound steps with a backward pass, more than half of the kernels' time in
kernels with fewer blocks than the device has multiprocessors, and at most half of its memory in
use.

## Why it costs
A larger batch costs the host no more operators. A kernel that leaves multiprocessors empty takes on
more rows in the same time. So more rows go through in hardly more time.

## What to do
Make the batch larger, as far as the memory goes, and adapt the learning rate and its warm-up: how
the network learns changes. Drop the accumulation of gradients over small batches. Where one row at
a time is meant, as in inference for a user who waits, leave it; this rule does not look at
inference.

The estimate divides the host's time to issue work by the growth of the batch with which the device
is as busy as the host, 2 to 32 times.

## Fires on
Short kernels of a few blocks, and a device that waits for launches.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | ababababababababababababababababababababababababababababababababababababababeeee
    call 1 | abababababababababababababababababababababababababababababababababababababab
    gpu 7  |  b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b
    s = ProfilerStep#1
    a = aten::mm; line = net.py:5 forward; blocks_per_sm = 0.1
    b = aten::add; line = net.py:5 forward; blocks_per_sm = 0.1
    e = autograd::engine::evaluate_function: MmBackward0

## Silent on
Kernels that fill the device.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | ababababababababababababababababababababababababababababababababababababababeeee
    call 1 | abababababababababababababababababababababababababababababababababababababab
    gpu 7  |  b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b
    s = ProfilerStep#1
    a = aten::mm; line = net.py:5 forward; blocks_per_sm = 9.5
    b = aten::add; line = net.py:5 forward; blocks_per_sm = 9.5
    e = autograd::engine::evaluate_function: MmBackward0

Inference.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababababababababababababababababababababababababababababab
    call 1 | abababababababababababababababababababababababababababababababababababababab
    gpu 7  |  b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b
    s = ProfilerStep#1
    a = aten::mm; line = net.py:5 forward; blocks_per_sm = 0.1
    b = aten::add; line = net.py:5 forward; blocks_per_sm = 0.1

A device whose memory is in use.

    column = 10 us
    device = {"name": "NVIDIA A100-SXM4-80GB", "memory": 1000}
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | ababababababababababababababababababababababababababababababababababababababeeee
    call 1 | abababababababababababababababababababababababababababababababababababababab
    gpu 7  |  b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b
    memory 1 | A
    s = ProfilerStep#1
    a = aten::mm; line = net.py:5 forward; blocks_per_sm = 0.1
    b = aten::add; line = net.py:5 forward; blocks_per_sm = 0.1
    e = autograd::engine::evaluate_function: MmBackward0
    A = block; bytes = 900; device_type = 1; device = 0; allocated = 900; reserved = 900
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import begins_during_intervals, counted_step_count
from selftime.advice.detectors.device_memory import device_memory_peaks
from selftime.advice.detectors.work_dispatching import (
    DispatchAnalysis,
    dispatch_analysis_of,
    is_device_bound_without_recording,
)
from selftime.advice.replay import CutHostTime, replay_of
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Where,
    rule,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.device.kernel_attributes import with_launch_configurations
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.intervals import length, union
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_UNDERFILLED_KERNEL_TIME_SHARE: Final = 0.5
"""Smallest share of kernel time in kernels with fewer blocks than multiprocessors to report."""

MAX_USED_MEMORY_SHARE: Final = 0.5
"""Largest share of device memory in use to report; a batch twice as large fits then."""

MIN_BATCH_GROWTH_FACTOR: Final = 2.0
"""Smallest factor by which the rule assumes the batch to grow."""

MAX_BATCH_GROWTH_FACTOR: Final = 32.0
"""Largest factor by which the rule assumes the batch to grow; beyond it training behaves
differently."""

FIX_CODE: Final = """loader = DataLoader(data, batch_size=256)   # in place of 8
optimizer = torch.optim.AdamW(parameters, lr=...)   # to be tuned again"""
"""Example code of the fix: a larger batch, and a learning rate tuned for it."""


@rule(covers=("D2",), needs=("device", "links", "steps"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    dispatching = dispatch_analysis_of(trace)
    if step_stats is None or not dispatching.is_dispatch_bound or not dispatching.on_device:
        yield Checked("the device does not wait for launches", is_absent=True)
    elif not _are_steps_training(trace):
        yield Checked("the steps train nothing, so that batches of one row may be intended")
    elif (
        memory_share := _largest_used_memory_share(trace)
    ) is not None and memory_share > MAX_USED_MEMORY_SHARE:
        yield Checked(f"{whole_percent_text(memory_share)} of the device's memory is in use")
    elif (
        underfilled_share := _underfilled_kernel_time_share(trace)
    ) is None or underfilled_share <= MIN_UNDERFILLED_KERNEL_TIME_SHARE:
        share = "unknown" if underfilled_share is None else whole_percent_text(underfilled_share)
        yield Checked(f"the share of kernel time in kernels with fewer blocks than SMs is {share}")
    elif trace.frame_args.height and is_device_bound_without_recording(trace, dispatching):
        yield Checked("launches are late only because the recording of stacks slows the host")
    else:
        yield _finding(trace, step_stats, dispatching, underfilled_share, memory_share)


def _are_steps_training(trace: Trace) -> bool:
    nodes = filter_by_name(slices_on(trace, "host"), names.is_backward_node)
    windows = counted_step_windows(trace)
    return bool(
        begins_during_intervals(
            nodes, union(windows["start"].to_numpy(), windows["end"].to_numpy())
        ).any()
    )


def _largest_used_memory_share(trace: Trace) -> float | None:
    """Returns the share of memory in use on the fullest device; None if unknown."""
    shares = [
        one.share_of_capacity(one.allocated_bytes or one.reserved_bytes)
        for one in device_memory_peaks(trace)
    ]
    return max((share for share in shares if share is not None), default=None)


def _underfilled_kernel_time_share(trace: Trace) -> float | None:
    """Returns the share of kernel time in kernels with fewer thread blocks than the device has SMs.

    None if too few kernels have a recorded number of blocks.
    """
    kernels = with_launch_configurations(
        trace, device_work(trace).filter(pl.col("kind") == "kernel")
    )
    told = kernels.filter(pl.col("blocks_per_sm").is_not_null())
    time: int = sum(told["duration"].to_list())
    few: int = sum(told.filter(pl.col("blocks_per_sm") < 1)["duration"].to_list())
    return few / time if time and 2 * told.height > kernels.height else None


def _batch_growth_factor(trace: Trace) -> float:
    """Returns the factor by which to enlarge batches to make the device as busy as the host."""
    replay = replay_of(trace)
    window = replay.program_time()
    busy = 1 - length(replay.idle) / window if window else 1.0
    return min(
        max(1 / max(busy, 1 / MAX_BATCH_GROWTH_FACTOR), MIN_BATCH_GROWTH_FACTOR),
        MAX_BATCH_GROWTH_FACTOR,
    )


def _finding(
    trace: Trace,
    step_stats: StepStatistics,
    dispatching: DispatchAnalysis,
    underfilled_share: float,
    memory_share: float | None,
) -> Finding:
    growth = _batch_growth_factor(trace)
    change = CutHostTime(dispatching.dispatch_times, 1 / growth)
    spent = step_stats.scaled_to_typical_step(
        length(dispatching.dispatch_times) / counted_step_count(trace) / 1e6
    )
    room = (
        [Evidence("share of the device's memory in use", memory_share, "ratio")]
        if memory_share
        else []
    )
    return Finding(
        title="The batch is too small for the device, which waits for launches of small kernels",
        where=Where(),
        count_per_step=dispatching.operators_per_step,
        claim=RemovalClaim((change,), largest_changes=(CutHostTime(dispatching.dispatch_times),)),
        confidence="low" if memory_share is None else "medium",
        semantics="training",
        evidence=(
            Evidence("share of kernel time with fewer blocks than SMs", underfilled_share, "ratio"),
            Evidence("host time to issue work", spent, "ms"),
            Evidence("factor by which the estimate enlarges the batch", growth, "ratio"),
            *room,
        ),
        fix=Fix(
            "Make the batch larger, and tune the learning rate again. The saving is for as many "
            "rows as this step has.",
            FIX_CODE,
            Argument("loader", "batch_size", "256"),
        ),
    )
