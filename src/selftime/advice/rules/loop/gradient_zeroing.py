"""Gradients are filled with zeros instead of set to None.

## What it means
`zero_grad(set_to_none=False)` keeps the gradients' memory and writes zeros into it. The backward
pass then adds to the zeros what it could have stored. Since PyTorch 2.0 the default drops them.

In the trace: `aten::zero_` or `aten::_foreach_zero_` within `zero_grad`, in a program with a device
that replays no graph.

## Why it costs
On a device it is a kernel for each parameter, or a few for all of them, that write all gradients;
and the backward pass reads them once more to add. On a CPU dropping was measured to gain nothing:
memory that was given back has to be paged in anew, which takes as long as the zeros. So there this
is never more than a remark.

## What to do
Remove the argument: `optimizer.zero_grad()`. Keep it where a CUDA graph is captured: that needs
gradients that stay where they are.

The estimate leaves a tenth of the time of these operators and their kernels.

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
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    slices_in_counted_steps,
    times_of_slices_named,
)
from selftime.advice.detectors.operator_changes import (
    changes_shortening_intervals,
    device_work_launched_during,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import count_text

GRADIENT_DROPPING_TO_ZEROING_TIME_RATIO: Final = 0.1
"""Time to set gradients to None as a share of the time to fill them with zeros."""

DROP_GRADIENTS_FIX_CODE: Final = "optimizer.zero_grad()"
"""Example code of the fix: by default `zero_grad` sets gradients to None."""


@rule(covers=("F2",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    fills = slices_in_counted_steps(
        trace, filter_by_name(slices_on(trace, "host"), names.fills_with_zeros)
    )
    fills = fills.filter(
        begins_during_intervals(fills, times_of_slices_named(trace, names.clears_gradients))
    )
    if limits is None or not fills.height:
        yield Checked("no gradient is filled with zeros", is_absent=True)
        return
    spent_ms = limits.scaled_to_typical_step(
        length(LineSlices.as_one_group(fills).times) / counted_step_count(trace) / 1e6
    )
    if not device_work(trace).height:
        text = "gradients are filled with zeros, which on a CPU costs no more than dropping them"
        yield Checked(text, spent_ms)
    elif filter_by_name(trace.slices, names.is_graph_launch).height:
        yield Checked(
            "gradients are filled with zeros, as a replayed device graph needs the same memory"
        )
    else:
        for fills_of_line in slices_by_line(trace, fills):
            yield _finding(trace, limits, fills_of_line)


def _finding(trace: Trace, statistics: StepStatistics, zero_fills: LineSlices) -> Finding:
    steps = counted_step_count(trace)
    count = zero_fills.slices.height / steps
    work = device_work_launched_during(trace, zero_fills.times)
    changes = changes_shortening_intervals(
        trace, zero_fills.times, GRADIENT_DROPPING_TO_ZEROING_TIME_RATIO
    )
    on_device = statistics.scaled_to_typical_step(sum(work["duration"].to_list()) / steps / 1e6)
    return Finding(
        title=f"Gradients are filled with zeros by {count_text(count)} operators",
        where=zero_fills.where,
        count_per_step=count,
        claim=RemovalClaim(
            changes, largest_changes=changes_shortening_intervals(trace, zero_fills.times, 0.0)
        ),
        confidence="high",
        evidence=(
            Evidence(
                "device time to fill gradients with zeros, a step",
                on_device,
                "ms",
                _first_zeroing_device_event_id(work),
            ),
            Evidence(
                "operators that fill gradients, a step",
                zero_fills.slices.height / steps,
                "count",
                zero_fills.events(),
                zero_fills.ids,
            ),
        ),
        fix=Fix(
            "Drop the gradients: call `zero_grad` without `set_to_none=False`.",
            DROP_GRADIENTS_FIX_CODE,
        ),
    )


def _first_zeroing_device_event_id(zeroing_work: pl.DataFrame) -> tuple[int, ...]:
    return tuple(zeroing_work["id"].head(1).to_list())
