"""In each step all ranks wait for each other to communicate a small value.

## What it means
The program itself communicates a few numbers between ranks, such as a loss to log, or calls a
barrier, on each step, beside the gradients.

In the trace: collectives of at most 4 KiB, or barriers, that neither the backward pass, a
replicated module nor the optimizer issues, one a step or more.

## Why it costs
However small, a collective takes its latency, and each rank waits until the slowest is there. Ranks
that could run ahead of each other keep pace twice in each step.

## What to do
Communicate what is only logged every 50th step; collect it on the device until then. Leave barriers
out of the loop: the all-reduce of gradients keeps the ranks together.

The estimate leaves one of fifty.

## Fires on
A loss that is all-reduced in each step, by hosts.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | aaaa r    aaaa r
    mark 2 |       ggg       ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    r = c10d::allreduce_; input_shapes = [[[1]]]; line = train.py:30 train
    g = gloo:all_reduce

## Silent on
A collective of as many bytes as a layer has, which is no metric.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | aaaa r    aaaa r
    mark 2 |       ggg       ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    r = c10d::allreduce_; input_shapes = [[[1000,1000]]]; line = train.py:30 train
    g = gloo:all_reduce

A value that is all-reduced while the program computes.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | raaaaaaaa raaaaaaaa
    mark 2 |  ggg       ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    r = c10d::allreduce_; input_shapes = [[[1]]]; line = train.py:30 train
    g = gloo:all_reduce
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.detectors.gradient_communication import (
    collectives_issued_by_program,
    communicates_on_host,
    communication_transfers,
    exposed_communication_times,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace

MAX_METRIC_BYTES: Final = 4096
"""Largest collective, in bytes, that counts as the communication of a logged value such as the
loss."""

ADVISED_STEPS_PER_LOG: Final = 50
"""Number of steps from one log to the next that the fix advises."""

FIX_CODE: Final = """total += loss.detach()
if step % 50 == 0:
    dist.all_reduce(total)
    log(total.item() / (50 * dist.get_world_size()))
    total.zero_()"""
"""Example code of the fix: all-reduce the loss once in 50 steps."""


@rule(covers=("I7",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    own = collectives_issued_by_program(trace)
    small = own.filter(pl.col("bytes") <= MAX_METRIC_BYTES)
    steps = counted_step_count(trace)
    if step_stats is None or small.height < steps:
        yield Checked("ranks communicate no small values in each step", is_absent=True)
        return
    for collectives in slices_by_line(trace, small):
        if collectives.slices.height >= steps:
            yield _finding(trace, step_stats, collectives)


def _finding(trace: Trace, step_stats: StepStatistics, collectives: LineSlices) -> Finding:
    waits, transfer_ids = _exposed_intervals_and_transfer_ids(trace, collectives.slices)
    changes = _changes_scaling_transfers(trace, waits, transfer_ids, 1 / ADVISED_STEPS_PER_LOG)
    steps = counted_step_count(trace)
    spent = step_stats.scaled_to_typical_step(length(waits) / steps / 1e6)
    return Finding(
        title="All ranks wait for each other to exchange a small value",
        where=collectives.where,
        count_per_step=collectives.slices.height / steps,
        claim=RemovalClaim(
            changes, largest_changes=_changes_scaling_transfers(trace, waits, transfer_ids, 0.0)
        ),
        confidence="medium",
        evidence=(
            Evidence(
                "exposed communication time", spent, "ms", collectives.events(), collectives.ids
            ),
        ),
        fix=Fix("Communicate values that are only logged once in many steps.", FIX_CODE),
    )


def _exposed_intervals_and_transfer_ids(
    trace: Trace, collective_calls: pl.DataFrame
) -> tuple[Intervals, pl.Series]:
    """Returns intervals in which only these calls' transfers ran, and the transfers' slice ids."""
    carried = communication_transfers(trace).drop_nulls("launched").sort("launched")
    begin = collective_calls["start"].to_numpy()
    at = np.searchsorted(carried["launched"].to_numpy(), begin)
    known = at < carried.height
    mine = carried[at[known].tolist()]
    end = (mine["start"] + mine["duration"].fill_null(0)).to_numpy()
    waits = intersect(exposed_communication_times(trace), union(begin[known], end))
    return waits, mine["id"]


def _changes_scaling_transfers(
    trace: Trace, waits: Intervals, transfer_ids: pl.Series, remaining_share: float
) -> tuple[Change, ...]:
    if communicates_on_host(trace):
        return (CutHostTime(waits, remaining_share),)
    return (ScaleDeviceWork(transfer_ids.cast(pl.Int64).to_numpy(), remaining_share),)
