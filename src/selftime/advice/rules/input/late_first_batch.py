"""Each epoch waits for its first batch.

## What it means
The first batch of an iterator takes more than ten times as long as the others: nothing was loaded
before the loop asked for it. The workers themselves stay; where they do not, see
`restarted_workers`.

## Why it costs
A new iterator of a `DataLoader` has no batch ready. Its workers begin when the loop does, and the
loop waits as long as one batch takes to make. Short epochs, and validation between them, pay that
each time.

## What to do
Make the iterator before it is needed, so that its workers load while the program still does
something else. Or let one iterator serve several epochs, with a sampler that does not end.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Unknown, rule, where
from selftime.advice.detectors.batch_fetching import calls
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.requirements import missing
from selftime.analysis.sites import sites
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.intervals import union
from selftime.trace import Trace

LATE: Final = 10.0
"""Times as long as the others: the variance of loading explains less."""

FEWEST: Final = 2
"""Late ones in the steps that count: one may be all that the program meets in an hour."""

CODE: Final = """batches = iter(validation_loader)    # its workers begin now
train_epoch()                        # ... while this runs
for batch in batches:
    validate(batch)"""
"""Loading that runs while the program does something else."""


@rule(covers=("A8",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = calls(trace).filter(~pl.col("name").cast(pl.String).is_in(_alone(trace)))
    found = found.filter(pl.Series(is_within(found["start"].to_numpy(), counted_windows(trace))))
    first = found.filter(pl.col("fresh") & ~pl.col("restarted"))
    others = found.filter(~pl.col("fresh") & ~pl.col("last"))
    if limits is None or not first.height or not others.height:
        lacks = missing(trace, ("stacks",)) if found.height else []
        yield (
            Unknown("; ".join(lacks))
            if lacks
            else Checked("no epoch begins in a step", is_absent=True)
        )
        return
    usual = float((others["end"] - others["start"]).to_numpy().mean())
    late = first.filter(pl.col("end") - pl.col("start") > LATE * usual)
    if late.height < FEWEST:
        yield Checked(f"{late.height} first batches are late, in {steps_counted(trace)} steps")
        return
    waits = union(late["start"].to_numpy(), late["end"].to_numpy())
    taken = float(np.median((late["end"] - late["start"]).to_numpy()))
    change = Cut(waits, usual / taken)
    finding = Finding(
        title=f"The first batch of an epoch takes {taken / usual:.0f} times as long as the others",
        where=where(sites(trace, late["id"][:1]).row(0, named=True)),
        count_per_step=late.height / steps_counted(trace),
        saving=priced(trace, limits, change, most=(Cut(waits),)),
        confidence="medium",
        evidence=(
            Evidence("wait for the first batch", taken / 1e6, "ms", tuple(late["id"][:3])),
            Evidence("wait for another batch", usual / 1e6, "ms"),
        ),
        fix=Fix("Begin to load before the loop begins.", CODE),
        changes=(change,),
    )
    yield limits.judge(finding)


def _alone(trace: Trace) -> list[str]:
    """Names of iterators without workers: these load every batch when it is asked for."""
    told = calls(trace)["name"].unique().cast(pl.String).to_list()
    return [name for name in told if names.loads_on_main_thread(name)]
