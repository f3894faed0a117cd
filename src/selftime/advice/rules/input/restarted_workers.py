"""Each epoch starts its worker processes anew.

## What it means
`for batch in loader:` begins a new iterator, and with `persistent_workers=False`, the default, that
starts all worker processes again; they end with the epoch.

## Why it costs
The loop stands still while processes start, import what they need and make their first batch, and
again while the last ones end: tens of milliseconds a worker on Linux, seconds where processes are
spawned. Only short epochs notice it.

## What to do
Keep the workers: `DataLoader(..., persistent_workers=True)`. A data set that must be built anew for
each epoch, in its workers, cannot do that.

## Fires on
Epochs of one batch, each with new workers.

    column = 1 ms
    mark 1   | ssssssssssssssssttttttttttttttttuuuuuuuuuuuuuuuu
    mark 1   |     ddd             ddd             ddd
    python 1 | iiiiwww         iiiiwww         iiiiwww
    python 1 | ppp             ppp             ppp
    cpu 1    |        aaaaaaaa        aaaaaaaa        aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__; line = train.py:9 main
    i = torch/utils/data/dataloader.py(433): _get_iterator
    p = multiprocessing/process.py(110): start
    w = <built-in method poll of select.poll object>

## Silent on
Workers that stay: a new iterator starts no process.

    column = 1 ms
    mark 1   | ssssssssssssssssttttttttttttttttuuuuuuuuuuuuuuuu
    mark 1   |     ddd             ddd             ddd
    python 1 | iiiiwww         iiiiwww         iiiiwww
    cpu 1    |        aaaaaaaa        aaaaaaaa        aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    i = torch/utils/data/dataloader.py(433): _get_iterator
    w = <built-in method poll of select.poll object>

One epoch begins in the recording: how often another does is not known.

    column = 1 ms
    mark 1   | ssssssssssssssssttttttttttttttttuuuuuuuuuuuuuuuu
    mark 1   |                     ddd
    python 1 |                 iiiiwww
    python 1 |                 ppp
    cpu 1    | aaaaaaaaaaaaaaa         aaaaaaaaaaaaaaaaaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    i = torch/utils/data/dataloader.py(433): _get_iterator
    p = multiprocessing/process.py(110): start
    w = <built-in method poll of select.poll object>
"""

from collections.abc import Iterator
from typing import Final

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
from selftime.advice.detectors.batch_fetching import calls, ending_workers, iterators
from selftime.advice.detectors.counted_steps import both, steps_counted
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import ERROR, priced
from selftime.advice.replay import Change, Cut
from selftime.analysis.requirements import missing
from selftime.analysis.sites import sites
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.intervals import Intervals, length, union
from selftime.trace import Trace

FEWEST: Final = 2
"""New iterators in the steps that count: one may be all that the program makes in an hour."""

UNKNOWN: Final = 0.5
"""Share of the wait for the first batch that is the batch itself, unless the second one tells that
it is less: from outside nobody sees where the start of the processes ends."""


@rule(covers=("A7",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    made = iterators(trace).filter("restarts")
    made = made.filter(pl.Series(is_within(made["start"].to_numpy(), counted_windows(trace))))
    if limits is None or not made.height:
        lacks = missing(trace, ("stacks",)) if calls(trace).height else []
        yield (
            Unknown("; ".join(lacks))
            if lacks
            else Checked("no worker process starts in a step", is_absent=True)
        )
        return
    start, end = made["start"].to_numpy(), made["end"].to_numpy()
    sure = both(union(start, end), ending_workers(trace))
    if made.height < FEWEST:
        reason = (
            f"workers start once in {steps_counted(trace)} steps, for {length(sure) / 1e6:.1f} ms; "
            "record two epochs to learn what that is of an epoch"
        )
        yield Checked(reason)
        return
    first = calls(trace).filter("restarted")
    waits = union(first["start"].to_numpy(), first["end"].to_numpy())
    changes = Cut(sure), Cut(waits, _batch_share(trace, made))
    finding = Finding(
        title=f"Worker processes start anew {made.height} times in {steps_counted(trace)} steps",
        where=where(_line(trace)),
        count_per_step=made.height / steps_counted(trace),
        saving=_saving(trace, limits, sure, changes),
        confidence="high",
        evidence=(
            Evidence("a start", float(np.median(end - start)) / 1e6, "ms", tuple(made["id"][:3])),
            Evidence("wait for the first batch", _typical(first), "ms", tuple(first["id"][:3])),
        ),
        fix=Fix(
            "Keep the workers from epoch to epoch.", "DataLoader(..., persistent_workers=True)"
        ),
        changes=changes,
    )
    yield limits.judge(finding)


def _saving(trace: Trace, limits: Gate, sure: Intervals, changes: tuple[Change, ...]) -> Saving:
    """At most all of the loading goes; processes start as slowly where nobody records.

    So the times are those of a step that is not recorded, made longer as the gate expects it.
    """
    every = calls(trace)
    loading = union(every["start"].to_numpy(), every["end"].to_numpy())
    found = priced(trace, limits, *changes, most=(Cut(both(sure, loading)),))
    least = priced(trace, limits, Cut(sure))
    upper = min(limits.slowed * (found.upper_ms or 0.0), limits.step_ms)
    estimate = min(limits.slowed * (found.estimate_ms or 0.0), upper)
    return Saving.of_step(
        limits.step_ms,
        estimate,
        method="replay",
        low_ms=min((1 - ERROR) * limits.slowed * (least.estimate_ms or 0.0), estimate),
        high_ms=upper,
        upper_ms=upper,
    )


def _batch_share(trace: Trace, made: pl.DataFrame) -> float:
    """At most so much of the wait for a first batch is the batch itself, and stays.

    W workers make batches side by side, so that one takes at most W times the time until the next.
    """
    every = calls(trace)
    second = every.select(
        "id",
        "start",
        "end",
        "restarted",
        after=pl.when(~pl.col("fresh").shift(-1)).then(pl.col("end").shift(-1)) - pl.col("end"),
    ).filter(pl.col("restarted"))
    place = np.searchsorted(made["start"].to_numpy(), second["start"].to_numpy()) - 1
    second = second.filter(pl.Series(place >= 0, dtype=pl.Boolean))
    workers = made["started"].gather(place[place >= 0])
    share = (workers * second["after"] / (second["end"] - second["start"])).drop_nulls()
    return min(UNKNOWN, float(np.median(share.to_numpy()))) if share.len() else UNKNOWN


def _typical(waits: pl.DataFrame) -> float | None:
    times = (waits["end"] - waits["start"]).to_numpy()
    return float(np.median(times)) / 1e6 if times.size else None


def _line(trace: Trace) -> dict[str, object] | None:
    """The line of the loop: that of the first call of such an iterator."""
    first = calls(trace).filter("restarted")
    return sites(trace, first["id"][:1]).row(0, named=True) if first.height else None
