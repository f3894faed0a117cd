"""A cache that grows in each step is copied whole each time.

## What it means
`cache = torch.cat([cache, new])` makes a new tensor of the whole cache for every token, in every
layer, for keys and for values.

In the trace: `aten::cat` of two tensors on one line, the first of which is longer each time by the
piece that was appended before.

## Why it costs
To append one token all earlier ones are read and written: over a sequence of T tokens that grows
with the square of T. And each copy needs memory of a new size.

## What to do
Allocate the cache once for the longest sequence and write the new piece into it, `index_copy_`, or
let the library do so (`StaticCache`). While the cache is small a copy is as cheap as the writing:
a cost that is not significant is not reported.

The estimate leaves, of a device's copies, the share of the new piece; on a CPU, 6 us for each
write.

## Fires on
A first tensor that is longer each time by what is appended.

    column = 20 us
    mark 1 | dddddddddaaaaaaaaabbbbbbbbbccccccccc
    cpu 1  | tttmtttmmuuumvvvmmwwwmxxxmmyyymzzzmm
    d = ProfilerStep#1
    a = ProfilerStep#2
    b = ProfilerStep#3
    c = ProfilerStep#4
    t = aten::cat; input_shapes = [[[1,8,399,64],[1,8,1,64]],[]]; line = cache.py:4 update
    u = aten::cat; input_shapes = [[[1,8,400,64],[1,8,1,64]],[]]; line = cache.py:4 update
    v = aten::cat; input_shapes = [[[1,8,400,64],[1,8,1,64]],[]]; line = cache.py:4 update
    w = aten::cat; input_shapes = [[[1,8,401,64],[1,8,1,64]],[]]; line = cache.py:4 update
    x = aten::cat; input_shapes = [[[1,8,401,64],[1,8,1,64]],[]]; line = cache.py:4 update
    y = aten::cat; input_shapes = [[[1,8,402,64],[1,8,1,64]],[]]; line = cache.py:4 update
    z = aten::cat; input_shapes = [[[1,8,402,64],[1,8,1,64]],[]]; line = cache.py:4 update

## Silent on
Tensors that are joined and do not grow.

    column = 20 us
    mark 1 | dddddddddaaaaaaaaabbbbbbbbbccccccccc
    cpu 1  | uuumvvvmmuuumvvvmmuuumvvvmmuuumvvvmm
    d = ProfilerStep#1
    a = ProfilerStep#2
    b = ProfilerStep#3
    c = ProfilerStep#4
    u = aten::cat; input_shapes = [[[1,8,400,64],[1,8,1,64]],[]]; line = cache.py:4 update
    v = aten::cat; input_shapes = [[[1,8,400,64],[1,8,1,64]],[]]; line = cache.py:4 update

A cache so small that writing into it would take as long.

    column = 1 us
    mark 1 | dddddddddddddaaaaaaaaaaaaabbbbbbbbbbbbbccccccccccccc
    cpu 1  | ttttmttttmmm uuuumvvvvmmm wwwwmxxxxmmm yyyymzzzzmmm
    d = ProfilerStep#1
    a = ProfilerStep#2
    b = ProfilerStep#3
    c = ProfilerStep#4
    t = aten::cat; input_shapes = [[[1,1,3,8],[1,1,1,8]],[]]; line = cache.py:4 update
    u = aten::cat; input_shapes = [[[1,1,4,8],[1,1,1,8]],[]]; line = cache.py:4 update
    v = aten::cat; input_shapes = [[[1,1,4,8],[1,1,1,8]],[]]; line = cache.py:4 update
    w = aten::cat; input_shapes = [[[1,1,5,8],[1,1,1,8]],[]]; line = cache.py:4 update
    x = aten::cat; input_shapes = [[[1,1,5,8],[1,1,1,8]],[]]; line = cache.py:4 update
    y = aten::cat; input_shapes = [[[1,1,6,8],[1,1,1,8]],[]]; line = cache.py:4 update
    z = aten::cat; input_shapes = [[[1,1,6,8],[1,1,1,8]],[]]; line = cache.py:4 update
"""

from collections.abc import Iterator
from statistics import median
from typing import Final

import polars as pl

from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.detectors.growing_tensors import growing_tensor_lines
from selftime.advice.detectors.operator_changes import device_work_launched_during
from selftime.advice.detectors.source_lines import LineSlices
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.intervals import length
from selftime.trace import Trace

CACHE_WRITE_HOST_NS: Final = 6_000
"""Host time in ns to write a few rows to a cache by `index_copy_`; 4 to 8 us were measured."""

FIX_CODE: Final = """cache = torch.empty(batch, heads, longest, size)            # once
cache.index_copy_(2, position, new)                         # each token
keys = cache[:, :, : position[-1] + 1]"""
"""Example code of the fix: write new rows into a cache allocated for the longest sequence."""


@rule(covers=("K2",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    growing = growing_tensor_lines(trace)
    if step_stats is None or not growing:
        yield Checked("no tensor grows by `aten::cat` from step to step", is_absent=True)
        return
    for cache_copies in growing:
        yield _finding(trace, step_stats, cache_copies)


def _finding(trace: Trace, step_stats: StepStatistics, cache_copies: LineSlices) -> Finding:
    steps = counted_step_count(trace)
    typical = float(median(cache_copies.slices["duration"].to_list()))
    work = device_work_launched_during(trace, cache_copies.times)["id"].cast(pl.Int64).to_numpy()
    shares = cache_copies.slices.select(
        pl.col("piece") / (pl.col("size") + pl.col("piece"))
    ).to_series()
    changes: tuple[Change, ...] = (
        CutHostTime(cache_copies.times, min(1.0, CACHE_WRITE_HOST_NS / max(typical, 1.0))),
    )
    most: tuple[Change, ...] = (CutHostTime(cache_copies.times),)
    if work.size:  # the host only launches, as it would to write
        changes = (ScaleDeviceWork(work, float(median(shares.to_list()))),)
        most = (*most, ScaleDeviceWork(work))
    sizes = cache_copies.slices["size"].drop_nulls().to_list()
    return Finding(
        title=f"Each append copies the whole cache, of length {min(sizes)} to {max(sizes)}",
        where=cache_copies.where,
        count_per_step=cache_copies.slices.height / steps,
        claim=RemovalClaim(changes, largest_changes=most),
        confidence="high",
        evidence=(
            Evidence(
                "host time of the copies",
                step_stats.scaled_to_typical_step(length(cache_copies.times) / steps / 1e6),
                "ms",
                cache_copies.events(),
                cache_copies.ids,
            ),
            Evidence(
                "copies a step", cache_copies.slices.height / steps, "count", (), cache_copies.ids
            ),
        ),
        fix=Fix("Allocate the cache once and write each new piece into it.", FIX_CODE),
    )
