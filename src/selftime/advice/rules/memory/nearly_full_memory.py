"""A larger batch would be faster, but does not fit into device memory.

## What it means
The device waits for the host to launch small work, which larger batches make fewer and larger; but
at the peak more than nine tenths of its memory are allocated.

In the trace: more than nine tenths of the device's memory are allocated at the peak, the steps are
launch-bound, and they run backward passes. A server without these fills its memory on purpose, with
its cache of keys and values, and keeps no activations that could be recomputed.

## Why it costs
Full memory slows nothing by itself. It costs what a larger batch would give.

## What to do
Make room where most is held at the peak: recompute activations in the backward pass
(`torch.utils.checkpoint`), compute in bfloat16, move the optimizer's state to the host. Then
enlarge the batch, and the learning rate with it.

No saving is estimated.

## Fires on
A device that is full and waits for the host.

    column = 10 us
    mark 1   | ssssssssssssssstttttttttttttttuuuuuuuuuuuuuuu
    cpu 1    | aaaabbbbcccn   aaaabbbbcccn   aaaabbbbcccn
    call 1   | k   k   k      k   k   k      k   k   k
    gpu 7    |  k   k   k      k   k   k      k   k   k
    memory 1 | A          a   A          a   A          a
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; line = model.py:30 forward
    b = aten::mm
    c = aten::mm
    n = autograd::engine::evaluate_function: MmBackward0
    k = cudaLaunchKernel
    A = activation; bytes = 76000000000; device_type = 1; device = 0
    device = {"name": "NVIDIA A100-SXM4-80GB", "memory": 80000000000}

## Silent on
A device that is full and always busy: a larger batch takes as much longer.

    column = 10 us
    mark 1   | ssssssssssssssstttttttttttttttuuuuuuuuuuuuuuu
    cpu 1    | aaaabbbbcccc   aaaabbbbcccc   aaaabbbbcccc
    call 1   | k              k              k
    gpu 7    |  kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    memory 1 | A          a   A          a   A          a
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; line = model.py:30 forward
    b = aten::mm
    c = aten::mm
    k = cudaLaunchKernel
    A = activation; bytes = 76000000000; device_type = 1; device = 0
    device = {"name": "NVIDIA A100-SXM4-80GB", "memory": 80000000000}

A server that is full of its cache, which was there before the steps.

    column = 10 us
    mark 1   | ssssssssssssssstttttttttttttttuuuuuuuuuuuuuuu
    cpu 1    | aaaabbbbcccc   aaaabbbbcccc   aaaabbbbcccc
    call 1   | k   k   k      k   k   k      k   k   k
    gpu 7    |  k   k   k      k   k   k      k   k   k
    memory 1 | A
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; line = model.py:30 forward
    b = aten::mm
    c = aten::mm
    k = cudaLaunchKernel
    A = cache; bytes = 76000000000; device_type = 1; device = 0
    device = {"name": "NVIDIA A100-SXM4-80GB", "memory": 80000000000}

A device with room.

    column = 10 us
    mark 1   | ssssssssssssssstttttttttttttttuuuuuuuuuuuuuuu
    cpu 1    | aaaabbbbcccc   aaaabbbbcccc   aaaabbbbcccc
    call 1   | k   k   k      k   k   k      k   k   k
    gpu 7    |  k   k   k      k   k   k      k   k   k
    memory 1 | A          a   A          a   A          a
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; line = model.py:30 forward
    b = aten::mm
    c = aten::mm
    k = cudaLaunchKernel
    A = activation; bytes = 7600000000; device_type = 1; device = 0
    device = {"name": "NVIDIA A100-SXM4-80GB", "memory": 80000000000}
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.device_memory import (
    DeviceMemoryPeak,
    device_memory_peaks,
    peak_memory_holders,
)
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
    where_from_row,
)
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.bound_by import step_bound_by
from selftime.trace import Trace
from selftime.units import bytes_text, share_text

FIX_CODE: Final = """from torch.utils.checkpoint import checkpoint

# for the blocks that hold most:
y = checkpoint(block, x, use_reentrant=False)"""
"""Example code of the fix: compute activations again instead of keeping them."""

MISSING_DATA_MESSAGE: Final = (
    "the device's memory and how much of it is allocated: record with `profile_memory=True`, or "
    "with "
    "`selftime run`"
)
"""What to record for this rule, which needs the size of the device's memory."""


@rule(covers=("G3", "G4"), needs=("device",))
def check(trace: Trace) -> Iterator[Outcome]:
    told = [
        device_memory
        for device_memory in device_memory_peaks(trace)
        if device_memory.share_of_capacity(device_memory.allocated_bytes) is not None
    ]
    if not told:
        yield Unknown(MISSING_DATA_MESSAGE)
    trains = filter_by_name(slices_on(trace, "host"), names.is_backward_node).height > 0
    for device_memory in told:
        largest_holder = _line_holding_most_memory_at_peak(trace, device_memory)
        if device_memory.is_nearly_full and trains and step_bound_by(trace) == "launch-bound":
            yield _finding(device_memory, largest_holder)
        else:
            peak, holder = _peak_memory_text(device_memory), largest_holder
            why = _reason_if_nearly_full(trace, device_memory, trains=trains)
            yield Checked(f"{peak}{_largest_memory_holder_text(holder)}{why}")


def _peak_memory_text(device_memory: DeviceMemoryPeak) -> str:
    share = share_text(device_memory.share_of_capacity(device_memory.allocated_bytes) or 0.0)
    peak = bytes_text(device_memory.allocated_bytes or 0)
    return f"the peak is {peak}, {share} of device {device_memory.device}"


def _largest_memory_holder_text(largest_holder: dict[str, Any] | None) -> str:
    """Returns text that names what holds most memory at the peak; empty if unknown."""
    if largest_holder is None:
        return ""
    place = where_from_row(largest_holder)
    at = f" at {place}" if place.file is not None else ""
    size = bytes_text(largest_holder["bytes"])
    return f"; of it `{largest_holder['operator']}`{at} allocated {size}"


def _reason_if_nearly_full(trace: Trace, device_memory: DeviceMemoryPeak, *, trains: bool) -> str:
    """Returns text on why a nearly full device needs no room; empty if it is not nearly full."""
    if not device_memory.is_nearly_full:
        return ""
    if not trains:
        return "; no backward pass runs, so no activations are kept that could be recomputed"
    bound = step_bound_by(trace)
    return (
        "; the device has work nearly all the time, so that a larger batch takes as much longer"
        if bound == "device-bound"
        else "; whether a larger batch would be faster is unknown"
        if bound is None
        else "; the device does not wait for launches most of the time, which a larger batch saves"
    )


def _line_holding_most_memory_at_peak(
    trace: Trace, device_memory: DeviceMemoryPeak
) -> dict[str, Any] | None:
    """Returns the source line that holds the most activation bytes at the memory peak.

    As a table row. Without activations, the line that holds the most bytes of any kind.
    """
    rows = peak_memory_holders(trace, device_memory.device).filter(pl.col("operator").is_not_null())
    activations = rows.filter(pl.col("category") == "activation")
    told = activations if activations.height else rows
    return told.row(0, named=True) if told.height else None


def _finding(device_memory: DeviceMemoryPeak, largest_holder: dict[str, Any] | None) -> Finding:
    evidence = [
        Evidence(
            "memory allocated at the peak", float(device_memory.allocated_bytes or 0), "bytes"
        ),
        Evidence(
            "share of device memory",
            device_memory.share_of_capacity(device_memory.allocated_bytes),
            "ratio",
        ),
    ]
    if largest_holder is not None:
        evidence.append(
            Evidence("memory allocated by the named line", float(largest_holder["bytes"]), "bytes")
        )
    return Finding(
        title="The device waits between small kernels; its memory is too full for a larger batch",
        where=where_from_row(largest_holder),
        confidence="low",
        semantics="training",
        evidence=tuple(evidence),
        fix=Fix("Make room where most is held at the peak, then enlarge the batch.", FIX_CODE),
    )
