"""Convolutions take images whose channels come first in memory.

## What it means
Images lie in memory one channel after the other (NCHW), as they do unless told otherwise. The fast
kernels of tensor cores, and those of a CPU for depthwise convolutions, want all channels of a pixel
together (NHWC, `channels_last`).

## Why it costs
A GPU's library turns each input around, and each output back: passes over memory that compute
nothing. On a CPU a channel that lies apart fills no vector.

## What to do
`model.to(memory_format=torch.channels_last)`, and the same of the input: layers between keep the
layout. On a CPU depthwise convolutions gain more than half of their time, 3x3 ones a fifth or
nothing, and 1x1 ones lose: measure. Whether cuDNN looked for its fastest kernel is another question.

## Fires on
Depthwise convolutions on a CPU.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ddddddddaaddddddddaaddddddddaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::convolution; input_shapes = [[8,64,32,32],[64,1,3,3],[]]; input_types = ["float","float",""]; input_strides = [[65536,1024,32,1],[9,9,3,1],[]]; line = net.py:7 forward
    a = aten::addmm; input_shapes = [[10],[8,64],[64,10]]; input_types = ["float","float","float"]

Transposes around convolutions on a GPU.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | dd  dd  dd
    call 1 | nk  nk  nk
    gpu 7  |  nnnkkkkknnnkkkkknnnkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::convolution; input_shapes = [[8,64,32,32],[64,64,3,3],[]]; input_types = ["c10::Half","c10::Half",""]; input_strides = [[65536,1024,32,1],[576,9,3,1],[]]; line = net.py:7 forward
    n = void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>(int)
    k = sm80_xmma_fprop_implicit_gemm_indexed_f16f16_f16f16_f16_nhwckrsc_nhwc

## Silent on
Channels last.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ddddddddaaddddddddaaddddddddaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::convolution; input_shapes = [[8,64,32,32],[64,1,3,3],[]]; input_types = ["float","float",""]; input_strides = [[65536,1,2048,64],[9,1,3,1],[]]; line = net.py:7 forward
    a = aten::addmm; input_shapes = [[10],[8,64],[64,10]]; input_types = ["float","float","float"]

1x1 convolutions on a CPU, which are products of matrices in either layout.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ddddddddaaddddddddaaddddddddaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::convolution; input_shapes = [[8,64,32,32],[64,64,1,1],[]]; input_types = ["float","float",""]; input_strides = [[65536,1024,32,1],[64,1,1,1],[]]; line = net.py:7 forward
    a = aten::addmm; input_shapes = [[10],[8,64],[64,10]]; input_types = ["float","float","float"]
"""  # noqa: E501 - what a letter stands for is on one line

import json
from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Unknown, rule
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import covered, is_under, steps_recorded
from selftime.advice.detectors.operators import recorded_operators, sizes, with_backward
from selftime.advice.detectors.places import by_line
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Scale
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

FEWEST: Final = 8
"""Channels: fewer fill no vector and no tensor core in any layout."""

KEPT: Final = {"depthwise": 0.4, "dense": 0.83, "pointwise": 1.4}
"""Of the time of a convolution on a CPU, forward and backward: measured 1.6 to 2.8 times as fast if
depthwise, 1.2 times as fast for 3 x 3, which with few channels gain nothing, and 0.5 to 0.9 times
for 1 x 1. Depthwise ones must be most of the gain."""

KEPT_AT_LEAST: Final = {"depthwise": 0.1, "dense": 0.4, "pointwise": 1.0}
"""The same at best, with room for what other CPUs gain."""

LEAST_SHARE: Final = 0.1
"""Of the step that a CPU must gain: these ratios vary from CPU to CPU by as much."""

LEAST_CONVOLVING: Final = 0.15
"""Of the device's time in convolutions: below it their layout is not what sets the pace."""


@rule(covers=("E7",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    first = _channels_first(trace)
    if not trace.device_args.height and not trace.op_args["input_strides"].is_not_null().any():
        yield Unknown("strides of inputs: record with `record_shapes=True`, or `selftime run`")
        return
    if limits is None or not first.height:
        yield Checked(
            "no convolution of single or half precision takes channels first", is_absent=True
        )
    elif trace.device_args.height:
        yield _on_device(trace, limits, first)
    else:
        yield _on_host(trace, limits, first)


def _channels_first(trace: Trace) -> pl.DataFrame:
    """Convolutions of images whose channels come first, and of what kind: a column `filters`.

    On a device also those whose layout is not recorded: transposes around them will tell.
    """
    table = filter_by_name(recorded_operators(trace), names.is_convolution)
    keys = ("input_shapes", "input_strides", "input_types")
    table = table.with_columns(pl.col(*keys).cast(pl.String))
    untold = table.filter(pl.any_horizontal(pl.col(*keys).is_null()))
    table = table.drop_nulls(keys)
    rows = [(*texts, _filters(*texts)) for texts in table.select(keys).unique().iter_rows()]
    kinds = dict.fromkeys((*keys, "filters"), pl.String)
    told = pl.DataFrame(rows, schema=kinds, orient="row").drop_nulls()
    known = table.join(told, on=keys, how="inner", maintain_order="left")
    if not trace.device_args.height:
        return known
    return pl.concat([known, untold.with_columns(filters=pl.lit("untold"))]).sort("start", "id")


def _filters(shapes: str, strides: str, types: str) -> str | None:
    """What a convolution's filters are; None if it is no such, or its channels do not come first.

    `grouped` are those that are neither depthwise nor dense, and other sizes than 1 x 1 and 3 x 3.
    """
    shape, stride = sizes(shapes)[:2], sizes(strides)[:1]
    if len(shape) < 2 or not stride or [len(one) for one in (*shape, *stride)] != [4, 4, 4]:
        return None
    image, weight, steps = shape[0], shape[1], stride[0]
    _, channels, height, width = image
    if not _is_short(types) or channels < FEWEST or height * width < 2 or steps[1] == 1:
        return None
    if weight[1] == 1:
        return "depthwise"
    if weight[1] == channels and weight[2:] in {(1, 1), (3, 3)}:
        return "dense" if weight[2:] == (3, 3) else "pointwise"
    return "grouped"


def _is_short(types: str) -> bool:
    """Whether it computes in single or half precision, for which there are such kernels."""
    try:
        read: Any = json.loads(types)
    except ValueError:
        return False
    return isinstance(read, list) and read[:1] in (["float"], ["c10::Half"], ["c10::BFloat16"])


def _on_host(trace: Trace, limits: Gate, first: pl.DataFrame) -> Outcome:
    gain = most = 0.0
    times = {}
    for (kind,), part in first.group_by("filters"):
        begin, end = covered(with_backward(trace, part))
        times[str(kind)] = float((end - begin).sum())
    for kind, time in times.items():
        gain += time * (1 - KEPT.get(kind, 1.0))
        most += time * (1 - KEPT_AT_LEAST.get(kind, 1.0))
    faster = first.filter(pl.col("filters").is_in(["depthwise", "dense"]))
    whole = times.get("depthwise", 0.0) + times.get("dense", 0.0)
    spent = sum(times.values()) / steps_recorded(trace) / 1e6
    depthwise = times.get("depthwise", 0.0) * (1 - KEPT["depthwise"])
    is_sure = 2 * depthwise > gain
    if gain < LEAST_SHARE * limits.step_ms * 1e6 * steps_recorded(trace) or not is_sure:
        told = f"convolutions with channels first take {spent:.2f} ms a step, and would gain little"
        return Checked(told, limits.unrecorded(max(most, 0.0) / steps_recorded(trace) / 1e6))
    every = with_backward(trace, faster)
    cut = change(trace, every, 1 - gain / whole)
    bound = change(trace, every, 1 - max(gain, min(most, whole)) / whole)
    saving = priced(trace, limits, cut, most=(bound,))
    return limits.judge(_finding(trace, faster, saving, cut, spent))


def _on_device(trace: Trace, limits: Gate, first: pl.DataFrame) -> Outcome:
    operators = recorded_operators(trace)
    work = device_work(trace)
    launchers = work.join(
        operators.select(operator="id", on="track", when="start"), on="operator", how="inner"
    )
    asked = launchers.select(track="on", start="when")
    own = launchers.filter(pl.Series(is_under(asked, with_backward(trace, first))))
    turned = filter_by_name(own, names.changes_layout)
    whole, convolving = (sum(t["duration"].to_list()) for t in (launchers, own))
    spent = sum(turned["duration"].to_list()) / steps_recorded(trace) / 1e6
    if convolving < LEAST_CONVOLVING * whole or not turned.height:
        told = f"transposes around convolutions take {spent:.2f} ms of the device a step"
        return Checked(told, limits.unrecorded(spent))
    removed = Scale(turned["id"].cast(pl.Int64).to_numpy(), 0.0)
    saving = priced(trace, limits, removed)
    return limits.judge(_finding(trace, first, saving, removed, spent))


def _finding(
    trace: Trace,
    part: pl.DataFrame,
    saving: Saving,
    changed: Change,
    spent: float,
) -> Finding:
    place, _ = next(by_line(trace, part))
    on_device = bool(trace.device_args.height)
    what = "transposes around them" if on_device else "convolutions"
    return Finding(
        title="Convolutions take images whose channels come first",
        where=place,
        count_per_step=part.height / steps_recorded(trace),
        saving=saving,
        confidence="medium",
        semantics="neutral",
        evidence=(Evidence(f"time in {what}, a step", spent, "ms"),),
        fix=Fix(
            "Keep the model and its input in `channels_last`; the named line is the convolution "
            "with most of the time.",
            "model = model.to(memory_format=torch.channels_last)\n"
            "images = images.contiguous(memory_format=torch.channels_last)",
        ),
        changes=(changed,),
    )
