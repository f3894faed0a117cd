"""Convolutions of fixed shapes run with kernels that were not tried.

## What it means
cuDNN has several kernels for a convolution. Unless told to try them once for each shape, it guesses
which one is fast (`torch.backends.cudnn.benchmark` is off), and here shapes do not change.

## Why it costs
The guess is often right and sometimes far off. How much a search gains a trace does not show.

## What to do
Set `torch.backends.cudnn.benchmark = True` before the first convolution, and measure. Not where
shapes change from step to step: each new one is searched for again. Results may differ from run to
run in the last digits.

## Fires on
Convolutions that take most of the device's time, and a recording that tells the setting.

    column = 1 ms
    facts = {"settings": {"cudnn_benchmark": false}}
    mark 1 | ssssttttuuuu
    cpu 1  | cc  cc  cc
    call 1 | k   k   k
    gpu 7  |  kkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::convolution; input_shapes = [[8,64,32,32],[64,64,3,3],[]]; line = net.py:7 forward
    k = sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc

## Silent on
The search is on.

    column = 1 ms
    facts = {"settings": {"cudnn_benchmark": true}}
    mark 1 | ssssttttuuuu
    cpu 1  | cc  cc  cc
    call 1 | k   k   k
    gpu 7  |  kkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::convolution; input_shapes = [[8,64,32,32],[64,64,3,3],[]]
    k = sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc

Shapes that change.

    column = 1 ms
    facts = {"settings": {"cudnn_benchmark": false}}
    mark 1 | ssssttttuuuu
    cpu 1  | cc  dd  ee
    call 1 | k   k   k
    gpu 7  |  kkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::convolution; input_shapes = [[8,64,32,32],[64,64,3,3],[]]
    d = aten::convolution; input_shapes = [[8,64,40,32],[64,64,3,3],[]]
    e = aten::convolution; input_shapes = [[8,64,48,32],[64,64,3,3],[]]
    k = sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Unknown, rule
from selftime.advice.detectors.counted_steps import is_under, steps_recorded
from selftime.advice.detectors.operators import recorded_operators, with_backward
from selftime.advice.detectors.places import by_line
from selftime.advice.detectors.recorded_facts import setting
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

LEAST_SHARE: Final = 0.3
"""Of the device's time in convolutions: below it no choice of their kernels changes much."""

REPEATED: Final = 2
"""Times that each shape must come for a search to pay; what is new in each step comes once."""


@rule(covers=("E8",), needs=("device", "links", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    table = filter_by_name(recorded_operators(trace), names.is_convolution)
    share = _share(trace, table)
    if share < LEAST_SHARE:
        told = f"convolutions take {share:.0%} of the device's time"
        yield Checked(told, is_absent=not table.height)
    elif not _is_fixed(table):
        yield Checked("shapes of convolutions change, for each of which a search would run again")
    elif _has_no_cudnn(trace):
        yield Checked("the device is not one of cuDNN's")
    elif (told := setting(trace, "cudnn_benchmark")) is None:
        yield Unknown("whether cuDNN searches for the fastest kernels: record with `selftime run`")
    elif told is True:
        yield Checked("cuDNN searches for the fastest kernels")
    else:
        yield _finding(trace, table, share)


def _share(trace: Trace, table: pl.DataFrame) -> float:
    """Of the device time of the steps, that of convolutions and their gradients."""
    begin = recorded_operators(trace).select(operator="id", on="track", when="start")
    work = device_work(trace).join(begin, on="operator", how="inner")
    own = is_under(work.select(track="on", start="when"), with_backward(trace, table))
    whole = sum(work["duration"].to_list())
    mine = sum(work["duration"].filter(pl.Series(own, dtype=pl.Boolean)).to_list())
    return float(mine / whole) if whole else 0.0


def _is_fixed(table: pl.DataFrame) -> bool:
    counts = table.drop_nulls("input_shapes").group_by("input_shapes").len()["len"].to_list()
    return bool(counts) and min(counts) >= REPEATED


def _has_no_cudnn(trace: Trace) -> bool:
    """Whether all devices that are described are those of a maker that has no cuDNN."""
    described = trace.devices["name"].drop_nulls().to_list()
    return bool(described) and all(name.startswith("AMD ") for name in described)


def _finding(trace: Trace, table: pl.DataFrame, share: float) -> Finding:
    place, _ = next(by_line(trace, table))
    return Finding(
        title="Convolutions of fixed shapes run without a search for the fastest kernels",
        where=place,
        count_per_step=table.height / steps_recorded(trace),
        saving=Saving(),
        confidence="low",
        semantics="numerics",
        evidence=(Evidence("share of device time in convolutions", share, "ratio"),),
        fix=Fix(
            "Let cuDNN try its kernels once for each shape, and measure: what it gains is not "
            "known before.",
            "torch.backends.cudnn.benchmark = True",
        ),
    )
