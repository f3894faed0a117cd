"""Each epoch waits for its first batch.

## What it means
The first batch of an iterator takes more than ten times as long as the others: nothing was loaded
before the loop asked for it. The workers themselves stay; where they do not, see
`restarted_workers`.

In the trace: the calls that fetch a batch. The first of an iterator, whose workers are not new,
takes over ten times the mean of the others, twice or more.

## Why it costs
A new iterator of a `DataLoader` has no batch ready. Its workers begin when the loop does, and the
loop waits as long as one batch takes to make. Short epochs, and validation between them, pay that
each time.

## What to do
Make the iterator before it is needed, so that its workers load while the program still does
something else. Or let one iterator serve several epochs, with a sampler that does not end.

The estimate leaves the usual wait for a batch.

## Fires on
Epochs of two batches; only the first of each is late.

    column = 1 ms
    mark 1   | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    mark 1   |  dddddddddddd  d     dddddddddddd  d     dddddddddddd  d
    python 1 | i                   i                   i
    cpu 1    |              aa aaaa             aa aaaa             aa aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__; line = train.py:9 main
    i = torch/utils/data/dataloader.py(433): _get_iterator

## Silent on
Every batch is late: the workers are too slow, which `slow_input` says.

    column = 1 ms
    mark 1   | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    mark 1   |  dddddddd  ddddd     dddddddd  ddddd     dddddddd  ddddd
    python 1 | i                   i                   i
    cpu 1    |          aa     aaaa         aa     aaaa         aa     aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    i = torch/utils/data/dataloader.py(433): _get_iterator
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.batch_fetching import next_batch_calls
from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.replay import CutHostTime
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
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.intervals import union
from selftime.trace import Trace
from selftime.units import times_text

MIN_FIRST_TO_OTHER_WAIT_RATIO: Final = 10.0
"""Smallest ratio of the wait for an epoch's first batch to the wait for later ones to report."""

MIN_LATE_FIRST_BATCHES: Final = 2
"""Smallest number of late first batches in the measured steps to report."""

FIX_CODE: Final = """batches = iter(validation_loader)    # its workers begin now
train_epoch()                        # ... while this runs
for batch in batches:
    validate(batch)"""
"""Example code of the fix: start the workers while the program does something else."""


@rule(covers=("A8",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    found = next_batch_calls(trace).filter(
        ~pl.col("name").cast(pl.String).is_in(_loader_iterators_without_workers(trace))
    )
    found = found.filter(
        pl.Series(is_instant_in_windows(found["start"].to_numpy(), counted_step_windows(trace)))
    )
    first = found.filter(pl.col("fresh") & ~pl.col("restarted"))
    others = found.filter(~pl.col("fresh") & ~pl.col("last"))
    if limits is None or not first.height or not others.height:
        lacks = missing_requirement_sentences(trace, ("stacks",)) if found.height else []
        yield (
            Unknown("; ".join(lacks))
            if lacks
            else Checked("no epoch begins in a recorded step", is_absent=True)
        )
        return
    usual = float((others["end"] - others["start"]).to_numpy().mean())
    late = first.filter(pl.col("end") - pl.col("start") > MIN_FIRST_TO_OTHER_WAIT_RATIO * usual)
    if late.height < MIN_LATE_FIRST_BATCHES:
        yield Checked(f"{late.height} first batches are late, in {counted_step_count(trace)} steps")
        return
    waits = union(late["start"].to_numpy(), late["end"].to_numpy())
    taken = float(np.median((late["end"] - late["start"]).to_numpy()))
    change = CutHostTime(waits, usual / taken)
    yield Finding(
        title=(
            f"The first batch of an epoch takes {times_text(taken / usual)} as long as the others"
        ),
        where=where_from_row(source_sites_of_slices(trace, late["id"][:1]).row(0, named=True)),
        count_per_step=late.height / counted_step_count(trace),
        claim=RemovalClaim((change,), largest_changes=(CutHostTime(waits),)),
        confidence="medium",
        evidence=(
            Evidence(
                "wait for the first batch",
                taken / 1e6,
                "ms",
                tuple(late["id"][:3]),
                late["id"].to_numpy(),
            ),
            Evidence("wait for another batch", usual / 1e6, "ms"),
        ),
        fix=Fix("Begin to load before the loop begins.", FIX_CODE),
    )


def _loader_iterators_without_workers(trace: Trace) -> list[str]:
    """Returns the names of DataLoader iterators that load batches on the main thread."""
    told = next_batch_calls(trace)["name"].unique().cast(pl.String).to_list()
    return [name for name in told if names.loads_on_main_thread(name)]
