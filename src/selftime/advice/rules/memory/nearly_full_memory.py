"""A larger batch would help, and does not fit into the device's memory.

## What it means
The device waits for the host to launch small work, which larger batches make fewer and larger; but
at the peak more than nine tenths of its memory are allocated.

## Why it costs
Full memory slows nothing by itself. It costs what a larger batch would give.

## What to do
Make room where most is held at the peak: recompute activations in the backward pass
(`torch.utils.checkpoint`), compute in bfloat16, move the optimizer's state to the host. Then
enlarge the batch, and the learning rate with it.

## Fires on
A device that is full and waits for the host.

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

from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
    rule,
    where,
)
from selftime.advice.detectors.memory_use import Fullness, fullness, holders
from selftime.analysis.steps.bound_by import regime
from selftime.trace import Trace
from selftime.units import bytes_text, share_text

CODE: Final = """from torch.utils.checkpoint import checkpoint

y = checkpoint(block, x, use_reentrant=False)     # for the blocks that hold most"""
"""How activations are computed again instead of kept."""

NEEDS: Final = (
    "the device's memory and what is allocated of it: record with `profile_memory=True`, or with "
    "`selftime run`"
)
"""Without the size of the device nobody knows how full it is."""


@rule(covers=("G3", "G4"), needs=("device",))
def check(trace: Trace) -> Iterator[Outcome]:
    told = [one for one in fullness(trace) if one.share(one.allocated) is not None]
    if not told:
        yield Unknown(NEEDS)
    for one in told:
        top = _largest(trace, one)
        if one.is_nearly_full and regime(trace) == "launch-bound":
            yield _finding(one, top)
        else:
            yield Checked(f"{_peak(one)}{_held(top)}{_why_not(one)}")


def _peak(one: Fullness) -> str:
    share = share_text(one.share(one.allocated) or 0.0)
    return f"the peak is {bytes_text(one.allocated or 0)}, {share} of device {one.device}"


def _held(top: dict[str, Any] | None) -> str:
    """Who holds most of the peak, as the rest of a sentence."""
    if top is None:
        return ""
    place = where(top)
    at = f" at {place}" if place.file is not None else ""
    return f"; of it `{top['operator']}`{at} allocated {bytes_text(top['bytes'])}"


def _why_not(one: Fullness) -> str:
    return "; a larger batch would not speed the device up" if one.is_nearly_full else ""


def _largest(trace: Trace, one: Fullness) -> dict[str, Any] | None:
    """Where most of the activations of the peak are allocated, else most of what is known."""
    rows = holders(trace, one.device).filter(pl.col("operator").is_not_null())
    activations = rows.filter(pl.col("category") == "activation")
    told = activations if activations.height else rows
    return told.row(0, named=True) if told.height else None


def _finding(one: Fullness, top: dict[str, Any] | None) -> Finding:
    evidence = [
        Evidence("allocated at the peak", float(one.allocated or 0), "bytes"),
        Evidence("share of device memory", one.share(one.allocated), "ratio"),
    ]
    if top is not None:
        evidence.append(Evidence("of it by the named line", float(top["bytes"]), "bytes"))
    return Finding(
        title="The device waits for small work, and its memory is too full for larger",
        where=where(top),
        saving=Saving(),
        confidence="low",
        semantics="training",
        evidence=tuple(evidence),
        fix=Fix("Make room where most is held at the peak, then enlarge the batch.", CODE),
    )
