"""Unused device memory is in blocks that do not fit the next allocation.

## What it means
PyTorch has reserved nearly all memory of the device, and a good part of it is in no tensor: it is
in blocks that are too small, or of the wrong pool, for the next request. Or an allocation has
already succeeded only after all unused memory was given back to the driver.

In the trace, or in the recording's facts: an allocation was retried; or more than nine tenths of
the device's memory are reserved at the peak, and more than a fifth of it is in no tensor.

## Why it costs
Giving memory back waits for all work of the device, and asking for it again takes milliseconds.
Then the program fails with "out of memory" though there is enough. Memory that is reserved and
unused costs nothing as long as the device has more.

## What to do
Let blocks grow with `expandable_segments`, and pad inputs to a few sizes. Run what needs much, as
validation with large batches, before training or in a process of its own.

No saving is estimated.

## Fires on
An allocator that had to give memory back.

    column = 1 ms
    mark 1 | ssssstttttuuuuu
    call 1 | k    k    k
    gpu 7  | kkkk kkkk kkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    k = cudaLaunchKernel
    device = {"name": "NVIDIA T4", "memory": 160}
    facts = {"allocator": {"devices": [{"index": 0, "retries": 12}]}}

A third of the device's memory in pieces.

    column = 1 ms
    mark 1 | ssssstttttuuuuu
    call 1 | k    k    k
    gpu 7  | kkkk kkkk kkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    k = cudaLaunchKernel
    device = {"name": "NVIDIA T4", "memory": 160}
    facts = {"allocator": {"devices": [{"index": 0, "allocated_peak": 100, "reserved_peak": 158}]}}

## Silent on
Much that is unused, on a device that has more.

    column = 1 ms
    mark 1 | ssssstttttuuuuu
    call 1 | k    k    k
    gpu 7  | kkkk kkkk kkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    k = cudaLaunchKernel
    device = {"name": "NVIDIA T4", "memory": 160}
    facts = {"allocator": {"devices": [{"index": 0, "allocated_peak": 40, "reserved_peak": 120}]}}

A device that is full of tensors.

    column = 1 ms
    mark 1 | ssssstttttuuuuu
    call 1 | k    k    k
    gpu 7  | kkkk kkkk kkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    k = cudaLaunchKernel
    device = {"name": "NVIDIA T4", "memory": 160}
    facts = {"allocator": {"devices": [{"index": 0, "allocated_peak": 150, "reserved_peak": 158}]}}
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.detectors.device_memory import (
    NEARLY_FULL_MEMORY_SHARE,
    DeviceMemoryPeak,
    device_memory_peaks,
)
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
)
from selftime.trace import Trace
from selftime.units import bytes_text

MIN_RESERVED_UNUSED_MEMORY_SHARE: Final = 0.2
"""Share of device memory, reserved but unused, above which memory counts as fragmented."""

MISSING_DATA_MESSAGE: Final = (
    "what PyTorch's allocator reserved: record with `profile_memory=True`, or with `selftime run`"
)
"""What to record for this rule; only a recording by selftime counts failed allocations."""


@rule(covers=("G2",), needs=("device",))
def check(trace: Trace) -> Iterator[Outcome]:
    told = [
        device_memory
        for device_memory in device_memory_peaks(trace)
        if device_memory.unused_bytes is not None or device_memory.allocation_retries is not None
    ]
    if not told:
        yield Unknown(MISSING_DATA_MESSAGE)
    for device_memory in told:
        if device_memory.allocation_retries or _is_memory_fragmented(device_memory):
            yield _finding(device_memory)
        elif device_memory.unused_bytes is not None:
            yield Checked(
                f"device {device_memory.device} reserves {bytes_text(device_memory.unused_bytes)} "
                "that no tensor uses, and no allocation is known to have failed"
            )
        else:
            yield Checked(
                f"no allocation on device {device_memory.device} has failed", is_absent=True
            )


def _is_memory_fragmented(device_memory: DeviceMemoryPeak) -> bool:
    unused, reserved = (
        device_memory.share_of_capacity(device_memory.unused_bytes),
        device_memory.share_of_capacity(device_memory.reserved_bytes),
    )
    if unused is None or reserved is None:
        return False
    return unused > MIN_RESERVED_UNUSED_MEMORY_SHARE and reserved > NEARLY_FULL_MEMORY_SHARE


def _finding(device_memory: DeviceMemoryPeak) -> Finding:
    evidence = (
        Evidence(
            "allocations that failed and were retried",
            _float_or_none(device_memory.allocation_retries),
            "count",
        ),
        Evidence(
            "reserved memory that no tensor uses",
            _float_or_none(device_memory.unused_bytes),
            "bytes",
        ),
        Evidence("peak reserved memory", _float_or_none(device_memory.reserved_bytes), "bytes"),
        Evidence(
            "share of device memory",
            device_memory.share_of_capacity(device_memory.reserved_bytes),
            "ratio",
        ),
    )
    retries = device_memory.allocation_retries
    failed = f"{retries} allocations succeeded only after cached memory was released"
    return Finding(
        title=failed
        if device_memory.allocation_retries
        else "Much of the reserved device memory is unused, in blocks that fit no request",
        where=Where(),
        confidence="high"
        if device_memory.allocation_retries and _is_memory_fragmented(device_memory)
        else "medium",
        evidence=tuple(e for e in evidence if e.value is not None),
        fix=Fix(
            "Let blocks grow, and pad inputs to a few sizes.",
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        ),
    )


def _float_or_none(value: int | None) -> float | None:
    return None if value is None else float(value)
