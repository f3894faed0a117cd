"""Compiled code is slower than the same code without compilation.

## What it means
The same module ran both compiled and uncompiled in this recording, as it does when PyTorch gives
up after too many versions, and the compiled runs took longer.

In the trace: frames of a module with and without a compiled region in them, three of each kind or
more, on a CPU; the compiled calls' lower quartile is above the others' upper quartile.

## Why it costs
Compiled code is not always faster: code for all sizes may lose what code for one size has, and for
little work the guards and wrappers around each call cost more than is saved.

## What to do
Measure both: record the program with and without `torch.compile`, and compare the two with
`selftime verify`. Compile what is large, and leave the rest as it is.

No saving is estimated.

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
from selftime.advice.detectors.counted_steps import slices_in_counted_steps
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
from selftime.trace import Trace

MIN_COMPARED_CALLS_PER_MODULE: Final = 3
"""Smallest number of compiled calls, and of uncompiled calls, of a module for the rule to compare
them."""

MISSING_DATA_MESSAGE: Final = (
    "a recording of the same program without `torch.compile`; `selftime verify BEFORE AFTER` "
    "compares the two"
)
"""What to record for this rule: most recordings have only compiled calls."""


@rule(covers=("H4",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    host = slices_in_counted_steps(trace, slices_on(trace, "host"))
    regions = filter_by_name(host, lambda name: names.compiled_region(name) is not None)
    if not regions.height:
        yield Checked("the steps run no compiled function", is_absent=True)
        return
    both = _compiled_and_eager_module_times(trace, regions)
    if not both.height or trace.device_args.height:  # a host's times do not measure a device
        yield Unknown(MISSING_DATA_MESSAGE)
        return
    slower = both.filter(pl.col("fast_compiled") > pl.col("slow_eager"))
    if not slower.height:
        yield Checked("no module that ran both compiled and uncompiled was slower compiled")
    for row in slower.iter_rows(named=True):
        yield _finding(row["name"], row["compiled"] / 1e6, row["eager"] / 1e6)


def _compiled_and_eager_module_times(trace: Trace, regions: pl.DataFrame) -> pl.DataFrame:
    """Returns the modules that ran both compiled and eagerly, with both median times in ns.

    A module ran compiled if it is the innermost around the begin of a region, uncompiled if no
    region began in it. Columns: name; compiled and eager, medians; fast_compiled and slow_eager,
    the lower and the upper quartile.
    """
    frames = slices_in_counted_steps(trace, slices_on(trace, "python"))
    frames = filter_by_name(frames, lambda name: names.module_class(name) != name)
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
        is_eager=pl.Series(_are_frames_without_compiled_region(frames, regions), dtype=pl.Boolean),
    )
    fast, slow = (pl.col("duration").filter(kind) for kind in ("is_compiled", "is_eager"))
    told = calls.group_by("name", maintain_order=True).agg(
        compiled=fast.median(),
        eager=slow.median(),
        fast_compiled=fast.quantile(0.25),
        slow_eager=slow.quantile(0.75),
        least=pl.min_horizontal(pl.col("is_compiled").sum(), pl.col("is_eager").sum()),
    )
    return told.filter(pl.col("least") >= MIN_COMPARED_CALLS_PER_MODULE).with_columns(
        pl.col("name").cast(pl.String)
    )


def _are_frames_without_compiled_region(frames: pl.DataFrame, regions: pl.DataFrame) -> list[bool]:
    """Returns for each Python frame whether no compiled region began in it."""
    begin = np.sort(regions["start"].to_numpy())
    start = frames["start"].to_numpy()
    end = start + frames["duration"].to_numpy()
    lacks: list[bool] = (np.searchsorted(begin, end) == np.searchsorted(begin, start)).tolist()
    return lacks


def _finding(module_frame: str, compiled_ms: float, eager_ms: float) -> Finding:
    return Finding(
        title=f"`{names.module_class(module_frame)}` is slower compiled than uncompiled",
        where=Where(),
        confidence="low",
        evidence=(
            Evidence("a compiled call, median", compiled_ms, "ms"),
            Evidence("an uncompiled call, median", eager_ms, "ms"),
        ),
        semantics="numerics",
        fix=Fix(
            "Leave this module uncompiled, and compare two recordings with `selftime verify`.",
            "torch.compiler.disable(model.encoder)",
        ),
    )
