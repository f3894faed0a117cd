"""A tensor is made on the host and then copied to the device.

## What it means
A line such as `torch.zeros(n).to(device)` or `torch.arange(n).cuda()` makes a constant, a mask or a
table of positions on the host, in every step, and sends it to the device. Random numbers are left
out: they may be drawn on the host on purpose, to be the same on every machine.

In the trace: operators right before a copy to the device run on the host in the same function, one
of them makes a constant, and their sizes match, in more than half of the steps.

## Why it costs
The host makes the tensor with one core, copies it, and waits until the copy stands behind the work
in the queue. The device would make it in microseconds.

## What to do
Make it on the device: `torch.zeros(n, device=device)`, `torch.arange(n, device=x.device)`. Make
constants once, as buffers of the module.

The estimate replaces the host's work by a launch of 10 us for each operator, and removes the copy
and the wait for it.

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

from selftime.advice.detectors.counted_steps import (
    counted_step_count,
    significance_limits_for_cause,
)
from selftime.advice.detectors.host_made_tensors import (
    HostMadeTensors,
    lines_with_host_made_tensors,
)
from selftime.advice.replay import Change, CutHostTime, RemoveWaits, ScaleDeviceWork
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.idle.host_waits import host_waits
from selftime.intervals import length
from selftime.trace import Trace

HOST_NS_PER_OPERATOR_LAUNCH: Final = 10_000
"""Assumed host time in ns to launch an operator on the device."""

CREATE_ON_DEVICE_FIX_CODE: Final = """\
mask = torch.ones(n, n).tril().to(device)              # before
mask = torch.ones(n, n, device=device).tril()          # after
# or once, if n is always the same
self.register_buffer("mask", torch.ones(n, n).tril())"""
"""Example code of the fix: the tensor is made on the device, or only once."""


@rule(covers=("C4",), needs=("device", "links", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    host_made_tensors = lines_with_host_made_tensors(trace)
    if limits is None or not host_made_tensors:
        yield Checked(
            "no tensor that is made on the host is copied to the device in each step",
            is_absent=True,
        )
        return
    for host_made in host_made_tensors:
        own = significance_limits_for_cause(trace, limits, host_made.line_slices.times)
        spent_ms = limits.scaled_to_typical_step(
            length(host_made.line_slices.times) / counted_step_count(trace) / 1e6
        )
        if own.is_saving_worth_reporting(spent_ms):
            yield _finding(trace, own, host_made)
        else:
            reason = own.reason_saving_is_small(
                f"`{host_made.making_operator}` on the host ({host_made.line_slices.where})"
            )
            yield Checked(reason, spent_ms)


def _finding(
    trace: Trace, statistics: StepStatistics, host_made_tensors: HostMadeTensors
) -> Finding:
    steps = counted_step_count(trace)
    place, count = (
        host_made_tensors.line_slices,
        host_made_tensors.line_slices.slices.height / steps,
    )
    time = length(place.times)
    launch_share = (
        host_made_tensors.operator_count
        * HOST_NS_PER_OPERATOR_LAUNCH
        * place.slices.height
        / max(time, 1)
    )
    changes = _changes_if_made_on_device(trace, host_made_tensors, min(launch_share, 1.0))
    maker, copies = host_made_tensors.making_operator, host_made_tensors.copy_ids
    copied = trace.device_args.filter(pl.col("id").is_in(copies.implode()))["bytes"]
    copied_bytes: int = sum(copied.drop_nulls().to_list())
    return Finding(
        title=f"`{maker}` makes a tensor on the host, which is then copied to the device",
        where=place.where,
        count_per_step=count,
        claim=RemovalClaim(
            changes,
            largest_changes=_changes_if_made_on_device(trace, host_made_tensors, 0.0),
            noise_ms=statistics.noise_ms,
        ),
        confidence="high" if place.where.line is not None else "medium",
        evidence=(
            Evidence(
                "host time to make and copy the tensor, a step",
                statistics.scaled_to_typical_step(time / steps / 1e6),
                "ms",
                _first_host_made_slice_id_or_empty(host_made_tensors),
            ),
            Evidence("bytes copied to the device, a step", copied_bytes / steps, "bytes"),
        ),
        fix=Fix(
            "Make the tensor on the device, or once before the loop.", CREATE_ON_DEVICE_FIX_CODE
        ),
    )


def _first_host_made_slice_id_or_empty(host_made_tensors: HostMadeTensors) -> tuple[int, ...]:
    return tuple(host_made_tensors.line_slices.slices["id"].head(1).to_list())


def _changes_if_made_on_device(
    trace: Trace, host_made_tensors: HostMadeTensors, host_time_share: float
) -> tuple[Change, ...]:
    """Returns the simulated changes if the device makes the tensors: no copies and no waits.

    The share `host_time_share` of the host time is left.
    """
    times = host_made_tensors.line_slices.times
    waits = host_waits(trace)
    at = np.searchsorted(times.starts, waits["start"].to_numpy(), side="right") - 1
    inside = (at >= 0) & (waits["start"].to_numpy() < times.ends[np.maximum(at, 0)])
    calls = waits["id"].cast(pl.Int64).to_numpy()[inside]
    copies = host_made_tensors.copy_ids.cast(pl.Int64).to_numpy()
    return CutHostTime(times, host_time_share), RemoveWaits(calls), ScaleDeviceWork(copies)
