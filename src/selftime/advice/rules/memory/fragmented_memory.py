"""The device's memory is full of pieces that do not fit.

## What it means
PyTorch holds nearly all memory of the device, and a good part of it is in no tensor: it lies in
pieces that are too small, or of the wrong pool, for what is asked for next. Or an allocation has
already failed until all unused memory was given back to the driver.

## Why it costs
Giving memory back waits for all work of the device, and asking for it again takes milliseconds.
Then the program fails with "out of memory" though there is enough. Memory that is reserved and
unused costs nothing as long as the device has more.

## What to do
Let blocks grow with `expandable_segments`, and pad inputs to a few sizes. Run what needs much, as
validation with large batches, before training or in a process of its own.

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

from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
    Where,
    rule,
)
from selftime.advice.detectors.memory_use import NEARLY_FULL, Fullness, fullness
from selftime.trace import Trace
from selftime.units import bytes_text

LEAST_UNUSED: Final = 0.2
"""Of the device's memory: less is the slack of any allocator that rounds sizes and keeps pools."""

NEEDS: Final = (
    "what PyTorch's allocator reserved: record with `profile_memory=True`, or with `selftime run`"
)
"""Either tells; the count of failed allocations only the recording's facts hold."""


@rule(covers=("G2",), needs=("device",))
def check(trace: Trace) -> Iterator[Outcome]:
    told = [one for one in fullness(trace) if one.unused is not None or one.retries is not None]
    if not told:
        yield Unknown(NEEDS)
    for one in told:
        if one.retries or _is_in_pieces(one):
            yield _finding(one)
        elif one.unused is not None:
            yield Checked(
                f"device {one.device} reserves {bytes_text(one.unused)} that no tensor uses, and "
                "no allocation is known to have failed"
            )
        else:
            yield Checked(f"no allocation on device {one.device} has failed", is_absent=True)


def _is_in_pieces(one: Fullness) -> bool:
    unused, reserved = one.share(one.unused), one.share(one.reserved)
    if unused is None or reserved is None:
        return False
    return unused > LEAST_UNUSED and reserved > NEARLY_FULL


def _finding(one: Fullness) -> Finding:
    evidence = (
        Evidence("allocations that failed and were retried", _number(one.retries), "count"),
        Evidence("reserved memory that no tensor uses", _number(one.unused), "bytes"),
        Evidence("peak reserved memory", _number(one.reserved), "bytes"),
        Evidence("share of device memory", one.share(one.reserved), "ratio"),
    )
    failed = f"{one.retries} allocations failed until unused memory was given back"
    return Finding(
        title=failed if one.retries else "Memory of the device is reserved in pieces and unused",
        where=Where(),
        saving=Saving(),
        confidence="high" if one.retries and _is_in_pieces(one) else "medium",
        evidence=tuple(e for e in evidence if e.value is not None),
        fix=Fix(
            "Let blocks grow, and pad inputs to a few sizes.",
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        ),
    )


def _number(value: int | None) -> float | None:
    return None if value is None else float(value)
