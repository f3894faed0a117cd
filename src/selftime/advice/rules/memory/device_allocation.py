"""Every step allocates device memory from the driver.

## What it means
PyTorch keeps the memory that it once got from the driver and hands it out again. Here it asks the
driver anew in step after step (`cudaMalloc`, `hipMalloc`), or gives memory back (`cudaFree`).

In the trace: `cudaMalloc`, `cudaFree` or their like begin in more than half of the steps, and in
two at least.

## Why it costs
A call takes tenths of a millisecond to milliseconds of the host, and a release waits for all work
of the device first. It happens where sizes differ from step to step, so that no kept block fits,
where memory is nearly full, or where the program calls `torch.cuda.empty_cache()` in its loop.

## What to do
Unset `PYTORCH_NO_CUDA_MEMORY_CACHING` if it is set: without PyTorch's cache every tensor is one
call. Do not empty the cache in the loop. Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`,
which lets blocks grow, or pad to a few sizes so that blocks fit again.

The estimate removes the time of these calls and their waits for the device.

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
from selftime.advice.detectors.counted_steps import operator_intervals
from selftime.advice.detectors.recorded_facts import environment_variable, recorded_setting
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.replay import Change, CutHostTime, RemoveWaits
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.trace import Trace
from selftime.units import tenths_text

MIN_ALLOCATING_STEPS_SHARE: Final = 0.5
"""Share of the steps with allocations from the driver above which they are reported."""

CACHE_SWITCHES: Final = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING")
"""Environment variables that, set to anything, turn PyTorch's cache of device memory off."""


@rule(covers=("G1",), needs=("device", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    allocation_calls = _driver_allocation_calls(trace)
    if limits is None or not _are_calls_in_most_steps(trace, allocation_calls):
        yield Checked("no step allocates device memory from the driver", is_absent=True)
        return
    for location, part in operators_by_line(trace, allocation_calls):
        yield _finding(trace, part, location)


def _driver_allocation_calls(trace: Trace) -> pl.DataFrame:
    """Returns the driver calls in the measured steps that allocate or free device memory."""
    host = slices_on(trace, "host").filter(pl.col("duration").is_not_null())
    allocation_calls = filter_by_name(host, names.is_device_allocation)
    mine = is_instant_in_windows(allocation_calls["start"].to_numpy(), counted_step_windows(trace))
    return allocation_calls.filter(pl.Series(mine, dtype=pl.Boolean)).select(
        "id", "name", "track", "start", end=pl.col("start") + pl.col("duration")
    )


def _are_calls_in_most_steps(trace: Trace, allocation_calls: pl.DataFrame) -> bool:
    """Returns whether most of the measured steps, and at least two, contain one of the calls."""
    begin = counted_step_windows(trace)["start"].to_numpy()
    steps = np.unique(
        np.searchsorted(begin, allocation_calls["start"].to_numpy(), side="right")
    ).size
    return bool(steps > max(1, MIN_ALLOCATING_STEPS_SHARE * begin.size))


def _changes_removing_calls_and_waits(allocation_calls: pl.DataFrame) -> tuple[Change, ...]:
    """Returns simulated changes that remove allocation calls and their waits for the device."""
    ids = allocation_calls["id"].cast(pl.Int64).to_numpy().astype(np.int64)
    return CutHostTime(operator_intervals(allocation_calls)), RemoveWaits(ids)


def _finding(trace: Trace, allocation_calls: pl.DataFrame, location: Where) -> Finding:
    steps = max(counted_step_windows(trace).height, 1)
    count = allocation_calls.height / steps
    changes = _changes_removing_calls_and_waits(allocation_calls)
    when = operator_intervals(allocation_calls)
    spent = float((when.ends - when.starts).sum()) / steps / 1e6
    called = ", ".join(
        f"`{name}`" for name in sorted(allocation_calls["name"].cast(pl.String).unique())
    )
    return Finding(
        title=f"Each step calls {called} {tenths_text(count)} times",
        where=location,
        count_per_step=count,
        claim=RemovalClaim(changes, largest_changes=changes),
        confidence="medium",
        evidence=(
            Evidence(
                "host time in these calls",
                spent,
                "ms",
                tuple(allocation_calls["id"].head(8).to_list()),
                allocation_calls["id"].to_numpy(),
            ),
            Evidence("calls a step", count, "count", (), allocation_calls["id"].to_numpy()),
        ),
        fix=_fix(trace),
    )


def _fix(trace: Trace) -> Fix:
    switches = [name for name in CACHE_SWITCHES if environment_variable(trace, name) is not None]
    if switches:
        return Fix(
            f"PyTorch's cache of device memory is off, by `{switches[0]}`: leave it on.",
            f"unset {switches[0]}",
        )
    is_told = recorded_setting(trace, "environment") is not None
    unless = "" if is_told else f"Look whether `{CACHE_SWITCHES[0]}` turns PyTorch's cache off. "
    return Fix(
        f"{unless}Keep `torch.cuda.empty_cache()` out of the loop; let blocks grow, or pad inputs "
        "to a few sizes.",
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    )
