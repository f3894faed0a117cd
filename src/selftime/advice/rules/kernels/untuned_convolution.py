"""Convolutions run without cuDNN's search for the fastest kernels.

## What it means
cuDNN has several kernels for a convolution. Unless told to try them once for each shape, it guesses
which one is fast (`torch.backends.cudnn.benchmark` is off), and here shapes do not change.

In the trace: convolutions take 30 % of the device's time or more, and each of their shapes comes
twice or more. The setting is a fact of a recording by selftime.

## Why it costs
The guess is often right and sometimes far off. A trace does not show how much a search gains.

## What to do
Set `torch.backends.cudnn.benchmark = True` before the first convolution, and measure. Not where
shapes change from step to step: each new one is searched for again. Results may differ from run to
run in the last digits.

No saving is estimated.

## Fires on
Convolutions that take most of the device's time, in a recording that has the setting.

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
from selftime.advice.detectors.counted_operators import (
    operators_in_counted_steps,
    with_backward_operators,
)
from selftime.advice.detectors.counted_steps import begins_within_enclosing, recorded_step_count
from selftime.advice.detectors.recorded_facts import recorded_setting
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Unknown, rule
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_CONVOLUTION_SHARE_OF_DEVICE_TIME: Final = 0.3
"""Smallest share of device time in convolutions to report."""

MIN_CONVOLUTIONS_PER_INPUT_SHAPE: Final = 2
"""Smallest number of convolutions per distinct input shape for a search of kernels to pay."""


@rule(covers=("E8",), needs=("device", "links", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    convolutions = filter_by_name(operators_in_counted_steps(trace), names.is_generic_convolution)
    share = _convolution_share_of_device_time(trace, convolutions)
    if share < MIN_CONVOLUTION_SHARE_OF_DEVICE_TIME:
        text = f"convolutions take {whole_percent_text(share)} of the device's time"
        yield Checked(text, is_absent=not convolutions.height)
    elif not _do_all_input_shapes_repeat(convolutions):
        yield Checked("the shapes of convolutions change, and a search would run again for each")
    elif _do_all_devices_lack_cudnn(trace):
        yield Checked("the device does not use cuDNN")
    elif (setting := recorded_setting(trace, "cudnn_benchmark")) is None:
        yield Unknown("the setting `cudnn.benchmark`: record with `selftime run`")
    elif setting is True:
        yield Checked("`cudnn.benchmark` is on: cuDNN searches for the fastest kernels")
    else:
        yield _finding(trace, convolutions, share)


def _convolution_share_of_device_time(trace: Trace, convolutions: pl.DataFrame) -> float:
    """Returns the share of the steps' device time in convolutions and their gradients."""
    begin = operators_in_counted_steps(trace).select(operator="id", on="track", when="start")
    work = device_work(trace).join(begin, on="operator", how="inner")
    own = begins_within_enclosing(
        work.select(track="on", start="when"), with_backward_operators(trace, convolutions)
    )
    whole = sum(work["duration"].to_list())
    mine = sum(work["duration"].filter(pl.Series(own, dtype=pl.Boolean)).to_list())
    return float(mine / whole) if whole else 0.0


def _do_all_input_shapes_repeat(convolutions: pl.DataFrame) -> bool:
    counts = convolutions.drop_nulls("input_shapes").group_by("input_shapes").len()["len"].to_list()
    return bool(counts) and min(counts) >= MIN_CONVOLUTIONS_PER_INPUT_SHAPE


def _do_all_devices_lack_cudnn(trace: Trace) -> bool:
    """Returns whether all recorded devices are AMD's, which have no cuDNN."""
    described = trace.devices["name"].drop_nulls().to_list()
    return bool(described) and all(name.startswith("AMD ") for name in described)


def _finding(trace: Trace, convolutions: pl.DataFrame, device_time_share: float) -> Finding:
    location, _ = next(operators_by_line(trace, convolutions))
    return Finding(
        title="Convolutions of fixed shapes run without a search for the fastest kernels",
        where=location,
        count_per_step=convolutions.height / recorded_step_count(trace),
        confidence="low",
        semantics="numerics",
        evidence=(Evidence("share of device time in convolutions", device_time_share, "ratio"),),
        fix=Fix(
            "Let cuDNN try its kernels once for each shape, and measure: the gain is not known in "
            "advance.",
            "torch.backends.cudnn.benchmark = True",
        ),
    )
