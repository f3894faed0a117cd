"""A tensor is made on the host and then copied to the device.

## What it means
A line such as `torch.zeros(n).to(device)` or `torch.arange(n).cuda()` makes a constant, a mask or a
table of positions on the host, in every step, and sends it to the device. Random numbers are left
out: they may be drawn on the host on purpose, to be the same on every machine.

## Why it costs
The host makes the tensor with one core, copies it, and waits until the copy stands behind the work
in the queue. The device would make it in microseconds.

## What to do
Make it there: `torch.zeros(n, device=device)`, `torch.arange(n, device=x.device)`. What is the same
in every step make once, as a buffer of the module.

## Fires on
A mask that is made in every step.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | oooolllltttta       oooolllltttta       oooolllltttta
    call 1 |         ppppk               ppppk               ppppk
    copy 7 |           pp                  pp                  pp
    gpu 7  |             kkkkkk              kkkkkk              kkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = aten::ones; line = net.py:7 mask; input_shapes = [[],[],[],[],[]]
    l = aten::tril; line = net.py:7 mask; input_shapes = [[512,512],[]]
    t = aten::to; line = net.py:7 mask; input_shapes = [[512,512],[],[],[]]
    a = aten::mm; line = net.py:9 forward
    p = Memcpy HtoD (Pageable -> Device); bytes = 1048576

## Silent on
A batch from a loader.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    mark 1 | dddd                dddd                dddd
    cpu 1  | oo      tttta       oo      tttta       oo      tttta
    call 1 |         ppppk               ppppk               ppppk
    copy 7 |           pp                  pp                  pp
    gpu 7  |             kkkkkk              kkkkkk              kkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    o = aten::stack; line = data.py:7 collate; input_shapes = [[512]]
    t = aten::to; line = train.py:7 main; input_shapes = [[512,512],[],[],[]]
    a = aten::mm; line = net.py:9 forward
    p = Memcpy HtoD (Pageable -> Device); bytes = 1048576

Random numbers, which are drawn on the host on purpose.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | rrrrrrrrtttta       rrrrrrrrtttta       rrrrrrrrtttta
    call 1 |         ppppk               ppppk               ppppk
    copy 7 |           pp                  pp                  pp
    gpu 7  |             kkkkkk              kkkkkk              kkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    r = aten::randn; line = net.py:7 noise; input_shapes = [[],[],[],[],[]]
    t = aten::to; line = net.py:7 noise; input_shapes = [[512,512],[],[],[]]
    a = aten::mm; line = net.py:9 forward
    p = Memcpy HtoD (Pageable -> Device); bytes = 1048576
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.counted_steps import gate_of, steps_counted
from selftime.advice.detectors.host_made import HostMade, host_made
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Cut, Scale, Unwait
from selftime.analysis.idle.host_waits import host_waits
from selftime.intervals import length
from selftime.trace import Trace

ISSUED_NS: Final = 10_000
"""What it takes the host to launch one operator instead of running it."""

CODE: Final = """mask = torch.ones(n, n).tril().to(device)              # before
mask = torch.ones(n, n, device=device).tril()          # after
self.register_buffer("mask", torch.ones(n, n).tril())  # or once, if n is always the same"""
"""The same where it is needed."""


@rule(covers=("C4",), needs=("device", "links", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = host_made(trace)
    if limits is None or not found:
        yield Checked(
            "nothing that is made on the host is copied to the device in each step", is_absent=True
        )
        return
    for made in found:
        own = gate_of(trace, limits, made.place.times)
        spent = limits.typical(length(made.place.times) / steps_counted(trace) / 1e6)
        if own.passes(spent):
            yield own.judge(_finding(trace, limits, made))
        else:
            reason = own.reason(f"`{made.maker}` on the host ({made.place.where})")
            yield Checked(reason, limits.unrecorded(spent))


def _finding(trace: Trace, limits: Gate, made: HostMade) -> Finding:
    steps = steps_counted(trace)
    place, count = made.place, made.place.slices.height / steps
    time = length(place.times)
    issued = made.operators * ISSUED_NS * place.slices.height / max(time, 1)
    less = _changes(trace, made, min(issued, 1.0))
    copied = trace.device_args.filter(pl.col("id").is_in(made.copies.implode()))["bytes"]
    moved: int = sum(copied.drop_nulls().to_list())
    return Finding(
        title=f"`{made.maker}` makes a tensor on the host, which is then copied to the device",
        where=place.where,
        count_per_step=count,
        saving=priced(trace, limits, *less, most=_changes(trace, made, 0.0)),
        confidence="high" if place.where.line is not None else "medium",
        evidence=(
            Evidence(
                "host time to make and copy it",
                limits.typical(time / steps / 1e6),
                "ms",
                _shown(made),
            ),
            Evidence("bytes copied a step", moved / steps, "bytes"),
        ),
        fix=Fix("Make the tensor on the device, or once before the loop.", CODE),
        changes=less,
    )


def _shown(made: HostMade) -> tuple[int, ...]:
    return tuple(made.place.slices["id"].head(1).to_list())


def _changes(trace: Trace, made: HostMade, kept: float) -> tuple[Change, ...]:
    """Launches in place of the work on the host, no copy, and no wait for it."""
    times = made.place.times
    held = host_waits(trace)
    at = np.searchsorted(times.starts, held["start"].to_numpy(), side="right") - 1
    inside = (at >= 0) & (held["start"].to_numpy() < times.ends[np.maximum(at, 0)])
    calls = held["id"].cast(pl.Int64).to_numpy()[inside]
    copies = made.copies.cast(pl.Int64).to_numpy()
    return Cut(times, kept), Unwait(calls), Scale(copies)
