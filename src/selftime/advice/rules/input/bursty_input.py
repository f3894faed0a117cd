"""Some steps wait for a batch, though on average batches come fast enough.

## What it means
The loop waits for its workers in a few steps, without a rhythm, and in most not at all. A batch
that takes longer than usual finds the queue of ready batches too short to bridge it.

## Why it costs
Workers prepare two batches each ahead of the loop. A slow sample, a disk that pauses, a large file
take longer than that reserve lasts.

## What to do
Make the reserve longer: `prefetch_factor=4` or 8. It takes `num_workers * prefetch_factor` batches
of host memory. Steps that wait in a strict rhythm mean that the workers are too few, which is
`slow_input`.

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
from dataclasses import replace
from typing import Final

import numpy as np

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule, where
from selftime.advice.detectors.batch_fetching import waits_for_workers
from selftime.advice.detectors.loader_workers import inside
from selftime.advice.detectors.loading import loading_of, regions_of_loading
from selftime.advice.detectors.recorded_facts import Workers
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.trace import Trace

FEWEST: Final = 2
"""One step that waits may be all that does so in an hour."""

BURSTY: Final = 1.0
"""The deviation of waits against their mean: that of events which come at random is 1."""


@rule(covers=("A9",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading = gate(trace), loading_of(trace)
    if limits is None or loading is None or not loading.has_workers:
        yield Checked("no loader with worker processes", is_absent=True)
        return
    workers = Workers.of(trace.facts)
    shares, late = np.array(loading.shares), loading.waiting_steps
    spread = float(shares.std() / shares.mean()) if shares.any() else 0.0
    steady = loading.is_steady(workers)
    if loading.is_small or steady or len(late) < FEWEST or spread <= BURSTY:
        reason = f"the loop waits for a worker in {len(late)} of {shares.size} steps"
        yield Checked(reason, limits.unrecorded(loading.exposed))
        return
    row = max(regions_of_loading(trace), key=lambda row: row["exposed_time"])
    change = Cut(waits_for_workers(trace))
    saving = priced(trace, limits, change, most=(change,))
    told = inside(trace)
    slowest = None if told is None else told.longest_ms
    longest = [] if slowest is None else [Evidence("the slowest sample took", slowest, "ms")]
    finding = Finding(
        title=f"{len(late)} of {shares.size} steps wait for a batch, the others do not",
        where=where(row),
        count_per_step=len(late) / shares.size,
        saving=replace(saving, low_ms=0.0),
        confidence="low",
        evidence=(
            Evidence("wait in a step, on average", loading.exposed, "ms", (row["first"],)),
            Evidence("deviation of it, against its mean", spread, "ratio"),
            *longest,
        ),
        fix=Fix(
            "Keep more batches ready; it takes that much more host memory.",
            "DataLoader(..., num_workers=workers, prefetch_factor=8)",
        ),
        changes=(change,),
    )
    yield limits.of_cause(0.0).judge(finding)
