"""Every launch waits until its kernel is done.

## What it means
`CUDA_LAUNCH_BLOCKING=1` (`HIP_LAUNCH_BLOCKING`, `AMD_SERIALIZE_KERNEL` for AMD) was left in the
environment. A launch then returns when its kernel has ended. The rule also finds the
synchronization debug mode of PyTorch, which looks at each wait and prints a warning.

Markers of NVTX, and a second profiler, are not visible in a trace.

In the trace: 95 % of the launches of kernels of 20 us and more, at least 8, end after their
kernels.

## Why it costs
The host does nothing while the device works, and the device nothing while the host prepares the
next launch: both times add up, where they would overlap.

## What to do
Remove the variable. It is a tool that makes an error appear at the call that caused it.

The estimate removes the time in which launches wait for kernels that run.

## Fires on
Launches that end with their kernels.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssttttttttttttttttttttttttt
    cpu 1  | aaaaabbbbb aaaaabbbbb    aaaaabbbbb aaaaabbbbb
    call 1 |  llll llll  llll llll     llll llll  llll llll
    gpu 7  |   kkk  kkk   kkk  kkk      kkk  kkk   kkk  kkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::mm
    b = aten::add
    l = cudaLaunchKernel
    k = gemm; launched_by = l

## Silent on
Launches that return while their kernels run.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssttttttttttttttttttttttttt
    cpu 1  | aaaaabbbbb aaaaabbbbb    aaaaabbbbb aaaaabbbbb
    call 1 |  l    l     l    l        l    l     l    l
    gpu 7  |   kkk  kkk   kkk  kkk      kkk  kkk   kkk  kkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::mm
    b = aten::add
    l = cudaLaunchKernel
    k = gemm; launched_by = l
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.detectors.recorded_facts import environment_variable, recorded_setting
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import Intervals, union
from selftime.trace import Trace

MIN_LONG_KERNEL_NS: Final = 20_000
"""Shortest kernel that counts as long, in ns; a launch alone takes 2 to 10 us."""

MIN_SHARE_OF_WAITING_LAUNCHES: Final = 0.95
"""Smallest share of long kernels' launches that wait for the kernel to report."""

MIN_LONG_KERNEL_LAUNCHES: Final = 8
"""Smallest number of launches of long kernels from which to conclude that all launches wait."""

LAUNCH_BLOCKING_ENVIRONMENT_VARIABLES: Final = (
    "CUDA_LAUNCH_BLOCKING",
    "HIP_LAUNCH_BLOCKING",
    "AMD_SERIALIZE_KERNEL",
)
"""Environment variables that make each launch wait for its kernel, unless they are 0."""

UNSET_LAUNCH_BLOCKING_FIX_CODE: Final = (
    """os.environ.pop("CUDA_LAUNCH_BLOCKING", None)  # before importing torch"""
)
"""Example code of the fix: removes the environment variable."""


@rule(covers=("F6",), needs=("device", "links"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    kernels = _kernels_with_own_launch(trace)
    if limits is not None and _do_long_kernel_launches_wait(kernels):
        yield _finding(trace, limits, kernels)
    elif limits is not None and recorded_setting(trace, "sync_debug_mode") in {1, 2}:
        yield _sync_debug_mode_finding()
    else:
        yield Checked("launches do not wait for their kernels", is_absent=True)


def _kernels_with_own_launch(trace: Trace) -> pl.DataFrame:
    """Returns kernels launched by a call of their own; `until` is when the call returned, in ns."""
    calls = filter_by_name(trace.slices, _launches_single_kernel).filter(
        pl.col("duration").is_not_null()
    )
    ends = calls.select(launch="id", until=pl.col("start") + pl.col("duration"))
    kernels = device_work(trace).filter(pl.col("kind") == "kernel")
    return kernels.join(ends, on="launch", how="inner", maintain_order="left")


def _launches_single_kernel(call_name: str) -> bool:
    return names.is_launch(call_name) and not names.is_graph_launch(call_name)


def _do_long_kernel_launches_wait(kernels: pl.DataFrame) -> bool:
    long = kernels.filter(pl.col("duration") >= MIN_LONG_KERNEL_NS)
    waited = int((long["until"] >= long["end"]).sum())
    return (
        long.height >= MIN_LONG_KERNEL_LAUNCHES
        and waited >= MIN_SHARE_OF_WAITING_LAUNCHES * long.height
    )


def _launch_wait_intervals(kernels: pl.DataFrame) -> Intervals:
    """Returns the intervals in which launch calls waited for their kernels."""
    awaited = kernels.filter(pl.col("until") > pl.col("start"))
    return union(awaited["start"].to_numpy(), awaited["until"].to_numpy())


def _finding(trace: Trace, statistics: StepStatistics, kernels: pl.DataFrame) -> Finding:
    change = CutHostTime(_launch_wait_intervals(kernels))
    variables = [
        name
        for name in LAUNCH_BLOCKING_ENVIRONMENT_VARIABLES
        if (environment_variable(trace, name) or "0") != "0"
    ]
    steps = counted_step_count(trace)
    waited = float((change.intervals.ends - change.intervals.starts).sum())
    title = "Every launch waits for its kernel"
    if variables:
        title = f"`{variables[0]}` is set: every launch waits for its kernel"
    return Finding(
        title=title,
        where=Where(),
        count_per_step=kernels.height / max(trace.view("steps").height, 1),
        claim=RemovalClaim((change,)),
        confidence="high" if variables else "medium",
        evidence=(
            Evidence(
                "launches that wait for their kernels",
                float(kernels.height),
                "count",
                _launch_ids_of_longest_kernels(kernels),
                kernels["launch"].drop_nulls().to_numpy(),
            ),
            Evidence(
                "time that launches wait, a step",
                statistics.scaled_to_typical_step(waited / steps / 1e6),
                "ms",
            ),
        ),
        fix=Fix(
            "Remove the variable from the environment of the program.",
            UNSET_LAUNCH_BLOCKING_FIX_CODE,
        ),
    )


def _launch_ids_of_longest_kernels(kernels: pl.DataFrame) -> tuple[int, ...]:
    longest = kernels.sort("duration", "id", descending=[True, False]).head(3)
    return tuple(longest["launch"].to_list())


def _sync_debug_mode_finding() -> Finding:
    return Finding(
        title="PyTorch's sync debug mode checks every wait for the device",
        where=Where(),
        confidence="high",
        fix=Fix(
            "Switch the sync debug mode off when you do not debug waits.",
            'torch.cuda.set_sync_debug_mode("default")',
        ),
    )
