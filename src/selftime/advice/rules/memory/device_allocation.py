"""Every step allocates device memory from the driver.

## What it means
PyTorch keeps the memory that it once got from the driver and hands it out again. Here it asks the
driver anew in step after step (`cudaMalloc`, `hipMalloc`), or gives memory back (`cudaFree`).

## Why it costs
A call takes tenths of a millisecond to milliseconds of the host, and a release waits for all work
of the device first. It happens where sizes differ from step to step, so that no kept block fits,
where memory is nearly full, or where the program calls `torch.cuda.empty_cache()` in its loop.

## What to do
Do not empty the cache in the loop. Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, which
lets blocks grow, or pad to a few sizes so that blocks fit again.

## Fires on
A release and an allocation in every step.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    call 1 | kfffmmm   kfffmmm   kfffmmm
    gpu 7  | kk        kk        kk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    k = cudaLaunchKernel
    f = cudaFree; line = train.py:9 main
    m = cudaMalloc; line = train.py:9 main

## Silent on
Allocations in the first step only, as the pool fills.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    call 1 | kmmmmmm   k         k
    gpu 7  | kk        kk        kk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    k = cudaLaunchKernel
    m = cudaMalloc

Allocations while the device has work for all that time.

    column = 1 ms
    mark 1 | sssstttuuu
    call 1 | kmm kmmkmm
    gpu 7  | kkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    k = cudaLaunchKernel
    m = cudaMalloc
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.counted_steps import covered
from selftime.advice.detectors.places import by_line
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Cut, Unwait
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.trace import Trace

LEAST_STEPS: Final = 0.5
"""In fewer of the steps the pool grows for the last time, or meets a size that is rare."""


@rule(covers=("G1",), needs=("device", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    calls = _calls(trace)
    if limits is None or not _is_steady(trace, calls):
        yield Checked("no step allocates device memory from the driver", is_absent=True)
        return
    for place, part in by_line(trace, calls):
        changes = _changes(part)
        saving = priced(trace, limits, *changes, most=changes)
        yield limits.judge(_finding(trace, part, place, saving))


def _calls(trace: Trace) -> pl.DataFrame:
    """Allocations and releases of device memory in the steps that count."""
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    calls = filter_by_name(host, names.is_device_allocation)
    mine = is_within(calls["start"].to_numpy(), counted_windows(trace))
    return calls.filter(pl.Series(mine, dtype=pl.Boolean)).select(
        "id", "name", "track", "start", end=pl.col("start") + pl.col("duration")
    )


def _is_steady(trace: Trace, calls: pl.DataFrame) -> bool:
    """Whether there are calls in several of the steps that count."""
    begin = counted_windows(trace)["start"].to_numpy()
    steps = np.unique(np.searchsorted(begin, calls["start"].to_numpy(), side="right")).size
    return bool(steps > max(1, LEAST_STEPS * begin.size))


def _changes(calls: pl.DataFrame) -> tuple[Change, ...]:
    """The calls are gone, and so are their waits for the device."""
    ids = calls["id"].cast(pl.Int64).to_numpy().astype(np.int64)
    return Cut(covered(calls)), Unwait(ids)


def _finding(trace: Trace, calls: pl.DataFrame, place: Where, saving: Saving) -> Finding:
    steps = max(counted_windows(trace).height, 1)
    count = calls.height / steps
    when = covered(calls)
    spent = float((when.ends - when.starts).sum()) / steps / 1e6
    called = ", ".join(f"`{name}`" for name in sorted(calls["name"].cast(pl.String).unique()))
    return Finding(
        title=f"Each step calls {called} {count:.1f} times",
        where=place,
        count_per_step=count,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence("host time in the calls", spent, "ms", tuple(calls["id"].head(8).to_list())),
            Evidence("calls a step", count, "count"),
        ),
        fix=Fix(
            "Keep `torch.cuda.empty_cache()` out of the loop; let blocks grow, or pad inputs to a "
            "few sizes.",
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        ),
        changes=_changes(calls),
    )
