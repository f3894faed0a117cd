"""Memory grows from step to step.

## What it means
At the end of every step more memory is held than at the end of the one before: tensors of past
steps are kept by something, most often a list of losses, each of which holds the graph that made
it.

In the trace: the allocated bytes at the ends of the steps, six or more, rise in every step, on
average by more than a thousandth of the bytes at the end of the first.

## Why it costs
Nothing, until the memory is full: then the program fails, or the allocator begins to give memory
back to the driver, and every step waits for that.

## What to do
Keep numbers or detached tensors, not results with their graph: `losses.append(loss.detach())`.
Where a cache is meant, give it a size.

No saving is estimated.

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

from selftime.advice.detectors.growing_tensors import growing_tensor_lines
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
    where_from_row,
)
from selftime.analysis.memory.blocks import step_end_times
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.array_types import Ints
from selftime.trace import Trace

MIN_STEPS_WITH_MEMORY_RISE: Final = 5
"""Smallest number of successive steps in which allocated memory rises for a leak to be reported."""

MIN_MEMORY_GROWTH_SHARE_PER_STEP: Final = 0.001
"""Smallest growth per step, as a share of the allocated bytes, to report."""

FIX_CODE: Final = """losses.append(loss.detach())     # or loss.item(), now and then"""
"""Example code of the fix: keep results without their autograd graph."""


@rule(covers=("G6",), needs=("memory", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    end_times = step_end_times(trace)
    if end_times.size <= MIN_STEPS_WITH_MEMORY_RISE:
        yield Unknown(
            f"more than {MIN_STEPS_WITH_MEMORY_RISE} whole steps, to distinguish growth from "
            "warm-up"
        )
        return
    blocks = trace.view("memory_events").filter(pl.col("allocated").is_not_null())
    grows = False
    for part in blocks.partition_by("device_type", "device", maintain_order=True):
        allocated_bytes = _allocated_bytes_at_times(trace, part, end_times)
        growth_bytes = int(allocated_bytes[-1] - allocated_bytes[0]) // (allocated_bytes.size - 1)
        if (
            np.diff(allocated_bytes) > 0
        ).all() and growth_bytes > MIN_MEMORY_GROWTH_SHARE_PER_STEP * allocated_bytes[0]:
            grows = True
            yield _outcome_for_memory_growth(trace, part, end_times, growth_bytes)
    if not grows:
        yield Checked(
            "the memory allocated at the end of a step does not grow in every recorded step",
            is_absent=True,
        )


def _outcome_for_memory_growth(
    trace: Trace, blocks: pl.DataFrame, end_times: Ints, growth_bytes: int
) -> Outcome:
    """Returns a finding if memory leaks; else why memory growth is no leak."""
    line_row = _line_with_most_growth(blocks, end_times)
    if line_row is None:
        return Checked("what a recorded step allocates is released by the end of the last one")
    joins = [cache.slices["name"].cast(pl.String) for cache in growing_tensor_lines(trace)]
    if any((names == line_row["operator"]).any() for names in joins):
        return Checked(f"memory grows by a cache that `{line_row['operator']}` appends to")
    return _finding(line_row, end_times, growth_bytes)


def _allocated_bytes_at_times(trace: Trace, blocks: pl.DataFrame, end_times: Ints) -> Ints:
    """Returns the allocated bytes at each of `end_times`, from recorded totals or block sizes."""
    kind, device = blocks["device_type"][0], blocks["device"][0]
    curve = trace.view("memory_curve").filter(
        (pl.col("device_type") == kind) & pl.col("device").eq_missing(device)
    )
    told = curve.filter(pl.col("allocated").is_not_null()).sort("time", maintain_order=True)
    at = np.searchsorted(told["time"].to_numpy(), end_times, side="right") - 1
    if told.height and at[0] >= 0:
        return np.asarray(told["allocated"].to_numpy()[at], np.int64)
    return _total_block_bytes_at_times(blocks, end_times)


def _total_block_bytes_at_times(blocks: pl.DataFrame, end_times: Ints) -> Ints:
    size = blocks["size"].to_numpy()
    begun = blocks["allocated"].to_numpy()
    gone = blocks["released"].fill_null(int(end_times[-1]) + 1).to_numpy()
    return np.array([size[(begun <= end) & (gone > end)].sum() for end in end_times], np.int64)


def _line_with_most_growth(blocks: pl.DataFrame, end_times: Ints) -> dict[str, Any] | None:
    """Returns the source line that allocated the most bytes still in use after the last step.

    As a table row; None without such bytes. What the first and last step allocate is left out.
    """
    lives = blocks.filter(
        (pl.col("allocated") > end_times[0])
        & (pl.col("allocated") <= end_times[-2])
        & (pl.col("released").is_null() | (pl.col("released") > end_times[-1]))
    )
    return _line_with_most_bytes(lives)


def _finding(line_row: dict[str, Any], end_times: Ints, growth_bytes: int) -> Finding:
    place = where_from_row(line_row)
    made = "" if line_row["operator"] is None else f"; most of it by `{line_row['operator']}`"
    return Finding(
        title="Memory grows in every step",
        where=place,
        confidence="high" if place.line is not None else "medium",
        evidence=(
            Evidence("growth a step", float(growth_bytes), "bytes"),
            Evidence("steps", float(end_times.size), "count"),
        ),
        fix=Fix(
            "Keep numbers or detached tensors of past steps, not results with their graph; the "
            f"named line allocates what is kept{made}.",
            FIX_CODE,
        ),
    )


def _line_with_most_bytes(blocks: pl.DataFrame) -> dict[str, Any] | None:
    if not blocks.height:
        return None
    sums = blocks.group_by(*SOURCE_SITE_COLUMNS, maintain_order=True).agg(
        pl.col("size").sum(), pl.col("operator").sort_by("size").last()
    )
    return sums.sort("size", descending=True, maintain_order=True).row(0, named=True)
