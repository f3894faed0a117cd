"""A cache grows by one piece a step, and is copied whole each time.

## What it means
`cache = torch.cat([cache, new])` makes a new tensor of the whole cache for every token, in every
layer, for keys and for values.

## Why it costs
To append one token all earlier ones are read and written: over a sequence of T tokens that grows
with the square of T. And each copy needs memory of a new size.

## What to do
Allocate the cache once for the longest sequence and write the new piece into it, `index_copy_`, or
let the library do so (`StaticCache`). While the cache is small a copy is as cheap as the writing:
below the gate nothing is reported.

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

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.caches import growing_caches
from selftime.advice.detectors.changes import launched_during
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.places import Place
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Cut, Scale
from selftime.intervals import length
from selftime.trace import Trace

WRITE_NS: Final = 6_000
"""What `index_copy_` of a small piece takes on the host, mostly dispatch: 4 to 8 us measured."""

CODE: Final = """cache = torch.empty(batch, heads, longest, size)            # once
cache.index_copy_(2, position, new)                         # each token
keys = cache[:, :, : position[-1] + 1]"""
"""Room for the longest sequence, and a write of what is new."""


@rule(covers=("K2",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    growing = growing_caches(trace)
    if limits is None or not growing:
        yield Checked("no tensor grows by `aten::cat` from step to step", is_absent=True)
        return
    for place in growing:
        yield limits.judge(_finding(trace, limits, place))


def _finding(trace: Trace, limits: Gate, place: Place) -> Finding:
    steps = steps_counted(trace)
    typical = float(median(place.slices["duration"].to_list()))
    work = launched_during(trace, place.times)["id"].cast(pl.Int64).to_numpy()
    shares = place.slices.select(pl.col("piece") / (pl.col("size") + pl.col("piece"))).to_series()
    changes: tuple[Change, ...] = (Cut(place.times, min(1.0, WRITE_NS / max(typical, 1.0))),)
    most: tuple[Change, ...] = (Cut(place.times),)
    if work.size:  # the host only launches, as it would to write
        changes = (Scale(work, float(median(shares.to_list()))),)
        most = (*most, Scale(work))
    sizes = place.slices["size"].drop_nulls().to_list()
    return Finding(
        title=f"A cache is copied whole to append to it, at {min(sizes)} to {max(sizes)}",
        where=place.where,
        count_per_step=place.slices.height / steps,
        saving=priced(trace, limits, *changes, most=most),
        confidence="high",
        evidence=(
            Evidence(
                "host time of the copies",
                limits.typical(length(place.times) / steps / 1e6),
                "ms",
                place.events(),
            ),
            Evidence("copies a step", place.slices.height / steps, "count"),
        ),
        fix=Fix("Allocate the cache once and write each new piece into it.", CODE),
        changes=changes,
    )
