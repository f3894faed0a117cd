"""A long kernel runs on only a few of the device's multiprocessors.

## What it means
A kernel is launched with a handful of blocks, and a block runs on one multiprocessor: the others,
about a hundred in a GPU, are idle while it runs.

In the trace: kernels of 20 us and more whose grid has 4 blocks or fewer, and without which the step
is 5 % shorter or more.

## Why it costs
The time in such kernels goes by at a hundredth of the device. They come from operators that work
along one dimension of a tensor which has hardly another: a scan or sort of one long row, the k
largest of a vocabulary for a single sequence.

## What to do
Give it more rows at once: batch the calls, or reshape so that the long dimension is split. A scan
can go over pieces and then over their totals; the k largest of pieces are those of the whole. Or
run it on another stream, beside work that fills the device.

No saving is estimated, only bounded: a trace shows how much shorter the step is without the kernel,
and not how much faster the operator gets.

## Fires on
A cumulative sum along a single row, that takes a third of the step.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | ccmmccmmccmm
    call 1 | k m k m k m
    gpu 7  |  kkkkmmmmmmkkkkmmmmmmkkkkmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::cumsum; line = scan.py:4 scan
    m = aten::mm
    k = tensor_kernel_scan_innermost_dim; grid = [1, 1, 1]; block = [512, 1, 1]

## Silent on
As many blocks as the device has multiprocessors.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | ccmmccmmccmm
    call 1 | k m k m k m
    gpu 7  |  kkkkmmmmmmkkkkmmmmmmkkkkmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::cumsum
    m = aten::mm
    k = tensor_kernel_scan_innermost_dim; grid = [108, 1, 1]; block = [512, 1, 1]

Short kernels, for which more blocks are no help.

    column = 10 us
    mark 1 | ssssttttuuuu
    cpu 1  | ccmmccmmccmm
    call 1 | k m k m k m
    gpu 7  |  kmmmmmmkmmmmmmkmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::cumsum
    m = aten::mm
    k = tensor_kernel_scan_innermost_dim; grid = [1, 1, 1]; block = [512, 1, 1]
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
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
from selftime.advice.savings.claims import UpperBoundClaim
from selftime.advice.savings.estimates import replayed_saving_ms
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import is_instant_in_windows, steps_with_counted_flags
from selftime.trace import Trace

MAX_BLOCKS_OF_REPORTED_KERNEL: Final = 4
"""Largest number of thread blocks of a kernel to report; most multiprocessors are idle then."""

MIN_REPORTED_KERNEL_NS: Final = 20_000
"""Shortest kernel to report, in ns; launch and memory latency bound shorter ones."""

MIN_SAVED_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in such kernels to report."""

COMPUTE_KERNEL_CLASSES: Final = frozenset(names.KERNEL_CLASSES) - {"collective", "copy", "fill"}
"""Classes of kernels that could use more thread blocks; collectives use few on purpose."""


@rule(covers=("E10",), needs=("device", "links"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    few_blocks = _few_block_kernels(trace)
    if limits is None or not few_blocks.height:
        yield Checked(
            f"no long kernel runs with {MAX_BLOCKS_OF_REPORTED_KERNEL} blocks or fewer",
            is_absent=True,
        )
        return
    few_blocks = few_blocks.with_columns(source_sites_of_slices(trace, few_blocks["id"]))
    least = max(MIN_SAVED_SHARE_OF_STEP * limits.step_ms, limits.least_significant_saving_ms())
    small_ms = 0.0
    for kernels in few_blocks.partition_by("name", *SOURCE_SITE_COLUMNS, maintain_order=True):
        spent_ms = _device_ms_per_step(trace, kernels)
        removal = ScaleDeviceWork(kernels["id"].cast(pl.Int64).to_numpy(), 0.0)
        if spent_ms >= least and (most_ms := replayed_saving_ms(trace, limits, [removal])) >= least:
            yield _finding(trace, kernels, UpperBoundClaim(most_ms, is_slowed=False))
        else:
            small_ms += spent_ms
    if small_ms:
        yield Checked(
            f"removing long kernels with {MAX_BLOCKS_OF_REPORTED_KERNEL} blocks or fewer would "
            "save little of the step",
            small_ms,
            is_slowed=False,
        )


def _device_ms_per_step(trace: Trace, kernels: pl.DataFrame) -> float:
    return float(sum(kernels["duration"].to_list())) / recorded_step_count(trace) / 1e6


def _few_block_kernels(trace: Trace) -> pl.DataFrame:
    """Returns the steps' long kernels of at most `MAX_BLOCKS_OF_REPORTED_KERNEL` thread blocks."""
    work = device_work(trace).filter(
        (pl.col("kind") == "kernel") & (pl.col("duration") >= MIN_REPORTED_KERNEL_NS)
    )
    grids = trace.device_args.select("id", "grid").drop_nulls()
    work = work.join(grids, on="id", how="inner", maintain_order="left")
    sides = [pl.col("grid").arr.get(axis).cast(pl.Int64) for axis in range(3)]
    blocks = sides[0] * sides[1] * sides[2]
    few = work.with_columns(blocks=blocks).filter(
        (blocks > 0) & (blocks <= MAX_BLOCKS_OF_REPORTED_KERNEL)
    )
    launched = few["launched"].fill_null(-1).to_numpy()
    is_in_step = is_instant_in_windows(
        launched, steps_with_counted_flags(trace).select("start", "end")
    )
    few = few.filter(pl.Series(is_in_step, dtype=pl.Boolean))
    return filter_by_name(few, lambda name: names.kernel_class(name) in COMPUTE_KERNEL_CLASSES)


def _short_name_of_first_kernel(kernels: pl.DataFrame) -> str:
    return names.short_kernel_name(str(kernels["name"].cast(pl.String)[0]))


def _finding(trace: Trace, kernels: pl.DataFrame, claim: UpperBoundClaim) -> Finding:
    row: dict[str, Any] = kernels.row(0, named=True)
    location = where_from_row(row)
    steps = recorded_step_count(trace)
    blocks = kernels["blocks"].to_list()
    return Finding(
        title=(
            f"`{_short_name_of_first_kernel(kernels)}` runs in {max(blocks)} thread blocks at most"
        ),
        where=location,
        count_per_step=kernels.height / steps,
        claim=claim,
        confidence="medium" if location.line is not None else "low",
        evidence=(
            Evidence(
                "device time in the kernel, a step",
                _device_ms_per_step(trace, kernels),
                "ms",
                tuple(kernels["id"].head(8)),
                kernels["id"].to_numpy(),
            ),
            Evidence("blocks of a launch, at most", max(blocks), "count"),
        ),
        fix=Fix(
            "Give the operator more rows at once, or split its long dimension. A trace does not "
            "show how much faster it gets.",
            "parts = x.view(64, -1).cumsum(-1)\n"
            "whole = parts + (parts[:, -1].cumsum(0) - parts[:, -1])[:, None]",
        ),
    )
