"""Convolutions take images whose channels come first in memory.

## What it means
Images lie in memory one channel after the other (NCHW), as they do unless told otherwise. The fast
kernels of tensor cores, and those of a CPU for depthwise convolutions, want all channels of a pixel
together (NHWC, `channels_last`).

In the trace: the strides of a convolution's input, and on a GPU the kernels within convolutions
that change the layout.

## Why it costs
A GPU's library turns each input around, and each output back: passes over memory that compute
nothing. On a CPU the channels of a pixel are apart in memory and fill no vector.

## What to do
`model.to(memory_format=torch.channels_last)`, and the same of the input: layers between keep the
layout. On a CPU depthwise convolutions gain more than half of their time, 3x3 ones a fifth or
nothing, and 1x1 ones lose: measure. On one core with AVX512 a MobileNet was 1.3 times as fast in
training and 1.1 times for inference, a ResNet-50 as fast as before, a ResNet-18 from 0.9 times, in
training with images of 64 pixels, to 1.1 times, for inference with 128. Whether cuDNN looked for
its fastest kernel is another question.

The estimate removes these kernels on a GPU; on a CPU it shortens convolutions by ratios that were
measured.

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
from selftime.advice.detectors.counted_operators import (
    operators_in_counted_steps,
    parse_sizes,
    with_backward_operators,
)
from selftime.advice.detectors.counted_steps import (
    begins_within_enclosing,
    operator_intervals,
    recorded_step_count,
)
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.replay import ScaleDeviceWork
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Unknown, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.recording_requirements import recording_remedy
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace
from selftime.units import share_text, whole_percent_text

MIN_INPUT_CHANNELS: Final = 8
"""Smallest number of input channels for which the memory layout matters: fewer fill no vector
register and no tensor core."""

CHANNELS_LAST_TO_NCHW_TIME_RATIOS: Final = {"depthwise": 0.4, "dense": 0.83, "pointwise": 1.4}
"""Time of CPU convolutions in `channels_last` as a share of their time in NCHW, by kind of filter,
as measured forward and backward. Convolutions of 1 x 1 become slower, and most of the saving must
come from depthwise ones."""

MIN_CHANNELS_LAST_TO_NCHW_TIME_RATIOS: Final = {"depthwise": 0.1, "dense": 0.4, "pointwise": 1.0}
"""Smallest time of convolutions in `channels_last` as a share of their time in NCHW, by kind of
filter, on any CPU."""

MIN_SAVED_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the step that `channels_last` must save on a CPU to report; CPUs differ as
much."""

MIN_CONVOLUTION_SHARE_OF_DEVICE_TIME: Final = 0.15
"""Smallest share of device time in convolutions to report."""


@rule(covers=("E7",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    convolutions = _channels_first_convolutions(trace)
    if not trace.device_args.height and not trace.op_args["input_strides"].is_not_null().any():
        remedy = recording_remedy(trace, "shapes")
        yield Unknown(remedy.replace("input shapes", "strides of inputs"))
        return
    if limits is None or not convolutions.height:
        yield Checked(
            "no convolution in float32 or half precision takes channels first", is_absent=True
        )
    elif trace.device_args.height:
        yield _outcome_on_device(trace, convolutions)
    else:
        yield _outcome_on_cpu(trace, limits, convolutions)


def _channels_first_convolutions(trace: Trace) -> pl.DataFrame:
    """Returns the convolutions whose input is in NCHW layout, with their kind of filter.

    The column `filters` is the kind of filter.

    On a device also those whose layout is not recorded: kernels that change it will show.
    """
    table = filter_by_name(operators_in_counted_steps(trace), names.is_generic_convolution)
    keys = ("input_shapes", "input_strides", "input_types")
    table = table.with_columns(pl.col(*keys).cast(pl.String))
    unknown = table.filter(pl.any_horizontal(pl.col(*keys).is_null()))
    table = table.drop_nulls(keys)
    rows = [
        (*texts, _filter_kind_if_nchw(*texts)) for texts in table.select(keys).unique().iter_rows()
    ]
    kinds = dict.fromkeys((*keys, "filters"), pl.String)
    channels_first = pl.DataFrame(rows, schema=kinds, orient="row").drop_nulls()
    known = table.join(channels_first, on=keys, how="inner", maintain_order="left")
    if not trace.device_args.height:
        return known
    return pl.concat([known, unknown.with_columns(filters=pl.lit("unknown"))]).sort("start", "id")


def _filter_kind_if_nchw(input_shapes: str, input_strides: str, input_types: str) -> str | None:
    """Returns a convolution's kind of filter, such as `depthwise`; None if its input is not NCHW.

    `grouped` are filters that are neither depthwise nor dense, or of another size than 1 x 1 and
    3 x 3.
    """
    shape, stride = parse_sizes(input_shapes)[:2], parse_sizes(input_strides)[:1]
    if len(shape) < 2 or not stride or [len(sizes) for sizes in (*shape, *stride)] != [4, 4, 4]:
        return None
    image, weight, steps = shape[0], shape[1], stride[0]
    _, channels, height, width = image
    if (
        not _is_first_input_float32_or_half(input_types)
        or channels < MIN_INPUT_CHANNELS
        or height * width < 2
        or steps[1] == 1
    ):
        return None
    if weight[1] == 1:
        return "depthwise"
    if weight[1] == channels and weight[2:] in {(1, 1), (3, 3)}:
        return "dense" if weight[2:] == (3, 3) else "pointwise"
    return "grouped"


def _is_first_input_float32_or_half(input_types: str) -> bool:
    """Returns whether an operator's first input is float32 or of half precision."""
    try:
        dtypes: Any = json.loads(input_types)
    except ValueError:
        return False
    return isinstance(dtypes, list) and dtypes[:1] in (["float"], ["c10::Half"], ["c10::BFloat16"])


def _outcome_on_cpu(
    trace: Trace, statistics: StepStatistics, convolutions: pl.DataFrame
) -> Outcome:
    gain = most = 0.0
    times = {}
    for (kind,), part in convolutions.group_by("filters"):
        begin, end = operator_intervals(with_backward_operators(trace, part))
        times[str(kind)] = float((end - begin).sum())
    for kind, time in times.items():
        gain += time * (1 - CHANNELS_LAST_TO_NCHW_TIME_RATIOS.get(kind, 1.0))
        most += time * (1 - MIN_CHANNELS_LAST_TO_NCHW_TIME_RATIOS.get(kind, 1.0))
    faster = convolutions.filter(pl.col("filters").is_in(["depthwise", "dense"]))
    whole = times.get("depthwise", 0.0) + times.get("dense", 0.0)
    spent_ms_per_step = sum(times.values()) / recorded_step_count(trace) / 1e6
    depthwise = times.get("depthwise", 0.0) * (1 - CHANNELS_LAST_TO_NCHW_TIME_RATIOS["depthwise"])
    is_sure = 2 * depthwise > gain
    least = MIN_SAVED_SHARE_OF_STEP * statistics.step_ms * 1e6 * recorded_step_count(trace)
    if most < least:
        return Checked(
            "convolutions with channels first would gain little in `channels_last`",
            max(most, 0.0) / recorded_step_count(trace) / 1e6,
        )
    if gain < least or not is_sure:
        return Unknown(
            "a trial of `channels_last`: what it gives convolutions with channels first depends on "
            f"the CPU; they take {share_text(spent_ms_per_step / statistics.step_ms)} of the step"
        )
    every = with_backward_operators(trace, faster)
    cut = change_shortening_operators(trace, every, 1 - gain / whole)
    bound = change_shortening_operators(trace, every, 1 - max(gain, min(most, whole)) / whole)
    return _finding(
        trace, faster, RemovalClaim((cut,), largest_changes=(bound,)), spent_ms_per_step
    )


def _outcome_on_device(trace: Trace, convolutions: pl.DataFrame) -> Outcome:
    operators = operators_in_counted_steps(trace)
    work = device_work(trace)
    launchers = work.join(
        operators.select(operator="id", on="track", when="start"), on="operator", how="inner"
    )
    launch_starts = launchers.select(track="on", start="when")
    convolution_work = launchers.filter(
        pl.Series(
            begins_within_enclosing(launch_starts, with_backward_operators(trace, convolutions))
        )
    )
    transposes = filter_by_name(convolution_work, names.changes_layout)
    whole, convolving = (sum(t["duration"].to_list()) for t in (launchers, convolution_work))
    spent_ms_per_step = sum(transposes["duration"].to_list()) / recorded_step_count(trace) / 1e6
    if convolving < MIN_CONVOLUTION_SHARE_OF_DEVICE_TIME * whole or not transposes.height:
        least = whole_percent_text(MIN_CONVOLUTION_SHARE_OF_DEVICE_TIME)
        text = (
            f"convolutions take less than {least} of the device's time"
            if transposes.height
            else "no kernel transposes a tensor around a convolution"
        )
        return Checked(text, spent_ms_per_step, is_slowed=False)
    removed = ScaleDeviceWork(transposes["id"].cast(pl.Int64).to_numpy(), 0.0)
    return _finding(trace, convolutions, RemovalClaim((removed,)), spent_ms_per_step)


def _finding(
    trace: Trace, convolutions: pl.DataFrame, claim: RemovalClaim, spent_ms_per_step: float
) -> Finding:
    location, _ = next(operators_by_line(trace, convolutions))
    on_device = bool(trace.device_args.height)
    measured = "transposes around convolutions" if on_device else "convolutions"
    return Finding(
        title="Convolutions run on images in the channels-first memory format (NCHW)",
        where=location,
        count_per_step=convolutions.height / recorded_step_count(trace),
        claim=claim,
        confidence="medium",
        semantics="neutral",
        evidence=(Evidence(f"time in {measured}, a step", spent_ms_per_step, "ms"),),
        fix=Fix(
            "Keep the model and its input in `channels_last`; the named line is the convolution "
            "with most of the time.",
            "model = model.to(memory_format=torch.channels_last)\n"
            "images = images.contiguous(memory_format=torch.channels_last)",
        ),
    )
