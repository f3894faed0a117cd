"""Every launch waits until its kernel is done.

## What it means
`CUDA_LAUNCH_BLOCKING=1` (`HIP_LAUNCH_BLOCKING`, `AMD_SERIALIZE_KERNEL` for AMD) was left in the
environment. A launch then returns when its kernel has ended. Other tools left on are beside it: the
synchronization debug mode of PyTorch, which looks at each wait and prints a warning.

Markers of NVTX, and a second profiler, are not visible in a trace.

## Why it costs
The host does nothing while the device works, and the device nothing while the host prepares the
next launch: both times add up, where they would overlap.

## What to do
Remove the variable. It is a tool that makes an error appear at the call that caused it.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.recorded_facts import environment, setting
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import Intervals, union
from selftime.trace import Trace

LONG_NS: Final = 20_000
"""A launch takes 2 to 10 us: it can outlast a kernel that is shorter than this without waiting."""

ALL: Final = 0.95
"""Of the launches of long kernels: a few may be held up by a full queue."""

LEAST: Final = 8
"""Launches of long kernels, to tell that all of them wait."""

VARIABLES: Final = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL")
"""Variables that make launches wait, if they are not 0."""

CODE: Final = (
    """os.environ.pop("CUDA_LAUNCH_BLOCKING", None)  # before torch is imported; or: unset it"""
)
"""How the variable goes."""


@rule(covers=("F6",), needs=("device", "links"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    launched = _launched(trace)
    if limits is not None and _all_wait(launched):
        yield limits.judge(_finding(trace, limits, launched))
    elif limits is not None and setting(trace, "sync_debug_mode") in {1, 2}:
        yield _watched()
    else:
        yield Checked("launches do not wait for their kernels", is_absent=True)


def _launched(trace: Trace) -> pl.DataFrame:
    """Kernels that a launch of their own put on a device, with `until`: the end of that call."""
    calls = filter_by_name(trace.slices, _launches_one).filter(pl.col("duration").is_not_null())
    ends = calls.select(launch="id", until=pl.col("start") + pl.col("duration"))
    kernels = device_work(trace).filter(pl.col("kind") == "kernel")
    return kernels.join(ends, on="launch", how="inner", maintain_order="left")


def _launches_one(name: str) -> bool:
    return names.is_launch(name) and not names.is_graph_launch(name)


def _all_wait(launched: pl.DataFrame) -> bool:
    long = launched.filter(pl.col("duration") >= LONG_NS)
    waited = int((long["until"] >= long["end"]).sum())
    return long.height >= LEAST and waited >= ALL * long.height


def _waiting(launched: pl.DataFrame) -> Intervals:
    """When hosts waited in launches for kernels that ran."""
    held = launched.filter(pl.col("until") > pl.col("start"))
    return union(held["start"].to_numpy(), held["until"].to_numpy())


def _finding(trace: Trace, limits: Gate, launched: pl.DataFrame) -> Finding:
    change = Cut(_waiting(launched))
    told = [name for name in VARIABLES if (environment(trace, name) or "0") != "0"]
    steps = steps_counted(trace)
    waited = float((change.where.ends - change.where.starts).sum())
    what = f"`{told[0]}` is set: every" if told else "Every"
    return Finding(
        title=f"{what} launch waits for its kernel",
        where=Where(),
        count_per_step=launched.height / max(trace.view("steps").height, 1),
        saving=priced(trace, limits, change),
        confidence="high" if told else "medium",
        evidence=(
            Evidence("launches that wait", float(launched.height), "count", _events(launched)),
            Evidence("waiting in launches", limits.typical(waited / steps / 1e6), "ms"),
        ),
        fix=Fix("Remove the variable from the environment of the program.", CODE),
        changes=(change,),
    )


def _events(launched: pl.DataFrame) -> tuple[int, ...]:
    longest = launched.sort("duration", "id", descending=[True, False]).head(3)
    return tuple(longest["launch"].to_list())


def _watched() -> Finding:
    return Finding(
        title="PyTorch looks at every wait for the device",
        where=Where(),
        saving=Saving(),
        confidence="high",
        fix=Fix(
            "Switch the debug mode off where the program is not debugged.",
            'torch.cuda.set_sync_debug_mode("default")',
        ),
    )
