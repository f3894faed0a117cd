"""Device graphs were asked for, and the steps do not replay any.

## What it means
`torch.compile(mode="reduce-overhead")` records what a compiled function launches as a graph of the
device, and replays that with one launch. Here it was asked to, and the steps launch each kernel by
itself, or record the graph anew in step after step.

## Why it costs
Every launch takes microseconds of the host, for which the device waits. To record a graph costs
many times as much as to run what is recorded.

## What to do
`TORCH_LOGS=perf_hints` says why graphs are not used: inputs that the function changes in place, an
operator or a scalar on the CPU in it, sizes that differ from call to call.

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

Compiled code for which no graphs were asked.

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
from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
    Where,
    rule,
)
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.bound_by import regime
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.trace import Trace

LEAST_STEPS: Final = 2
"""Steps that record graphs: in one it may be the first time, for the sizes that it met."""

NEEDS: Final = (
    "whether device graphs were asked for: record with `selftime run` or `selftime.profile`"
)
"""The compiler counts what it skipped; the count stands in the recording's facts."""


@rule(covers=("H5",), needs=("device", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    host = slices_on(trace, "host")
    regions = filter_by_name(host, lambda name: names.compiled_region(name) is not None)
    if not _steps_with(trace, regions):
        yield Checked("the steps run no compiled function", is_absent=True)
        return
    recorded = _steps_with(trace, filter_by_name(host, names.is_capture_begin))
    if recorded >= LEAST_STEPS:
        yield _finding("Device graphs are recorded in step after step", recorded)
        return
    if _steps_with(trace, filter_by_name(host, names.is_graph_launch)):
        yield Checked("the steps replay device graphs")
        return
    skipped = _skips(trace)
    if skipped is None:
        yield Unknown(NEEDS)
    elif not skipped:
        yield Checked("no device graph was asked for that could not be used", is_absent=True)
    elif regime(trace) == "device-bound":
        yield Checked("device graphs are not used, and the device does not wait for launches")
    else:
        yield _finding("Device graphs were asked for and are not used", skipped)


def _steps_with(trace: Trace, slices: pl.DataFrame) -> int:
    """In how many of the steps that count any of the slices begins."""
    windows = counted_windows(trace)
    begin, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    when = np.sort(slices["start"].to_numpy())
    return int((np.searchsorted(when, end) > np.searchsorted(when, begin)).sum())


def _skips(trace: Trace) -> int | None:
    told = trace.facts.get("compiler")
    count = told.get("cudagraph_skips") if isinstance(told, dict) else None
    return count if isinstance(count, int) else None


def _finding(title: str, count: int) -> Finding:
    return Finding(
        title=title,
        where=Where(),
        saving=Saving(),
        confidence="medium",
        evidence=(Evidence("steps or functions affected", float(count), "count"),),
        fix=Fix(
            "Keep sizes, and the tensors that are changed in place, the same from call to call; "
            "`TORCH_LOGS=perf_hints` says what hinders.",
            'model = torch.compile(model, mode="reduce-overhead")    # TORCH_LOGS=perf_hints',
        ),
    )
