"""Gradients are filled with zeros instead of dropped.

## What it means
`zero_grad(set_to_none=False)` keeps the gradients' memory and writes zeros into it. The backward
pass then adds to the zeros what it could have stored. Since PyTorch 2.0 the default drops them.

## Why it costs
On a device it is a kernel for each parameter, or a few for all of them, that write all gradients;
and the backward pass reads them once more to add. On a CPU dropping was measured to gain nothing:
memory that was given back has to be paged in anew, which takes as long as the zeros. So there this
is never more than a remark.

## What to do
Remove the argument: `optimizer.zero_grad()`. Keep it where a CUDA graph is captured: that needs
gradients that stay where they are.

## Fires on
Gradients of a model on a device.

    column = 20 us
    mark 1 | sssssssssssssssssssstttttttttttttttttttt
    mark 1 | zzzzzzzzzz          zzzzzzzzzz
    cpu 1  | abababab  mmm       abababab  mmm
    call 1 | abababab  m         abababab  m
    gpu 7  |  abababab  mmmmmmm   abababab  mmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    z = Optimizer.zero_grad#SGD.zero_grad; line = train.py:5 main
    a = aten::zero_; line = train.py:5 main
    b = aten::zero_; line = train.py:5 main

## Silent on
The same on a CPU.

    column = 20 us
    mark 1 | sssssssssssssssssssstttttttttttttttttttt
    mark 1 | zzzzzzzzzz          zzzzzzzzzz
    cpu 1  | abababab  mmmmmmmmm abababab  mmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    z = Optimizer.zero_grad#SGD.zero_grad; line = train.py:5 main
    a = aten::zero_; line = train.py:5 main
    b = aten::zero_; line = train.py:5 main

Gradients that are dropped.

    column = 20 us
    mark 1 | sssssssssssssssssssstttttttttttttttttttt
    mark 1 | zz                  zz
    cpu 1  |    mmmmmmm             mmmmmmm
    call 1 |    m                   m
    gpu 7  |      mmmmmmm             mmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    z = Optimizer.zero_grad#SGD.zero_grad; line = train.py:5 main

A graph that is replayed: its gradients have to stay.

    column = 20 us
    mark 1 | sssssssssssssssssssstttttttttttttttttttt
    mark 1 | zzzzzzzzzz          zzzzzzzzzz
    cpu 1  | abababab  mmm       abababab  mmm
    call 1 | abababab  m         abababab  m
    gpu 7  |  abababab  mmmmmmm   abababab  mmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    z = Optimizer.zero_grad#SGD.zero_grad
    m = cudaGraphLaunch
    a = aten::zero_
    b = aten::zero_
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.changes import launched_during, shortened
from selftime.advice.detectors.counted_steps import counted, is_during, regions_of, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.intervals import length
from selftime.trace import Trace

KEPT: Final = 0.1
"""Of the time for zeros that dropping takes: a reference less for each parameter."""

CODE: Final = "optimizer.zero_grad()"
"""The default drops the gradients."""


@rule(covers=("F2",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    fills = counted(trace, filter_by_name(slices_on(trace, "host"), names.fills_with_zeros))
    fills = fills.filter(is_during(fills, regions_of(trace, names.clears_gradients)))
    if limits is None or not fills.height:
        yield Checked("no gradient is filled with zeros", is_absent=True)
        return
    spent = limits.typical(length(Place.of(fills).times) / steps_counted(trace) / 1e6)
    if not device_work(trace).height:
        text = "gradients are filled with zeros, which on a CPU costs no more than dropping them"
        yield Checked(text, limits.unrecorded(spent))
    elif filter_by_name(trace.slices, names.is_graph_launch).height:
        yield Checked("gradients are filled with zeros, as a graph that is replayed needs them")
    else:
        for place in places(trace, fills):
            yield limits.judge(_finding(trace, limits, place))


def _finding(trace: Trace, limits: Gate, place: Place) -> Finding:
    steps = steps_counted(trace)
    work = launched_during(trace, place.times)
    changes = shortened(trace, place.times, KEPT)
    on_device = limits.typical(sum(work["duration"].to_list()) / steps / 1e6)
    return Finding(
        title=f"Gradients are filled with zeros by {place.slices.height / steps:.0f} operators",
        where=place.where,
        count_per_step=place.slices.height / steps,
        saving=priced(trace, limits, *changes, most=shortened(trace, place.times, 0.0)),
        confidence="high",
        evidence=(
            Evidence("device time of the zeros", on_device, "ms", _first(work)),
            Evidence("operators a step", place.slices.height / steps, "count", place.events()),
        ),
        fix=Fix("Drop the gradients: leave `set_to_none` out.", CODE),
        changes=changes,
    )


def _first(work: pl.DataFrame) -> tuple[int, ...]:
    return tuple(work["id"].head(1).to_list())
