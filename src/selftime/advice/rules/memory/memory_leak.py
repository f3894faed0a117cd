"""Memory grows from step to step.

## What it means
At the end of every step more memory is held than at the end of the one before: tensors of past
steps are kept by something, most often a list of losses, each of which holds the graph that made
it.

## Why it costs
Nothing, until the memory is full: then the program fails, or the allocator begins to give memory
back to the driver, and every step waits for that.

## What to do
Keep numbers or detached tensors, not results with their graph: `losses.append(loss.detach())`.
Where a cache is meant, give it a size.

## Fires on
A tensor a step that is never released.

    column = 1 ms
    mark 1   | sssstttuuuvvvwwwxxxyyy
    cpu 1    | aaaaaaaaaaaaaaaaaaaaaa
    memory 1 | B A  A  A  A  A  A  A
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    x = ProfilerStep#6
    y = ProfilerStep#7
    a = aten::mm
    A = loss; bytes = 65536
    B = model; bytes = 1048576

## Silent on
What is allocated in a step and released in it.

    column = 1 ms
    mark 1   | sssstttuuuvvvwwwxxxyyy
    cpu 1    | aaaaaaaaaaaaaaaaaaaaaa
    memory 1 | BAa Aa Aa Aa Aa Aa Aa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    x = ProfilerStep#6
    y = ProfilerStep#7
    a = aten::mm
    A = batch; bytes = 65536
    B = model; bytes = 1048576

Growth that has ended: gradients and the optimizer's state, made in the first steps.

    column = 1 ms
    mark 1   | sssstttuuuvvvwwwxxxyyy
    cpu 1    | aaaaaaaaaaaaaaaaaaaaaa
    memory 1 | B A  A  A
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    x = ProfilerStep#6
    y = ProfilerStep#7
    a = aten::mm
    A = state; bytes = 65536
    B = model; bytes = 1048576
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
    rule,
    where,
)
from selftime.advice.detectors.caches import growing_caches
from selftime.analysis.memory.growth import step_ends
from selftime.analysis.sites import SITE
from selftime.arrays import Ints
from selftime.trace import Trace

LEAST_STEPS: Final = 5
"""Rises in a row that are told from caches and optimizers that fill in the first steps."""

LEAST_SHARE: Final = 0.001
"""Growth below a thousandth of what is held takes hundreds of steps to matter."""

CODE: Final = """losses.append(loss.detach())     # or loss.item(), now and then"""
"""How a result is kept without its graph."""


@rule(covers=("G6",), needs=("memory", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    ends = step_ends(trace)
    if ends.size <= LEAST_STEPS:
        yield Unknown(f"more than {LEAST_STEPS} whole steps, to tell growth from warm-up")
        return
    blocks = trace.view("memory_events").filter(pl.col("allocated").is_not_null())
    grows = False
    for part in blocks.partition_by("device_type", "device", maintain_order=True):
        held = _held(trace, part, ends)
        rise = int(held[-1] - held[0]) // (held.size - 1)
        if (np.diff(held) > 0).all() and rise > LEAST_SHARE * held[0]:
            grows = True
            yield _told(trace, part, ends, rise)
    if not grows:
        yield Checked(
            "what is held at the ends of the steps does not grow in all of them", is_absent=True
        )


def _told(trace: Trace, blocks: pl.DataFrame, ends: Ints, rise: int) -> Outcome:
    """The finding, but for a cache: a program that keeps what it has seen grows as it goes on."""
    row = _grown(blocks, ends)
    if row is None:
        return Checked("each step releases what the one before made, and makes more: nothing leaks")
    joins = [cache.slices["name"].cast(pl.String) for cache in growing_caches(trace)]
    if any((names == row["operator"]).any() for names in joins):
        return Checked(f"memory grows by a cache that `{row['operator']}` appends to")
    return _finding(row, ends, rise)


def _held(trace: Trace, blocks: pl.DataFrame, ends: Ints) -> Ints:
    """Bytes held at the end of each step: as the trace's totals have it, else of what was seen."""
    kind, device = blocks["device_type"][0], blocks["device"][0]
    curve = trace.view("memory_curve").filter(
        (pl.col("device_type") == kind) & pl.col("device").eq_missing(device)
    )
    told = curve.filter(pl.col("allocated").is_not_null()).sort("time", maintain_order=True)
    at = np.searchsorted(told["time"].to_numpy(), ends, side="right") - 1
    if told.height and at[0] >= 0:
        return np.asarray(told["allocated"].to_numpy()[at], np.int64)
    return _seen(blocks, ends)


def _seen(blocks: pl.DataFrame, ends: Ints) -> Ints:
    size = blocks["size"].to_numpy()
    begun = blocks["allocated"].to_numpy()
    gone = blocks["released"].fill_null(int(ends[-1]) + 1).to_numpy()
    return np.array([size[(begun <= end) & (gone > end)].sum() for end in ends], np.int64)


def _grown(blocks: pl.DataFrame, ends: Ints) -> dict[str, Any] | None:
    """The line that allocates most of what lives on, though a step has ended since."""
    lives = blocks.filter(
        (pl.col("allocated") > ends[0])
        & (pl.col("allocated") <= ends[-2])
        & (pl.col("released").is_null() | (pl.col("released") > ends[-1]))
    )
    return _largest(lives)


def _finding(row: dict[str, Any], ends: Ints, rise: int) -> Finding:
    place = where(row)
    made = "" if row["operator"] is None else f"; most of it by `{row['operator']}`"
    return Finding(
        title="Memory grows in every step",
        where=place,
        saving=Saving(),
        confidence="high" if place.line is not None else "medium",
        evidence=(
            Evidence("growth a step", float(rise), "bytes"),
            Evidence("steps", float(ends.size), "count"),
        ),
        fix=Fix(
            "Keep numbers or detached tensors of past steps, not results with their graph; the "
            f"named line allocates what is kept{made}.",
            CODE,
        ),
    )


def _largest(blocks: pl.DataFrame) -> dict[str, Any] | None:
    if not blocks.height:
        return None
    sums = blocks.group_by(*SITE, maintain_order=True).agg(
        pl.col("size").sum(), pl.col("operator").sort_by("size").last()
    )
    return sums.sort("size", descending=True, maintain_order=True).row(0, named=True)
