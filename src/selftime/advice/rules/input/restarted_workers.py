"""Each epoch starts new DataLoader worker processes.

## What it means
`for batch in loader:` begins a new iterator, and with `persistent_workers=False`, the default, that
starts all worker processes again; they end with the epoch.

In the trace: new iterators that start worker processes within the steps, two or more.

## Why it costs
The loop waits while processes start, import what they need and make their first batch, and
again while the last ones end: tens of milliseconds a worker on Linux, seconds where processes are
spawned. Only short epochs notice it.

## What to do
Keep the workers: `DataLoader(..., persistent_workers=True)`. A data set that must be built anew for
each epoch, in its workers, cannot do that.

The estimate removes the starts and ends of the processes, and half or more of the wait for the
first batch after each start.

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

from selftime.advice.detectors.batch_fetching import (
    loader_iterator_frames,
    next_batch_calls,
    worker_shutdown_times,
)
from selftime.advice.detectors.counted_steps import counted_step_count, union_of_interval_sets
from selftime.advice.detectors.loader_fixes import KEEP_WORKERS_FIX
from selftime.advice.replay import Change, CutHostTime
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Outcome,
    Unknown,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import REPLAYED_SAVING_RANGE, RemovalClaim, SavingRange
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.intervals import Intervals, length, union
from selftime.trace import Trace
from selftime.units import time_text

MIN_WORKER_RESTARTS: Final = 2
"""Smallest number of newly started DataLoader iterators in the measured steps to report."""

MAX_BATCH_SHARE_OF_FIRST_WAIT: Final = 0.5
"""Assumed largest share of the wait for an epoch's first batch that makes the batch; the rest
starts worker processes. If the second batch took less, its time counts instead."""


@rule(covers=("A7",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    new_iterators = _frames_starting_workers_in_steps(trace)
    if step_stats is None or not new_iterators.height:
        has_batches = next_batch_calls(trace).height > 0
        lacks = missing_requirement_sentences(trace, ("stacks",)) if has_batches else []
        yield (
            Unknown("; ".join(lacks))
            if lacks
            else Checked("no worker process starts in a recorded step", is_absent=True)
        )
        return
    steps = counted_step_count(trace)
    start, end = new_iterators["start"].to_numpy(), new_iterators["end"].to_numpy()
    start_times = union_of_interval_sets(union(start, end), worker_shutdown_times(trace))
    if new_iterators.height < MIN_WORKER_RESTARTS:
        reason = (
            f"workers start once in {steps} steps, for {time_text(length(start_times))}; "
            "record two epochs to learn their share of an epoch"
        )
        yield Checked(reason)
        return
    first = next_batch_calls(trace).filter("restarted")
    waits = union(first["start"].to_numpy(), first["end"].to_numpy())
    changes = (
        CutHostTime(start_times),
        CutHostTime(waits, _batch_share_of_first_wait(trace, new_iterators)),
    )
    yield Finding(
        title=f"Worker processes restart {new_iterators.height} times in {steps} steps",
        where=where_from_row(_source_line_of_restarting_loop(trace)),
        count_per_step=new_iterators.height / steps,
        claim=_worker_restart_claim(trace, start_times, changes),
        confidence="high",
        evidence=(
            Evidence(
                "time to start the worker processes",
                float(np.median(end - start)) / 1e6,
                "ms",
                tuple(new_iterators["id"][:3]),
                new_iterators["id"].to_numpy(),
            ),
            _evidence_of_first_waits(first),
        ),
        fix=KEEP_WORKERS_FIX,
    )


def _evidence_of_first_waits(first: pl.DataFrame) -> Evidence:
    ids = first["id"]
    wait_ms = _median_wait_ms(first)
    return Evidence("wait for the first batch", wait_ms, "ms", tuple(ids[:3]), ids.to_numpy())


def _frames_starting_workers_in_steps(trace: Trace) -> pl.DataFrame:
    """Returns the Python frames in the measured steps that restart a DataLoader's workers."""
    frames = loader_iterator_frames(trace).filter("restarts")
    begun = is_instant_in_windows(frames["start"].to_numpy(), counted_step_windows(trace))
    return frames.filter(pl.Series(begun))


def _worker_restart_claim(
    trace: Trace, start_times: Intervals, changes: tuple[Change, ...]
) -> RemovalClaim:
    """Returns a claim: the ms per step saved if workers keep running from epoch to epoch.

    Recording does not slow the start of processes.
    """
    every = next_batch_calls(trace)
    loading = union(every["start"].to_numpy(), every["end"].to_numpy())
    return RemovalClaim(
        changes,
        worst_case_changes=(CutHostTime(start_times),),
        worst_case_share=REPLAYED_SAVING_RANGE.low,
        largest_changes=(CutHostTime(union_of_interval_sets(start_times, loading)),),
        interval=SavingRange(1.0, None),
        is_slowed=False,
    )


def _batch_share_of_first_wait(trace: Trace, new_iterators: pl.DataFrame) -> float:
    """Returns the largest share of the wait for a first batch that can go into making the batch.

    W workers make batches side by side, so that one takes at most W times the time until the next.
    """
    every = next_batch_calls(trace)
    second = every.select(
        "id",
        "start",
        "end",
        "restarted",
        after=pl.when(~pl.col("fresh").shift(-1)).then(pl.col("end").shift(-1)) - pl.col("end"),
    ).filter(pl.col("restarted"))
    place = np.searchsorted(new_iterators["start"].to_numpy(), second["start"].to_numpy()) - 1
    second = second.filter(pl.Series(place >= 0, dtype=pl.Boolean))
    workers = new_iterators["started"].gather(place[place >= 0])
    share = (workers * second["after"] / (second["end"] - second["start"])).drop_nulls()
    return (
        min(MAX_BATCH_SHARE_OF_FIRST_WAIT, float(np.median(share.to_numpy())))
        if share.len()
        else MAX_BATCH_SHARE_OF_FIRST_WAIT
    )


def _median_wait_ms(waits: pl.DataFrame) -> float | None:
    times = (waits["end"] - waits["start"]).to_numpy()
    return float(np.median(times)) / 1e6 if times.size else None


def _source_line_of_restarting_loop(trace: Trace) -> dict[str, object] | None:
    """Returns the source line that fetches the first batch after workers were restarted.

    As a table row; None if no workers were restarted.
    """
    first = next_batch_calls(trace).filter("restarted")
    return (
        source_sites_of_slices(trace, first["id"][:1]).row(0, named=True) if first.height else None
    )
