"""Half-precision matrices have rows that are not aligned to 16 bytes.

## What it means
A product of float16 or bfloat16 matrices runs a kernel for operands of any alignment (`align1`,
`align2`), because a row or column in memory has a length that is no multiple of 8 elements: an odd
vocabulary, sequence, or width of a head.

## Why it costs
Tensor cores are fed in pieces of 16 bytes. A kernel that may not count on that loads element by
element, and reaches an eighth to a twelfth of the rate. The number of rows does not matter, only
the distance from one to the next.

## What to do
Pad the dimension that is contiguous in memory to a multiple of 8, better of 64: the vocabulary of
the last layer, the length of sequences, the width of heads. For attention call
`torch.nn.functional.scaled_dot_product_attention`, which does not need it.

The estimate gives these products the rate of aligned ones in the trace, else 60 % of the device's
peak, else a quarter of their time.

## Fires on
Products of an odd width, beside aligned ones of the same size.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaabaaabaaab
    call 1 | k  bk  bk  b
    gpu 7  | kkkkkkkbkkkkkkkbkkkkkkkb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["c10::BFloat16","c10::BFloat16"]; input_shapes = [[512,513],[513,513]]
    b = aten::mm; input_types = ["c10::BFloat16","c10::BFloat16"]; input_shapes = [[512,512],[512,512]]
    k = cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x2_nn_align1

## Silent on
An odd number of rows, for which the aligned kernel runs.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaabaaabaaab
    call 1 | k  bk  bk  b
    gpu 7  | kkkkkkkbkkkkkkkbkkkkkkkb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["c10::BFloat16","c10::BFloat16"]; input_shapes = [[513,512],[512,512]]
    b = aten::mm; input_types = ["c10::BFloat16","c10::BFloat16"]; input_shapes = [[512,512],[512,512]]
    k = cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_nn_align8

Single precision, of which four elements are 16 bytes.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaabaaabaaab
    call 1 | k  bk  bk  b
    gpu 7  | kkkkkkkbkkkkkkkbkkkkkkkb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[512,513],[513,513]]
    b = aten::mm; input_types = ["float","float"]; input_shapes = [[512,512],[512,512]]
    k = cutlass_80_simt_sgemm_32x128_8x5_nn_align1
"""  # noqa: E501 - what a letter stands for is on one line

import json
from collections.abc import Iterator
from statistics import median
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.replay import ScaleDeviceWork
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.models import RecordedOperatorCall, work_of_operator_call
from selftime.analysis.models.modelled_operator_work import common_peak_rates_of_devices
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.trace import Trace

HALF_PRECISION_DTYPES: Final = frozenset({"c10::Half", "c10::BFloat16"})
"""Names of half-precision dtypes in traces; 8 of their elements are 16 bytes."""

MAX_ELEMENTS_PER_UNALIGNED_LOAD: Final = 2
"""Largest number of elements that a kernel for unaligned matrices loads at once."""

ALIGNED_PRODUCT_SHARE_OF_PEAK_RATE: Final = 0.6
"""Assumed share of the device's peak FLOP rate of large aligned matrix products, if the trace has
no such products."""

MIN_COMPARABLE_FLOPS_RATIO: Final = 0.25
"""Smallest ratio of an aligned product's FLOPs to an unaligned one's for their rates to be
compared."""

DEFAULT_ALIGNED_TO_UNALIGNED_TIME_RATIO: Final = 0.25
"""Assumed time of an aligned product as a share of an unaligned one's, if the trace shows neither
aligned products nor the device's peak rate."""


@rule(covers=("E3",), needs=("device", "links", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    products = _half_precision_matrix_kernels(trace)
    slow = products.filter("unaligned")
    if limits is None or not slow.height:
        yield Checked(
            "no half-precision product runs a kernel for unaligned operands", is_absent=True
        )
        return
    slow = slow.with_columns(source_sites_of_slices(trace, slow["id"]))
    for kernels in slow.partition_by(*SOURCE_SITE_COLUMNS, maintain_order=True):
        change = ScaleDeviceWork(
            kernels["id"].cast(pl.Int64).to_numpy(),
            _aligned_to_unaligned_time_ratio(trace, kernels, products),
        )
        most = ScaleDeviceWork(change.work, 0.0)
        yield _finding(trace, kernels, RemovalClaim((change,), largest_changes=(most,)))


def _half_precision_matrix_kernels(trace: Trace) -> pl.DataFrame:
    """Returns the half-precision matrix kernels, and whether each is for unaligned operands.

    Columns: duration (ns), shapes, flops, unaligned (flag).
    """
    operators = filter_by_name(operators_in_counted_steps(trace), names.is_matrix_operator)
    calls = operators.select(
        operator="id",
        called=pl.col("name").cast(pl.String),
        shapes=pl.col("input_shapes").cast(pl.String),
        types=pl.col("input_types").cast(pl.String),
    ).drop_nulls()
    keys = ["called", "shapes", "types"]
    rows = [
        (*texts, _operator_flop_count(*texts))
        for texts in calls.select(keys).unique().iter_rows()
        if _has_only_half_precision_inputs(texts[2])
    ]
    kinds = {**dict.fromkeys(keys, pl.String), "flops": pl.Int64}
    half = calls.join(pl.DataFrame(rows, schema=kinds, orient="row"), on=keys, how="inner")
    runs = device_work(trace).filter((pl.col("kind") == "kernel") & (pl.col("duration") > 0))
    runs = filter_by_name(runs, lambda name: names.kernel_class(name) in {"gemm", "convolution"})
    slow = filter_by_name(runs, _is_kernel_for_unaligned_operands)["id"]
    return runs.join(half, on="operator", how="inner", maintain_order="left").with_columns(
        unaligned=pl.col("id").is_in(slow.implode())
    )


def _is_kernel_for_unaligned_operands(kernel_name: str) -> bool:
    alignment = names.cutlass_operand_alignment(kernel_name)
    return alignment is not None and alignment <= MAX_ELEMENTS_PER_UNALIGNED_LOAD


def _has_only_half_precision_inputs(input_types: str) -> bool:
    try:
        value = json.loads(input_types)
    except ValueError:
        return False
    dtypes = value if isinstance(value, list) else []
    floating = {
        dtype for dtype in dtypes if isinstance(dtype, str) and dtype in names.FLOATING_POINT_DTYPES
    }
    return bool(floating) and floating <= HALF_PRECISION_DTYPES


def _operator_flop_count(operator_name: str, input_shapes: str, input_types: str) -> int:
    work = work_of_operator_call(operator_name, RecordedOperatorCall(input_shapes, input_types))
    return work.flops if work and 0 < work.flops < 1 << 58 else 0


def _aligned_to_unaligned_time_ratio(
    trace: Trace, unaligned_kernels: pl.DataFrame, all_kernels: pl.DataFrame
) -> float:
    """Returns the time of products on aligned matrices as a share of the recorded time."""
    flops, time = (
        sum(unaligned_kernels["flops"].to_list()),
        sum(unaligned_kernels["duration"].to_list()),
    )
    if not flops:
        return DEFAULT_ALIGNED_TO_UNALIGNED_TIME_RATIO
    least = MIN_COMPARABLE_FLOPS_RATIO * min(unaligned_kernels["flops"].to_list())
    aligned = all_kernels.filter(~pl.col("unaligned") & (pl.col("flops") >= max(least, 1)))
    rates = (aligned["flops"] / aligned["duration"]).to_list()
    peaks = common_peak_rates_of_devices(trace)
    peak = peaks.operations.get("float16") if peaks else None
    if not rates and peak is None:
        return DEFAULT_ALIGNED_TO_UNALIGNED_TIME_RATIO
    target = median(rates) if rates else ALIGNED_PRODUCT_SHARE_OF_PEAK_RATE * float(peak or 0) / 1e9
    return min(1.0, float(flops / target / time))


def _finding(trace: Trace, kernels: pl.DataFrame, claim: RemovalClaim) -> Finding:
    steps = recorded_step_count(trace)
    row: dict[str, Any] = kernels.row(0, named=True)
    spent_ms = sum(kernels["duration"].to_list()) / steps / 1e6
    location = where_from_row(row)
    return Finding(
        title=f"`{row['called']}` of {row['shapes']} runs a kernel for unaligned operands",
        where=location,
        count_per_step=kernels.height / steps,
        claim=claim,
        confidence="high" if location.line is not None else "medium",
        evidence=(
            Evidence(
                "device time in kernels for unaligned operands",
                spent_ms,
                "ms",
                tuple(kernels["id"].head(8)),
                kernels["id"].to_numpy(),
            ),
            Evidence(
                "most elements that one unaligned load can read",
                float(MAX_ELEMENTS_PER_UNALIGNED_LOAD),
                "count",
            ),
        ),
        fix=Fix(
            "Pad the dimension that is contiguous in memory to a multiple of 8, better of 64.",
            "width = (width + 63) // 64 * 64  # of vocabulary, sequence or head",
        ),
    )
