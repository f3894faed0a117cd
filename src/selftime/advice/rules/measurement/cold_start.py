"""A large part of the recorded time is initialisation.

## What it means
The first time a program does something it costs far more than later: kernels are loaded, libraries
such as cuDNN and cuBLAS set up and choose their algorithms, `torch.compile` compiles, the device
itself is opened. These costs fell into the steps that were recorded, and make up a good part of
them.

In the trace: compilations, loading of kernels and libraries, and first calls that take far longer
than later ones make up a fifth of the steps or more. Compilations in more than two steps, of the
trace or by the ledger of the run, are none of it: see `recompilation` and `repeated_compilations`.

## Why it costs
It costs the program nothing more, but falsifies what the recording shows. Sums and means over it
include initialisation: an operator may seem to take a second that takes a millisecond ever after.
The profiler's own overhead is reported with the health of a trace.

## What to do
Record again after three or more steps of warm-up. Until then trust the medians of steps, which
leave the first one out, and no table of sums.

No saving is estimated: a program pays these costs once.

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
A program that compiles in each step, of which one was recorded.

    column = 10 ms
    run | before 1 s
    run | 8 training 160 ms: compile 140 ms
    mark 1 | ssssssssssssssss
    cpu 1  | cccccccccccccc a
    s = ProfilerStep#1
    c = _compile.compile_inner (dynamo_timed); line = train.py:9 step
    a = aten::mm

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
from selftime.advice.detectors.first_time_work import (
    first_time_work_ns,
    first_time_work_slices,
    may_compile_in_later_steps,
)
from selftime.advice.rule_definition import (
    MORE_STEPS,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
    where_from_row,
)
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace
from selftime.units import share_text

MIN_INITIALISATION_SHARE: Final = 0.2
"""Smallest share of the recorded time in initialisation to report; totals are then a quarter too
large."""

FIX_CODE: Final = """schedule = torch.profiler.schedule(wait=1, warmup=3, active=5)
with torch.profiler.profile(schedule=schedule) as prof:
    for batch in loader:
        train_step(batch)
        prof.step()"""
"""Example code of the fix: record after the program has warmed up."""


@rule(covers=("L1", "H3"), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    whole = _recorded_host_ns_of_steps(trace)
    if not whole:
        yield Unknown("steps, or other slices with a duration: the recorded time is unknown")
        return
    initialisation_ns = first_time_work_ns(trace)
    initialisation_share = min(initialisation_ns / whole, 1.0)
    if initialisation_share < MIN_INITIALISATION_SHARE:
        told = f"initialisation is {share_text(initialisation_share)} of the recording"
        yield Checked(told, is_absent=not initialisation_ns)
        return
    rows = first_time_work_slices(trace)
    compiling = filter_by_name(rows, names.is_compilation)["extra"].sum()
    if may_compile_in_later_steps(trace) and (
        initialisation_ns - compiling < MIN_INITIALISATION_SHARE * whole
    ):
        recorded = steps_with_counted_flags(trace).height
        steps = "the recorded step compiles" if recorded == 1 else "all recorded steps compile"
        yield Unknown(f"whether later steps compile as well, as {steps}: {MORE_STEPS}")
        return
    yield _finding(trace, initialisation_ns, initialisation_share)


def _recorded_host_ns_of_steps(trace: Trace) -> int:
    """Returns the sum of the durations of all steps on the host, in ns."""
    steps = steps_with_counted_flags(trace)
    return int((steps["end"] - steps["start"]).sum())


def _finding(trace: Trace, initialisation_ns: int, initialisation_share: float) -> Finding:
    rows = first_time_work_slices(trace)
    longest = rows.sort("extra", "id", descending=[True, False])
    name, extra = longest["name"].cast(pl.String)[0], longest["extra"][0] / 1e6
    compiles = filter_by_name(rows, names.is_compilation).height > 0
    return Finding(
        covers=("L1", "H3") if compiles else ("L1",),
        title=f"{share_text(initialisation_share)} of the recorded time is initialisation",
        where=_line_with_most_initialisation(trace, rows),
        confidence="high",
        evidence=(
            Evidence(
                "initialisation time", initialisation_ns / 1e6, "ms", (), rows["id"].to_numpy()
            ),
            Evidence("share of the recording", initialisation_share, "ratio"),
            Evidence(
                f"time of the first `{name}` beyond that of later ones",
                extra,
                "ms",
                tuple(longest["id"].head(3).to_list()),
                longest["id"].head(1).to_numpy(),
            ),
        ),
        fix=Fix(
            "Initialisation distorts the recorded times: record again after 3 or more steps.",
            FIX_CODE,
        ),
    )


def _line_with_most_initialisation(trace: Trace, rows: pl.DataFrame) -> Where:
    """Returns the source line on which most of the initialisation time was spent."""
    placed = rows.with_columns(source_sites_of_slices(trace, rows["id"]))
    lines = placed.filter(pl.col("file").is_not_null())
    if not lines.height:
        return Where()
    sums = lines.group_by(*SOURCE_SITE_COLUMNS, maintain_order=True).agg(pl.col("extra").sum())
    return where_from_row(
        sums.sort("extra", descending=True, maintain_order=True).row(0, named=True)
    )
