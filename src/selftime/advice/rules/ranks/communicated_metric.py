"""All ranks wait for each other over a small value, in each step.

## What it means
The program itself exchanges a few numbers between ranks, such as a loss to log, or calls a barrier,
on each step, beside the exchange of gradients.

## Why it costs
However small, an exchange takes its latency, and each rank waits until the slowest is there. Ranks
that could run ahead of each other keep pace twice in each step.

## What to do
Exchange what is only logged every 50th step; collect it on the device until then. Leave barriers
out of the loop: the exchange of gradients keeps the ranks together.

## Fires on
A loss that is exchanged in each step, by hosts.

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
An exchange of as many bytes as a layer has, which is no metric.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | aaaa r    aaaa r
    mark 2 |       ggg       ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    r = c10d::allreduce_; input_shapes = [[[1000,1000]]]; line = train.py:30 train
    g = gloo:all_reduce

A value that is exchanged while the program computes.

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

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.communication import exposed, is_on_host, own_exchanges, transfers
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Cut, Scale
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace

SMALL: Final = 4096
"""Bytes of a handful of numbers: what is exchanged to be looked at, not to be computed with."""

EVERY: Final = 50
"""Steps between two lines of a log that anyone reads."""

CODE: Final = """total += loss.detach()
if step % 50 == 0:
    dist.all_reduce(total)
    log(total.item() / (50 * dist.get_world_size()))
    total.zero_()"""
"""The ranks meet over the loss once in 50 steps."""


@rule(covers=("I7",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    own = own_exchanges(trace)
    small = own.filter(pl.col("bytes") <= SMALL)
    steps = steps_counted(trace)
    if limits is None or small.height < steps:
        yield Checked("ranks exchange no small values in each step", is_absent=True)
        return
    for place in places(trace, small):
        if place.slices.height >= steps:
            yield limits.judge(_finding(trace, limits, place))


def _finding(trace: Trace, limits: Gate, place: Place) -> Finding:
    waits, work = _cost(trace, place.slices)
    changes = _changes(trace, waits, work, 1 / EVERY)
    steps = steps_counted(trace)
    spent = limits.typical(length(waits) / steps / 1e6)
    return Finding(
        title="All ranks wait for each other over a small value",
        where=place.where,
        count_per_step=place.slices.height / steps,
        saving=priced(trace, limits, *changes, most=_changes(trace, waits, work, 0.0)),
        confidence="medium",
        evidence=(Evidence("exposed communication time", spent, "ms", place.events()),),
        fix=Fix("Exchange what is only logged now and then.", CODE),
        changes=changes,
    )


def _cost(trace: Trace, issued: pl.DataFrame) -> tuple[Intervals, pl.Series]:
    """When the program stood still for these exchanges, and the work that carried them."""
    carried = transfers(trace).drop_nulls("launched").sort("launched")
    begin = issued["start"].to_numpy()
    at = np.searchsorted(carried["launched"].to_numpy(), begin)
    known = at < carried.height
    mine = carried[at[known].tolist()]
    end = (mine["start"] + mine["duration"].fill_null(0)).to_numpy()
    waits = intersect(exposed(trace), union(begin[known], end))
    return waits, mine["id"]


def _changes(trace: Trace, waits: Intervals, work: pl.Series, keep: float) -> tuple[Change, ...]:
    if is_on_host(trace):
        return (Cut(waits, keep),)
    return (Scale(work.cast(pl.Int64).to_numpy(), keep),)
