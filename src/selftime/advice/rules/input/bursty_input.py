"""Some steps wait for a batch, though on average batches come fast enough.

## What it means
The loop waits for its workers in a few steps, without a rhythm, and in most not at all. A batch
that takes longer than usual finds the queue of ready batches too short to bridge it.

In the trace: the time in which the loop waits for its workers and no device works, by step. Two
steps or more wait for over 5 % of their time, without a rhythm, and the waits' deviation exceeds
their mean.

## Why it costs
Workers prepare two batches each ahead of the loop. A slow sample, a disk that pauses, a large file
take longer than that reserve lasts.

## What to do
Make the reserve longer: `prefetch_factor=4` or 8. It takes `num_workers * prefetch_factor` batches
of host memory. Steps that wait in a strict rhythm mean that the workers are too few, which is
`slow_input`.

The estimate removes the waits; its low end is 0.

## Fires on
Three steps of eight wait, one and three steps apart.

    column = 2 ms
    mark 1 | ssssttttuuuuuuuuvvvvvvvvwwwwxxxxyyyyyyyyzzzz
    mark 1 |         dddd    dddd            dddd
    cpu 1  | aaaaaaaa    aaaa    aaaaaaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    x = ProfilerStep#6
    y = ProfilerStep#7
    z = ProfilerStep#8
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__; line = train.py:9 main

## Silent on
Every step waits: that is no burst.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddd        dddd        dddd
    cpu 1  |     aaaaaaaa    aaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from selftime.advice.detectors.batch_fetching import mid_epoch_worker_wait_times
from selftime.advice.detectors.exposed_loading import (
    data_loading_annotations,
    data_loading_times_of,
)
from selftime.advice.detectors.loader_workers import loader_worker_record
from selftime.advice.detectors.recorded_facts import WorkerCoreUse
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import UNSURE_SAVING_RANGE, RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace

MIN_WAITING_STEPS: Final = 2
"""Smallest number of steps that wait for a batch to report; a single wait may be an exception."""

MIN_WAIT_VARIATION_COEFFICIENT: Final = 1.0
"""Smallest ratio of the waits' standard deviation to their mean to report; random waits have 1."""


@rule(covers=("A9",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading = step_statistics(trace), data_loading_times_of(trace)
    if limits is None or loading is None or not loading.has_workers:
        yield Checked("no data loader has worker processes", is_absent=True)
        return
    workers = WorkerCoreUse.from_facts(trace.facts)
    shares, late = np.array(loading.waiting_share_by_step), loading.waiting_steps
    spread = float(shares.std() / shares.mean()) if shares.any() else 0.0
    steady = loading.is_steady(workers)
    if (
        loading.is_small
        or steady
        or len(late) < MIN_WAITING_STEPS
        or spread <= MIN_WAIT_VARIATION_COEFFICIENT
    ):
        reason = f"the loop waits for a worker in {len(late)} of {shares.size} steps"
        yield Checked(reason, loading.exposed_ms, is_slowed=False)
        return
    row = max(data_loading_annotations(trace), key=lambda row: row["exposed_time"])
    change = CutHostTime(mid_epoch_worker_wait_times(trace))
    claim = RemovalClaim(
        (change,), largest_changes=(change,), interval=UNSURE_SAVING_RANGE, noise_ms=0.0
    )
    told = loader_worker_record(trace)
    slowest = None if told is None else told.slowest_sample_ms
    longest = [] if slowest is None else [Evidence("time of the slowest sample", slowest, "ms")]
    yield Finding(
        title=f"{len(late)} of {shares.size} steps wait for a batch, the other steps do not",
        where=where_from_row(row),
        count_per_step=len(late) / shares.size,
        claim=claim,
        confidence="low",
        evidence=(
            Evidence("wait in a step, on average", loading.exposed_ms, "ms", (row["first"],)),
            Evidence("standard deviation of the wait, relative to its mean", spread, "ratio"),
            *longest,
        ),
        fix=Fix(
            "Prefetch more batches; they take that much more host memory.",
            "DataLoader(..., num_workers=workers, prefetch_factor=8)",
            Argument("loader", "prefetch_factor", "8"),
        ),
    )
