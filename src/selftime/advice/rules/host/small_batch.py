"""Batches are so small that the device is never filled.

## What it means
The step trains a network, the host cannot issue its kernels as fast as the device runs them, most
of the kernels have fewer blocks than the device has multiprocessors, and there is memory to spare.

## Why it costs
A larger batch costs the host no more operators. A kernel that leaves multiprocessors empty takes on
more rows in the same time. So more rows go through in hardly more time.

## What to do
Make the batch larger, as far as the memory goes, and adapt the learning rate and its warm-up: how
the network learns changes. Drop the accumulation of gradients over small batches. Where one row at
a time is meant, as in inference for a user who waits, leave it; this rule does not look at
inference.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.detectors.counted_steps import is_during, steps_counted
from selftime.advice.detectors.dispatching import Dispatching, dispatching, is_fed_unrecorded
from selftime.advice.detectors.memory_use import fullness
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut, replay_of
from selftime.analysis.device.kernel_attributes import with_grids
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.intervals import length, union
from selftime.trace import Trace

EMPTY_SHARE: Final = 0.5
"""Of the kernels' time in kernels with less than a block for each multiprocessor."""

ROOM: Final = 0.5
"""Of the device's memory in use at most: a batch of twice the size fits."""

LEAST_GROWTH: Final = 2.0
"""The smallest batch that is another one."""

MOST_GROWTH: Final = 32.0
"""A larger step away from the batch at hand is not a change of a number but of the experiment."""

CODE: Final = """loader = DataLoader(data, batch_size=256)   # in place of 8
optimizer = torch.optim.AdamW(parameters, lr=...)   # to be found anew"""
"""A larger batch."""


@rule(covers=("D2",), needs=("device", "links", "steps"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    issue = dispatching(trace)
    if limits is None or not issue.is_bound or not issue.on_device:
        yield Checked("the device does not wait for launches", is_absent=True)
    elif not _trains(trace):
        yield Checked("the steps train nothing: one row at a time may be meant")
    elif (used := _used(trace)) is not None and used > ROOM:
        yield Checked(f"{used:.0%} of the device's memory is in use")
    elif (empty := _empty(trace)) is None or empty <= EMPTY_SHARE:
        share = "unknown" if empty is None else f"{empty:.0%}"
        yield Checked(f"the share of time in kernels that leave the device empty is {share}")
    elif trace.frame_args.height and is_fed_unrecorded(trace, issue):
        yield Checked("launches are late only because the recording of stacks slows the host")
    else:
        yield limits.judge(_finding(trace, limits, issue, empty, used))


def _trains(trace: Trace) -> bool:
    nodes = filter_by_name(slices_on(trace, "host"), names.is_backward_node)
    windows = counted_windows(trace)
    return bool(
        is_during(nodes, union(windows["start"].to_numpy(), windows["end"].to_numpy())).any()
    )


def _used(trace: Trace) -> float | None:
    """The largest share of a device's memory in use; None where that is not told."""
    shares = [one.share(one.allocated or one.reserved) for one in fullness(trace)]
    return max((share for share in shares if share is not None), default=None)


def _empty(trace: Trace) -> float | None:
    """Of the kernels' time in kernels of less than a block for each multiprocessor."""
    kernels = with_grids(trace, device_work(trace).filter(pl.col("kind") == "kernel"))
    told = kernels.filter(pl.col("blocks_per_sm").is_not_null())
    time: int = sum(told["duration"].to_list())
    few: int = sum(told.filter(pl.col("blocks_per_sm") < 1)["duration"].to_list())
    return few / time if time and 2 * told.height > kernels.height else None


def _growth(trace: Trace) -> float:
    """How many times larger a batch keeps the device as busy as the host is now."""
    replay = replay_of(trace)
    window = replay.program_time()
    busy = 1 - length(replay.idle) / window if window else 1.0
    return min(max(1 / max(busy, 1 / MOST_GROWTH), LEAST_GROWTH), MOST_GROWTH)


def _finding(
    trace: Trace, limits: Gate, issue: Dispatching, empty: float, used: float | None
) -> Finding:
    growth = _growth(trace)
    change = Cut(issue.time, 1 / growth)
    spent = limits.typical(length(issue.time) / steps_counted(trace) / 1e6)
    room = [Evidence("share of the device's memory in use", used, "ratio")] if used else []
    return Finding(
        title="The batch is too small for the device, which waits for launches of small kernels",
        where=Where(),
        count_per_step=issue.per_step,
        saving=priced(trace, limits, change, most=(Cut(issue.time),)),
        confidence="low" if used is None else "medium",
        semantics="training",
        evidence=(
            Evidence("share of kernel time with fewer blocks than SMs", empty, "ratio"),
            Evidence("host time to issue work", spent, "ms"),
            Evidence("a batch so many times larger, for the rows of this step", growth, "ratio"),
            *room,
        ),
        fix=Fix(
            "Make the batch larger, and find the learning rate anew. The saving is for the rows of "
            "this step.",
            CODE,
        ),
        changes=(change,),
    )
