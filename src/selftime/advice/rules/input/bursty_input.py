"""Some steps wait for a batch, though on average batches come fast enough.

## What it means
The loop waits for its workers in a few steps, and in most not at all. A batch that takes longer
than usual finds the queue of ready batches too short to bridge it.

In the trace, and in the ledger of the run where there is one: two steps or more wait for a batch
for over 5 % of their time, and most of that comes after more steps without a wait than the queue
holds batches, `num_workers * prefetch_factor`. Only then have workers rested. Waits that follow
each other sooner, in whatever rhythm, mean that the workers are too slow, which is `slow_input`:
the queue that was filled at the start is empty, and a longer one would empty as well.

## Why it costs
Workers prepare two batches each ahead of the loop. A slow sample, a disk that pauses, a large file
take longer than that reserve lasts.

## What to do
Make the reserve longer: `prefetch_factor=4` or 8. It takes `num_workers * prefetch_factor` batches
of host memory.

The estimate removes the waits; its low end is 0.

## Fires on
Two steps of eight wait, four steps apart, where one worker makes two batches ahead.

    column = 2 ms
    facts = {"usage": {"wall_s": 1, "workers": {"count": 1, "cpu_s": 0}}}
    mark 1 | ssssttttuuuuuuuuvvvvwwwwxxxxyyyyyyyyzzzz
    mark 1 |         dddd                dddd
    cpu 1  | aaaaaaaa    aaaaaaaaaaaaaaaa    aaaaaaaa
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

Waits without a rhythm, but none after more steps than two workers make batches ahead.

    column = 2 ms
    facts = {"usage": {"wall_s": 1, "workers": {"count": 2, "cpu_s": 0}}}
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
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__

The queue of eight batches drains at the start of the run, and each second step waits from then on.

    column = 2 ms
    run | before 1 s
    run | iterator 1 ms with 2 new workers and 8 batches ahead at train.py:9 main
    run | 20 training 8 ms
    run | training 16 ms: data_wait 8 ms
    run | training 8 ms
    run | training 16 ms: data_wait 8 ms
    run | training 8 ms
    run | training 16 ms: data_wait 8 ms
    mark 1 | ssssttttuuuuuuuuvvvvwwwwxxxxyyyyyyyyzzzz
    mark 1 |         dddd                dddd
    cpu 1  | aaaaaaaa    aaaaaaaaaaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    x = ProfilerStep#6
    y = ProfilerStep#7
    z = ProfilerStep#8
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.detectors.batch_fetching import mid_epoch_worker_wait_times
from selftime.advice.detectors.exposed_loading import (
    data_loading_annotations,
    data_loading_times_of,
    outcome_of_brief_waits,
)
from selftime.advice.detectors.loader_workers import loader_worker_record
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    MORE_STEPS,
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import UNSURE_SAVING_RANGE, RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace

MIN_WAITING_STEPS: Final = 2
"""Smallest number of steps that wait for a batch to report; a single wait may be an exception."""


@rule(covers=("A9",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading = step_statistics(trace), data_loading_times_of(trace)
    if limits is None or loading is None or not loading.has_workers:
        yield Checked("no data loader with worker processes is in this trace", is_absent=True)
        return
    late, steps = len(loading.waiting_steps), len(loading.waiting_share_by_step)
    if loading.delivery == "unknown" and not loading.is_small and late < MIN_WAITING_STEPS:
        yield Unknown(f"whether the wait in {late} of {steps} steps comes again: {MORE_STEPS}")
        return
    if loading.is_small or loading.delivery != "uneven" or late < MIN_WAITING_STEPS:
        yield outcome_of_brief_waits(trace, loading)
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
        title=f"{late} of {steps} steps wait for a batch, the other steps do not",
        where=where_from_row(row),
        count_per_step=late / steps,
        claim=claim,
        confidence="low",
        evidence=(
            Evidence(
                "wait in a step, on average",
                loading.exposed_ms,
                "ms",
                (row["first"],),
                loading.slices,
            ),
            *longest,
        ),
        fix=Fix(
            "Prefetch more batches; they take that much more host memory.",
            "DataLoader(..., num_workers=workers, prefetch_factor=8)",
            Argument("loader", "prefetch_factor", "8"),
        ),
    )
