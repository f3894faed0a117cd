"""What was recorded is mostly initialisation.

## What it means
The first time a program does something it costs far more than later: kernels are loaded, libraries
such as cuDNN and cuBLAS set up and choose their algorithms, `torch.compile` compiles, the device
itself is opened. These costs fell into the steps that were recorded, and make up a good part of
them.

## Why it costs
It costs the program nothing more; it spoils what is read from the recording. Sums and means over
it tell of initialisation: an operator may seem to take a second that takes a millisecond ever
after. How much of a recording is the profiler's own overhead is told with the health of a trace.

## What to do
Record again after three or more steps of warm-up. Until then trust the medians of steps, which
leave the first one out, and no table of sums.

## Fires on
The first convolution sets its library up.

    column = 1 ms
    mark 1 | sssssssssssssssssssstttuuuvvvwww
    cpu 1  | cccccccccccccccccc  c  c  c  c
    call 1 |                 k   k  k  k  k
    gpu 7  |                  k   k  k  k  k
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    c = aten::cudnn_convolution; line = train.py:9 step
    k = cudaLaunchKernel

Compilation within the recording.

    column = 10 ms
    mark 1 | sssssssssssssssstuvw
    cpu 1  | cccccccccccccc aaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    c = _compile.compile_inner (dynamo_timed); line = train.py:9 step
    a = aten::mm

## Silent on
A first step that is no longer than the others.

    column = 1 ms
    mark 1 | sssstttuuuvvvwww
    cpu 1  | ccc c  c  c  c
    call 1 |   k c  c  c  c
    gpu 7  |   k c  c  c  c
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    c = aten::cudnn_convolution
    k = cudaLaunchKernel

A first step that waits: for its data, and for what the device has yet to do.

    column = 1 ms
    mark 1 | sssssssssssssssssssstttuuuvvvwww
    mark 1 | llllllllllll        l  l  l  l
    call 1 |             mmmmmm   m  m  m  m
    gpu 7  | kkkkkkkkkkkkkkkkkkmm m  m  m  m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    l = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    m = cudaMemcpyAsync
"""

from collections.abc import Iterator
from typing import Final

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
    where,
)
from selftime.advice.detectors.first_time import first_time, time_of_it
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.trace import Trace
from selftime.units import share_text

LEAST_SHARE: Final = 0.2
"""Of the recorded time: from here on sums over it are a quarter too large."""

CODE: Final = """schedule = torch.profiler.schedule(wait=1, warmup=3, active=5)
with torch.profiler.profile(schedule=schedule) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()"""
"""A recording that begins after the program has warmed up."""


@rule(covers=("L1", "H3"), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    whole = _recorded(trace)
    if not whole:
        yield Unknown("steps, or anything else that lasts: nothing tells what was recorded")
        return
    spent = time_of_it(trace)
    share = min(spent / whole, 1.0)
    if share < LEAST_SHARE:
        told = f"what was done for the first time is {share_text(share)} of the recording"
        yield Checked(told, is_absent=not spent)
        return
    yield _finding(trace, spent, share)


def _recorded(trace: Trace) -> int:
    """Time of all steps on the host, in ns."""
    steps = assessed_steps(trace)
    return int((steps["end"] - steps["start"]).sum())


def _finding(trace: Trace, spent: int, share: float) -> Finding:
    rows = first_time(trace)
    longest = rows.sort("extra", "id", descending=[True, False])
    name, extra = longest["name"].cast(pl.String)[0], longest["extra"][0] / 1e6
    compiles = filter_by_name(rows, names.is_compilation).height > 0
    return Finding(
        covers=("L1", "H3") if compiles else ("L1",),
        title=f"{share_text(share)} of what was recorded is initialisation",
        where=_place(trace, rows),
        saving=Saving(),
        confidence="high",
        evidence=(
            Evidence("initialisation time", spent / 1e6, "ms"),
            Evidence("share of the recording", share, "ratio"),
            Evidence(
                f"the first `{name}`, more than later ones",
                extra,
                "ms",
                tuple(longest["id"].head(3).to_list()),
            ),
        ),
        fix=Fix("Your numbers are initialisation: record again after 3 or more steps.", CODE),
    )


def _place(trace: Trace, rows: pl.DataFrame) -> Where:
    """The line that most of it is spent on."""
    placed = rows.with_columns(sites(trace, rows["id"]))
    lines = placed.filter(pl.col("file").is_not_null())
    if not lines.height:
        return Where()
    sums = lines.group_by(*SITE, maintain_order=True).agg(pl.col("extra").sum())
    return where(sums.sort("extra", descending=True, maintain_order=True).row(0, named=True))
