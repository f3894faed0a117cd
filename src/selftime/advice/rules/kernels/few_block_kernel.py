"""A long kernel runs on a few of the device's multiprocessors.

## What it means
A kernel is launched with a handful of blocks, and a block runs on one multiprocessor: the others,
of which a GPU has a hundred, have nothing to do while it lasts.

## Why it costs
The time in such kernels goes by at a hundredth of the device. They come from operators that work
along one dimension of a tensor which has hardly another: a scan or sort of one long row, the k
largest of a vocabulary for a single sequence.

## What to do
Give it more rows at once: batch the calls, or reshape so that the long dimension is split. A scan
can go over pieces and then over their totals; the k largest of pieces are those of the whole. Or
run it on another stream, beside work that fills the device.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule, where
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Scale
from selftime.analysis.device.work import device_work
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import assessed_steps, is_within
from selftime.trace import Trace

FEW: Final = 4
"""Blocks: of all devices with 16 multiprocessors or more at least three quarters are idle."""

LONG: Final = 20_000
"""ns. Shorter kernels are bound by their launch and by the latency of memory, not by the blocks."""

LEAST_SHARE: Final = 0.05
"""Of the step that such kernels must be worth: to split a scan is no small change."""

COMPUTES: Final = frozenset(names.KERNEL_CLASSES) - {"collective", "copy", "fill"}
"""Classes of kernels that could use more blocks; collectives are few on purpose."""


@rule(covers=("E10",), needs=("device", "links"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = _kernels(trace)
    if limits is None or not found.height:
        yield Checked(f"no long kernel runs with {FEW} blocks or less", is_absent=True)
        return
    found = found.with_columns(sites(trace, found["id"]))
    least = max(LEAST_SHARE * limits.step_ms, limits.floor_ms())
    for part in found.partition_by("name", *SITE, maintain_order=True):
        if sum(part["duration"].to_list()) >= least * 1e6 * steps_recorded(trace):
            bound = priced(trace, limits, Scale(part["id"].cast(pl.Int64).to_numpy(), 0.0))
            upper = bound.estimate_ms or 0.0
            if upper >= least:
                yield _finding(trace, part, limits.unrecorded(upper))
    spent = sum(found["duration"].to_list()) / steps_recorded(trace) / 1e6
    yield Checked(f"long kernels with {FEW} blocks or less take {spent:.2f} ms a step")


def _kernels(trace: Trace) -> pl.DataFrame:
    """Long kernels of the steps whose grids hold a few blocks."""
    work = device_work(trace).filter((pl.col("kind") == "kernel") & (pl.col("duration") >= LONG))
    told = trace.device_args.select("id", "grid").drop_nulls()
    work = work.join(told, on="id", how="inner", maintain_order="left")
    sides = [pl.col("grid").arr.get(axis).cast(pl.Int64) for axis in range(3)]
    blocks = sides[0] * sides[1] * sides[2]
    few = work.with_columns(blocks=blocks).filter((blocks > 0) & (blocks <= FEW))
    launched = few["launched"].fill_null(-1).to_numpy()
    mine = is_within(launched, assessed_steps(trace).select("start", "end"))
    few = few.filter(pl.Series(mine, dtype=pl.Boolean))
    return filter_by_name(few, lambda name: names.kernel_class(name) in COMPUTES)


def _short(part: pl.DataFrame) -> str:
    return names.short_kernel_name(str(part["name"].cast(pl.String)[0]))


def _finding(trace: Trace, part: pl.DataFrame, upper: float) -> Finding:
    row: dict[str, Any] = part.row(0, named=True)
    place = where(row)
    steps = steps_recorded(trace)
    blocks = part["blocks"].to_list()
    spent = sum(part["duration"].to_list()) / steps / 1e6
    return Finding(
        title=f"`{_short(part)}` runs with {max(blocks)} blocks at most",
        where=place,
        count_per_step=part.height / steps,
        saving=Saving(),
        confidence="medium" if place.line is not None else "low",
        evidence=(
            Evidence("device time in it, a step", spent, "ms", tuple(part["id"].head(8))),
            Evidence("of the step, if it took no time", upper, "ms"),
            Evidence("blocks of a launch, at most", max(blocks), "count"),
        ),
        fix=Fix(
            "Give the operator more rows at once, or split its long dimension. How much faster it "
            "gets a trace does not tell.",
            "parts = x.view(64, -1).cumsum(-1)\n"
            "whole = parts + (parts[:, -1].cumsum(0) - parts[:, -1])[:, None]",
        ),
    )
