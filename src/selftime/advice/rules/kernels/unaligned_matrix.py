"""Half-precision products have rows that are not aligned to 16 bytes.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule, where
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.operators import recorded_operators
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Scale
from selftime.analysis.device.work import device_work
from selftime.analysis.models import Call, work
from selftime.analysis.models.modelled import peaks_in
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

HALF: Final = frozenset({"c10::Half", "c10::BFloat16"})
"""Dtypes of which 16 bytes are 8 elements."""

UNALIGNED: Final = 2
"""Loads of at most so many elements are a quarter of 16 bytes or less."""

ATTAINED: Final = 0.6
"""Of the device's peak that aligned products of a fair size reach, if none in the trace tells."""

COMPARABLE: Final = 0.25
"""An aligned product with less of the operations says nothing of the rate that these can reach."""

KEPT: Final = 0.25
"""Of the time, where neither the trace nor the device's peak tells: an aligned product of bfloat16
on an H100 takes an eighth to a twelfth; smaller ones, and older devices, gain less."""


@rule(covers=("E3",), needs=("device", "links", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    products = _products(trace)
    slow = products.filter("unaligned")
    if limits is None or not slow.height:
        yield Checked(
            "no half-precision product runs a kernel for unaligned operands", is_absent=True
        )
        return
    slow = slow.with_columns(sites(trace, slow["id"]))
    for part in slow.partition_by(*SITE, maintain_order=True):
        change = Scale(part["id"].cast(pl.Int64).to_numpy(), _kept(trace, part, products))
        most = Scale(change.work, 0.0)
        yield limits.judge(
            _finding(trace, part, priced(trace, limits, change, most=(most,)), change)
        )


def _products(trace: Trace) -> pl.DataFrame:
    """Kernels of half-precision products: id, duration, shapes, flops, unaligned."""
    operators = filter_by_name(recorded_operators(trace), names.is_matrix_operator)
    told = operators.select(
        operator="id",
        called=pl.col("name").cast(pl.String),
        shapes=pl.col("input_shapes").cast(pl.String),
        types=pl.col("input_types").cast(pl.String),
    ).drop_nulls()
    keys = ["called", "shapes", "types"]
    rows = [
        (*texts, _operations(*texts))
        for texts in told.select(keys).unique().iter_rows()
        if _is_half(texts[2])
    ]
    kinds = {**dict.fromkeys(keys, pl.String), "flops": pl.Int64}
    half = told.join(pl.DataFrame(rows, schema=kinds, orient="row"), on=keys, how="inner")
    runs = device_work(trace).filter((pl.col("kind") == "kernel") & (pl.col("duration") > 0))
    runs = filter_by_name(runs, lambda name: names.kernel_class(name) in {"gemm", "convolution"})
    slow = filter_by_name(runs, _is_unaligned)["id"]
    return runs.join(half, on="operator", how="inner", maintain_order="left").with_columns(
        unaligned=pl.col("id").is_in(slow.implode())
    )


def _is_unaligned(name: str) -> bool:
    alignment = names.alignment_of(name)
    return alignment is not None and alignment <= UNALIGNED


def _is_half(types: str) -> bool:
    try:
        told = json.loads(types)
    except ValueError:
        return False
    read = told if isinstance(told, list) else []
    floating = {kind for kind in read if isinstance(kind, str) and kind in names.FLOATING}
    return bool(floating) and floating <= HALF


def _operations(name: str, shapes: str, types: str) -> int:
    found = work(name, Call(shapes, types))
    return found.flops if found and 0 < found.flops < 1 << 58 else 0


def _kept(trace: Trace, part: pl.DataFrame, products: pl.DataFrame) -> float:
    """The share of the time that aligned products of as many operations take."""
    flops, time = sum(part["flops"].to_list()), sum(part["duration"].to_list())
    if not flops:
        return KEPT
    least = COMPARABLE * min(part["flops"].to_list())
    aligned = products.filter(~pl.col("unaligned") & (pl.col("flops") >= max(least, 1)))
    rates = (aligned["flops"] / aligned["duration"]).to_list()
    peaks = peaks_in(trace)
    peak = peaks.operations.get("float16") if peaks else None
    if not rates and peak is None:
        return KEPT
    target = median(rates) if rates else ATTAINED * float(peak or 0) / 1e9
    return min(1.0, float(flops / target / time))


def _finding(trace: Trace, part: pl.DataFrame, saving: Saving, change: Scale) -> Finding:
    steps = steps_recorded(trace)
    row: dict[str, Any] = part.row(0, named=True)
    spent = sum(part["duration"].to_list()) / steps / 1e6
    place = where(row)
    return Finding(
        title=f"`{row['called']}` of {row['shapes']} runs a kernel for unaligned operands",
        where=place,
        count_per_step=part.height / steps,
        saving=saving,
        confidence="high" if place.line is not None else "medium",
        evidence=(
            Evidence("device time in these kernels", spent, "ms", tuple(part["id"].head(8))),
            Evidence("elements loaded at once, at most", float(UNALIGNED), "count"),
        ),
        fix=Fix(
            "Pad the dimension that is contiguous in memory to a multiple of 8, better of 64.",
            "width = (width + 63) // 64 * 64    # vocabulary, sequence, or width of a head",
        ),
        changes=(change,),
    )
