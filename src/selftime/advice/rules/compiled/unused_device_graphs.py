"""Device graphs (CUDA graphs) were requested, but no step replays any.

## What it means
`torch.compile(mode="reduce-overhead")` records what a compiled function launches as a graph of the
device, and replays that with one launch. Here it was asked to, and the steps launch each kernel by
itself, or record the graph anew in step after step.

In the trace: two steps or more begin a capture; or the steps run compiled code and replay no graph,
and the compiler's count of skipped graphs, in the recording's facts, is above 0.

## Why it costs
Every launch takes microseconds of the host, for which the device waits. To record a graph costs
many times as much as to run what is recorded.

## What to do
`TORCH_LOGS=perf_hints` says why graphs are not used: inputs that the function changes in place, an
operator or a scalar on the CPU in it, sizes that differ from call to call.

No saving is estimated.

## Fires on
A graph that is recorded in every step.

    column = 100 us
    mark 1 | sssssssssstttttttttteeeeeeeeee
    cpu 1  | rrrrrrrrr rrrrrrrrr rrrrrrrrr
    call 1 | bbk   l   bbk   l   bbk   l
    gpu 7  |        l         l         l
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = ProfilerStep#3
    r = Torch-Compiled Region: 0/0
    b = cudaStreamBeginCapture
    k = cudaLaunchKernel
    l = cudaGraphLaunch

Graphs that the compiler could not use.

    column = 100 us
    mark 1 | sssssssssstttttttttteeeeeeeeee
    cpu 1  | rrrrrrrrr rrrrrrrrr rrrrrrrrr
    call 1 | k   k   k k   k   k k   k   k
    gpu 7  |  k   k   k k   k   k k   k   k
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = ProfilerStep#3
    r = Torch-Compiled Region: 0/0
    k = cudaLaunchKernel
    facts = {"compiler": {"graphs": 2, "cudagraph_skips": 2}}

## Silent on
Graphs that are replayed.

    column = 100 us
    mark 1 | sssssssssstttttttttteeeeeeeeee
    cpu 1  | rrrrrrrrr rrrrrrrrr rrrrrrrrr
    call 1 |   l         l         l
    gpu 7  |    llllll    llllll    llllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = ProfilerStep#3
    r = Torch-Compiled Region: 0/0
    l = cudaGraphLaunch
    facts = {"compiler": {"graphs": 2, "cudagraph_skips": 1}}

Compiled code for which no graphs were requested.

    column = 100 us
    mark 1 | sssssssssstttttttttteeeeeeeeee
    cpu 1  | rrrrrrrrr rrrrrrrrr rrrrrrrrr
    call 1 | k   k   k k   k   k k   k   k
    gpu 7  |  k   k   k k   k   k k   k   k
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = ProfilerStep#3
    r = Torch-Compiled Region: 0/0
    k = cudaLaunchKernel
    facts = {"compiler": {"graphs": 2, "cudagraph_skips": 0}}
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
)
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.bound_by import step_bound_by
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.trace import Trace

MIN_GRAPH_CAPTURING_STEPS: Final = 2
"""Smallest number of steps that capture a CUDA graph to report; one step may capture for new
sizes."""

MISSING_DATA_MESSAGE: Final = (
    "whether device graphs were requested: record with `selftime run` or `selftime.profile`"
)
"""What to record for this rule: the compiler's count of skipped device graphs."""


@rule(covers=("H5",), needs=("device", "steps"), min_steps=MIN_GRAPH_CAPTURING_STEPS)
def check(trace: Trace) -> Iterator[Outcome]:
    host = slices_on(trace, "host")
    regions = filter_by_name(host, lambda name: names.compiled_region(name) is not None)
    if not _count_steps_containing_any(trace, regions):
        yield Checked("the steps run no compiled function", is_absent=True)
        return
    recorded = _count_steps_containing_any(trace, filter_by_name(host, names.is_capture_begin))
    if recorded >= MIN_GRAPH_CAPTURING_STEPS:
        yield _finding("CUDA graphs are captured anew in several steps", recorded)
        return
    if _count_steps_containing_any(trace, filter_by_name(host, names.is_graph_launch)):
        yield Checked("the steps replay device graphs")
        return
    skipped = _skipped_device_graph_count(trace)
    if skipped is None:
        yield Unknown(MISSING_DATA_MESSAGE)
    elif not skipped:
        yield Checked("the compiler skipped no requested device graph", is_absent=True)
    elif step_bound_by(trace) == "device-bound":
        yield Checked("device graphs are not used, and the device does not wait for launches")
    else:
        yield _finding("Device graphs were requested and are not used", skipped)


def _count_steps_containing_any(trace: Trace, slices: pl.DataFrame) -> int:
    """Returns the number of measured steps in which at least one of the slices begins."""
    windows = counted_step_windows(trace)
    begin, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    when = np.sort(slices["start"].to_numpy())
    return int((np.searchsorted(when, end) > np.searchsorted(when, begin)).sum())


def _skipped_device_graph_count(trace: Trace) -> int | None:
    told = trace.facts.get("compiler")
    count = told.get("cudagraph_skips") if isinstance(told, dict) else None
    return count if isinstance(count, int) else None


def _finding(title: str, affected_count: int) -> Finding:
    return Finding(
        title=title,
        where=Where(),
        confidence="medium",
        evidence=(Evidence("steps or functions affected", float(affected_count), "count"),),
        fix=Fix(
            "Keep sizes, and the tensors that are changed in place, the same from call to call; "
            "`TORCH_LOGS=perf_hints` says what hinders.",
            'model = torch.compile(model, mode="reduce-overhead")',
        ),
    )
