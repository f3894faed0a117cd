"""Compiled code is slower than the code it was made from.

## What it means
The same module ran both compiled and uncompiled in this recording, as it does when PyTorch gives
up after too many versions, and the compiled runs took longer.

## Why it costs
Compiled code is not always faster: code for all sizes may lose what code for one size has, and for
little work the guards and wrappers around each call cost more than is saved.

## What to do
Measure both: record the program with and without `torch.compile`, and compare the two with
`selftime verify`. Compile what is large, and leave the rest as it is.

## Fires on
Compiled calls that take three times as long as the uncompiled ones.

    column = 1 ms
    mark 1   | sssssssssstttttttttteeeeeeeeeehhhhhhhhhh
    python 1 | ffffff ff ffffff ff ffffff ff ffffff ff ffffff ff
    cpu 1    | rrrrrr    rrrrrr    rrrrrr    rrrrrr
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = ProfilerStep#3
    h = ProfilerStep#4
    f = nn.Module: Encoder_0
    r = Torch-Compiled Region: 0/1

## Silent on
Compiled calls that are faster.

    column = 1 ms
    mark 1   | sssssssssstttttttttteeeeeeeeeehhhhhhhhhh
    python 1 | ff ffffff ff ffffff ff ffffff ff ffffff
    cpu 1    | rr        rr        rr        rr
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = ProfilerStep#3
    h = ProfilerStep#4
    f = nn.Module: Encoder_0
    r = Torch-Compiled Region: 0/1

A recording that has no uncompiled calls to compare with.

    column = 1 ms
    mark 1   | sssssssssstttttttttteeeeeeeeeehhhhhhhhhh
    python 1 | ffffff    ffffff    ffffff    ffffff
    cpu 1    | rrrrrr    rrrrrr    rrrrrr    rrrrrr
    s = ProfilerStep#1
    t = ProfilerStep#2
    e = ProfilerStep#3
    h = ProfilerStep#4
    f = nn.Module: Encoder_0
    r = Torch-Compiled Region: 0/1
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
from selftime.advice.detectors.counted_steps import counted
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.trace import Trace

LEAST_CALLS: Final = 3
"""Calls of either kind: fewer may be chance, or the first ones."""

NEEDS: Final = (
    "a recording of the same program without `torch.compile`; `selftime verify BEFORE AFTER` "
    "compares the two"
)
"""One recording has most often only one of the two."""


@rule(covers=("H4",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    host = counted(trace, slices_on(trace, "host"))
    regions = filter_by_name(host, lambda name: names.compiled_region(name) is not None)
    if not regions.height:
        yield Checked("the steps run no compiled function", is_absent=True)
        return
    both = _both_ways(trace, regions)
    if not both.height or trace.device_args.height:  # the host's time tells nothing of a device's
        yield Unknown(NEEDS)
        return
    slower = both.filter(pl.col("fast_compiled") > pl.col("slow_eager"))
    if not slower.height:
        yield Checked("what ran compiled and uncompiled was not slower compiled")
    for row in slower.iter_rows(named=True):
        yield _finding(row["name"], row["compiled"] / 1e6, row["eager"] / 1e6)


def _both_ways(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """The modules that ran compiled and uncompiled, with times of either in ns.

    A module ran compiled if it is the innermost around the begin of a region, uncompiled if no
    region began in it. Columns: name; compiled and eager, medians; fast_compiled and slow_eager,
    the quartiles that lie towards each other.
    """
    frames = counted(trace, slices_on(trace, "python"))
    frames = filter_by_name(frames, lambda name: names.module_of(name) != name)
    threads = trace.tracks.select(track="id", thread="thread")
    modules = frames.join(threads, on="track", how="left", maintain_order="left").select(
        "id", "thread", "duration", "start", until=pl.col("start") + pl.col("duration")
    )
    begun = regions.join(threads, on="track", how="left", maintain_order="left").sort("start")
    around = begun.select("thread", at="start").join_asof(
        modules.sort("start"),
        left_on="at",
        right_on="start",
        by="thread",
        check_sortedness=False,
    )
    compiled = around.filter(pl.col("at") < pl.col("until"))["id"]
    calls = frames.select(
        "name",
        "duration",
        is_compiled=pl.col("id").is_in(compiled.implode()),
        is_eager=pl.Series(_without(frames, regions), dtype=pl.Boolean),
    )
    fast, slow = (pl.col("duration").filter(kind) for kind in ("is_compiled", "is_eager"))
    told = calls.group_by("name", maintain_order=True).agg(
        compiled=fast.median(),
        eager=slow.median(),
        fast_compiled=fast.quantile(0.25),
        slow_eager=slow.quantile(0.75),
        least=pl.min_horizontal(pl.col("is_compiled").sum(), pl.col("is_eager").sum()),
    )
    return told.filter(pl.col("least") >= LEAST_CALLS).with_columns(pl.col("name").cast(pl.String))


def _without(frames: pl.DataFrame, regions: pl.DataFrame) -> list[bool]:
    """Whether no compiled region began in each frame."""
    begin = np.sort(regions["start"].to_numpy())
    start = frames["start"].to_numpy()
    end = start + frames["duration"].to_numpy()
    lacks: list[bool] = (np.searchsorted(begin, end) == np.searchsorted(begin, start)).tolist()
    return lacks


def _finding(frame: str, compiled_ms: float, eager_ms: float) -> Finding:
    return Finding(
        title=f"`{names.module_of(frame)}` is slower compiled than uncompiled",
        where=Where(),
        saving=Saving(),
        confidence="low",
        evidence=(
            Evidence("a compiled call, median", compiled_ms, "ms"),
            Evidence("an uncompiled call, median", eager_ms, "ms"),
        ),
        fix=Fix(
            "Leave this module uncompiled, and compare two recordings with `selftime verify`.",
            "torch.compiler.disable(model.encoder)",
        ),
    )
