"""Matrix products run far below the rate that the device can reach.

## What it means
Large products take a good part of the device's time at less than a quarter of the rate that the
device's peak, or the bandwidth of its memory, would allow for their sizes.

In the trace: the sizes of a product and its kernel's time, 50 us or more, in a fifth of the step or
more; the device's peaks are known.

## Why it costs
A trace does not show why the kernel is slow: it has no caches, conflicts or clocks. It has the
sizes and the time, and so the distance from the peak.

## What to do
Measure the same product alone, with neighbouring sizes (multiples of 64, 128), the other operand's
layout, and a newer library. If it is as slow alone, the size is the reason.

No saving is estimated.

## Fires on
A product that reaches a tenth of the peak.

    column = 1 ms
    device = {"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 108}
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[4096,4096],[4096,4096]]; input_types = ["c10::BFloat16","c10::BFloat16"]; line = net.py:7 forward
    k = ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn; properties = 0
    r = reduce_kernel; properties = 0

## Silent on
A product that reaches half of the peak.

    column = 100 us
    device = {"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 108}
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[4096,4096],[4096,4096]]; input_types = ["c10::BFloat16","c10::BFloat16"]
    k = ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn; properties = 0
    r = reduce_kernel; properties = 0

A device whose peak is not known.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[4096,4096],[4096,4096]]; input_types = ["c10::BFloat16","c10::BFloat16"]
    k = ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn
    r = reduce_kernel
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.replay import ScaleDeviceWork
from selftime.advice.rule_definition import (
    STEPS_WITH_DURATION,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
    where_from_row,
)
from selftime.advice.savings.estimates import replayed_saving_ms
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.models import RecordedOperatorCall, work_of_operator_call
from selftime.analysis.models.modelled_operator_work import common_peak_rates_of_devices
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.devices import DevicePeakRates
from selftime.trace import Trace
from selftime.units import whole_percent_text

SLOW_BELOW_SHARE_OF_PEAK_RATE: Final = 0.25
"""Share of the device's peak FLOP rate below which a matrix product counts as slow."""

MIN_SLOW_PRODUCT_SHARE_OF_STEP: Final = 0.2
"""Smallest share of the step in slow matrix products to report."""

MIN_RATED_KERNEL_NS: Final = 50_000
"""Shortest kernel whose FLOP rate is judged, in ns; shorter kernels do not fill the device."""

MAX_ELEMENTS_PER_UNALIGNED_LOAD: Final = 2
"""Largest number of elements that a kernel for unaligned matrices loads at once; the rule
`unaligned_matrix` reports such kernels."""


@rule(covers=("E12",), needs=("device", "links", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    device_peaks = common_peak_rates_of_devices(trace)
    if device_peaks is None:
        yield Unknown("the peak rates of the device, which its name in the trace does not tell")
        return
    if limits is None:
        yield Unknown(STEPS_WITH_DURATION)
        return
    products = _matrix_kernels_with_roofline_times(trace, device_peaks)
    slow = products.filter(
        (pl.col("least") < SLOW_BELOW_SHARE_OF_PEAK_RATE * pl.col("duration"))
        & (pl.col("duration") > MIN_RATED_KERNEL_NS)
    )
    if not slow.height:
        yield Checked(
            f"no long product runs below {whole_percent_text(SLOW_BELOW_SHARE_OF_PEAK_RATE)} of "
            "the device's peak",
            is_absent=True,
        )
        return
    slow = slow.with_columns(source_sites_of_slices(trace, slow["id"]))
    least = max(
        MIN_SLOW_PRODUCT_SHARE_OF_STEP * limits.step_ms, limits.least_significant_saving_ms()
    )
    small_ms = 0.0
    for kernels in slow.partition_by(*SOURCE_SITE_COLUMNS, maintain_order=True):
        spent_ms = float(sum(kernels["duration"].to_list())) / recorded_step_count(trace) / 1e6
        removal = ScaleDeviceWork(kernels["id"].cast(pl.Int64).to_numpy(), 0.0)
        if spent_ms >= least and replayed_saving_ms(trace, limits, [removal]) >= least:
            yield _finding(trace, kernels)
        else:
            small_ms += spent_ms
    if small_ms:
        yield Checked(
            f"removing long products below {whole_percent_text(SLOW_BELOW_SHARE_OF_PEAK_RATE)} of "
            "the peak would save little of the step",
            small_ms,
            is_slowed=False,
        )


def _matrix_kernels_with_roofline_times(
    trace: Trace, device_peaks: DevicePeakRates
) -> pl.DataFrame:
    """Returns matrix product kernels, with the shortest time in ns by the roofline model.

    The time is in the column `least`.
    """
    operators = filter_by_name(operators_in_counted_steps(trace), names.is_matrix_operator)
    keys = ["called", "input_shapes", "input_types", "concrete_inputs"]
    calls = operators.select(*keys[1:], operator="id", called="name")
    calls = calls.with_columns(pl.col(*keys).cast(pl.String)).drop_nulls(keys[1:3])
    runs = device_work(trace).filter((pl.col("kind") == "kernel") & (pl.col("duration") > 0))
    runs = filter_by_name(runs, _is_matrix_kernel_for_aligned_operands).join(
        calls, on="operator", maintain_order="left"
    )
    alone = runs.filter(pl.len().over("operator") == 1)
    cores = filter_by_name(alone, lambda name: names.uses_tensor_cores(name) is True)["id"]
    alone = alone.with_columns(cores=pl.col("id").is_in(cores.implode()))
    keys = [*keys, "cores"]
    rows = [
        (*call, least)
        for call in alone.select(keys).unique().iter_rows()
        if (least := _roofline_time_ns(device_peaks, *call)) is not None
    ]
    kinds = {**dict.fromkeys(keys[:-1], pl.String), "cores": pl.Boolean, "least": pl.Float64}
    least_times = pl.DataFrame(rows, schema=kinds, orient="row")
    return alone.join(least_times, on=keys, how="inner", nulls_equal=True, maintain_order="left")


def _is_matrix_kernel_for_aligned_operands(kernel_name: str) -> bool:
    """Returns whether a kernel is a matrix product or convolution on aligned operands."""
    alignment = names.cutlass_operand_alignment(kernel_name)
    is_product = names.kernel_class(kernel_name) in {"gemm", "convolution"}
    return is_product and (alignment is None or alignment > MAX_ELEMENTS_PER_UNALIGNED_LOAD)


def _roofline_time_ns(
    device_peaks: DevicePeakRates,
    operator_name: str,
    input_shapes: str,
    input_types: str,
    concrete_inputs: str | None,
    uses_tensor_cores: bool,
) -> float | None:
    """Returns a call's shortest time in ns by the roofline model; None if it is unknown.

    It is that of the operations at the peak rate, or of the bytes at the memory bandwidth.
    """
    work = work_of_operator_call(
        operator_name, RecordedOperatorCall(input_shapes, input_types, concrete_inputs)
    )
    if work is None or work.bytes is None or not 0 < work.flops < 1 << 58:
        return None
    dtype = "tf32" if uses_tensor_cores and work.dtype == "float32" else work.dtype
    peak = device_peaks.operations.get(dtype or "")
    return None if not peak else 1e9 * max(work.flops / peak, work.bytes / device_peaks.bytes)


def _finding(trace: Trace, kernels: pl.DataFrame) -> Finding:
    row: dict[str, Any] = kernels.row(0, named=True)
    steps = recorded_step_count(trace)
    time, least = sum(kernels["duration"].to_list()), sum(kernels["least"].to_list())
    share = whole_percent_text(least / time)
    return Finding(
        title=f"`{row['called']}` of {row['input_shapes']} runs at {share} of the peak",
        where=where_from_row(row),
        count_per_step=kernels.height / steps,
        confidence="low",
        semantics="numerics",
        evidence=(
            Evidence("device time in the product, a step", time / steps / 1e6, "ms"),
            Evidence("shortest time by the device's peak rates, a step", least / steps / 1e6, "ms"),
        ),
        fix=Fix(
            "A trace does not show why. Measure the product alone, and with neighbouring sizes.",
            "from torch.utils.benchmark import Timer\n"
            'Timer("a @ b", globals={"a": a, "b": b}).blocked_autorange()',
        ),
    )
