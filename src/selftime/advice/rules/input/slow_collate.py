"""Slow Python code joins the samples of a batch.

## What it means
On the main thread, the loader's `collate_fn` takes most of the time of a batch, in Python or in
operators so short that their dispatch is what costs. Joining large tensors takes as long as memory
does, and is not reported. With workers it runs in them, where a trace of the main process shows no
function; `selftime run --workers` records what they do.

In the trace: the frames of `collate_fn` spend half of the loading or more in Python.

## Why it costs
It runs once a batch and touches each sample, or each element, one by one: lists of numbers that
become a tensor, a copy for every row, a dictionary of many small tensors.

## What to do
Keep samples as tensors and join them by one operator: `torch.stack`, or
`torch.nn.utils.rnn.pad_sequence` for samples of several lengths; make fewer tensors a sample.
Workers hide what is left.

The estimate leaves a tenth of that time.

## Fires on
The loader's `collate_fn` in Python.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | lcccccc     lcccccc     lcccccc
    cpu 1    |         aaaa        aaaa        aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    c = train.py(20): collate

## Silent on
Making the samples is what takes the time.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | llllllc     llllllc     llllllc
    cpu 1    |         aaaa        aaaa        aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    c = train.py(20): collate

One operator joins large tensors: that is the memory's time.

    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1   | dddddddd    dddddddd    dddddddd
    python 1 | ffffffff    ffffffff    ffffffff
    python 1 | lcccccc     lcccccc     lcccccc
    cpu 1    |  kkkkkk aaaa kkkkkk aaaa kkkkkk aaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    f = torch/utils/data/_utils/fetch.py(47): fetch
    l = torch/utils/data/_utils/fetch.py(54): <listcomp>
    c = torch/utils/data/_utils/collate.py(336): default_collate
    k = aten::stack
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from selftime.advice.detectors.batch_fetching import (
    LoadingFunction,
    collate_function,
    mid_epoch_worker_wait_times,
    outcome_without_loading_function,
    share_of_loading_time,
)
from selftime.advice.detectors.counted_steps import (
    recorded_step_count,
    slices_in_counted_steps,
)
from selftime.advice.detectors.exposed_loading import (
    DataLoadingTimes,
    data_loading_annotations,
    data_loading_times_of,
)
from selftime.advice.detectors.loader_workers import LoaderWorkerRecord, loader_worker_record
from selftime.advice.detectors.loading_lines import loading_lines
from selftime.advice.detectors.source_lines import LineSlices
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import covered_time
from selftime.intervals import intersect, length
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_COLLATE_SHARE_OF_LOADING: Final = 0.5
"""Smallest share of the data loading time in collating samples to a batch to report."""

VECTORISED_COLLATE_TIME_SHARE: Final = 0.1
"""Assumed share of the time of a Python loop that one operator takes instead."""

FIX_CODE: Final = """def collate(samples):
    x, y = zip(*samples)
    padded = torch.nn.utils.rnn.pad_sequence(x, batch_first=True)
    return padded, torch.stack(y)"""
"""Example code of the fix: two operators join tensors of several lengths."""


@rule(covers=("A5",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats, loading, collate = (
        step_statistics(trace),
        data_loading_times_of(trace),
        collate_function(trace),
    )
    workers_record = loader_worker_record(trace)
    if (
        step_stats is not None
        and loading is not None
        and loading.has_workers
        and workers_record is not None
    ):
        yield _outcome_from_worker_record(trace, loading, workers_record)
        return
    if step_stats is None or loading is None or loading.has_workers:
        yield Checked("no batch is joined on the main thread", is_absent=True)
        return
    if collate is None:
        yield outcome_without_loading_function(trace)
        return
    share = share_of_loading_time(trace, collate.python_times)
    if loading.is_small_share or share < MIN_COLLATE_SHARE_OF_LOADING:
        reason = (
            f"`{collate.function}` takes {whole_percent_text(share)} of the data loading in Python"
        )
        yield Checked(reason, share * loading.exposed_ms)
        return
    # A function of the program is one place, whichever loader calls it; a library's is not.
    lines = [] if collate.is_own else loading_lines(trace, loading)
    found = list(filter(None, (_finding_of_line(trace, collate, *line[:2]) for line in lines)))
    yield from found or [_finding(trace, collate, loading, share)]


def _finding(
    trace: Trace, collate: LoadingFunction, loading: DataLoadingTimes, share: float
) -> Finding:
    row = max(data_loading_annotations(trace), key=lambda row: row["exposed_time"])
    better = CutHostTime(collate.python_times, VECTORISED_COLLATE_TIME_SHARE)
    return Finding(
        title=(
            f"`{collate.function}` joins samples in Python for {whole_percent_text(share)} of the "
            "data loading"
        ),
        where=collate.where if collate.is_own else where_from_row(row),
        count_per_step=row["count_per_step"],
        claim=RemovalClaim(
            (better,), largest_changes=(CutHostTime(collate.all_times),), noise_ms=loading.noise_ms
        ),
        confidence="high" if collate.is_own else "medium",
        evidence=(
            Evidence("share of data loading time", share, "ratio", (collate.event,)),
            Evidence("exposed data loading time", loading.exposed_ms, "ms"),
        ),
        fix=Fix(
            "Join tensors with one operator, and make fewer tensors for each sample.", FIX_CODE
        ),
    )


def _finding_of_line(
    trace: Trace, collate: LoadingFunction, line: LineSlices, loading: DataLoadingTimes
) -> Finding | None:
    """Returns the finding about one of several lines that load; None if it joins little there."""
    counted = slices_in_counted_steps(trace, line.slices)
    times = covered_time(counted)
    own = replace(
        collate,
        all_times=intersect(collate.all_times, times),
        python_times=intersect(collate.python_times, times),
    )
    share = length(own.python_times) / max(length(times), 1)
    if share < MIN_COLLATE_SHARE_OF_LOADING:
        return None
    count = counted.height / recorded_step_count(trace)
    finding = _finding(trace, own, loading, share)
    return replace(finding, where=line.where, count_per_step=count)


def _outcome_from_worker_record(
    trace: Trace, loading: DataLoadingTimes, workers_record: LoaderWorkerRecord
) -> Outcome:
    """Returns a finding if the workers' own measurements show that they mostly collate samples."""
    place = workers_record.collation_line
    if (
        loading.is_small
        or loading.delivery == "uneven"
        or workers_record.are_mostly_idle
        or workers_record.collating_share < MIN_COLLATE_SHARE_OF_LOADING
        or place is None
    ):
        share = whole_percent_text(workers_record.collating_share)
        reason = f"workers join samples for {share} of their work"
        return Checked(reason, workers_record.collating_share * loading.exposed_ms, is_slowed=False)
    waits = mid_epoch_worker_wait_times(trace)
    # They end a batch every `step`; with the rest of their work they would end it so much sooner.
    faster = loading.step_ms * (1 - (1 - VECTORISED_COLLATE_TIME_SHARE) * place.share)
    gained = min(loading.exposed_ms, loading.step_ms - max(faster, loading.step_without_loading_ms))
    change = CutHostTime(waits, 1 - gained / loading.exposed_ms)
    return Finding(
        title=(
            f"`{place.where.function}` joins samples for {whole_percent_text(place.share)} of the "
            "workers' work"
        ),
        where=place.where,
        count_per_step=1.0,
        claim=RemovalClaim(
            (change,), largest_changes=(CutHostTime(waits),), noise_ms=loading.noise_ms
        ),
        confidence="medium",
        evidence=(
            Evidence("wait for workers", loading.exposed_ms, "ms"),
            Evidence("worker time for a batch", workers_record.batch_ms, "ms"),
            *workers_record.worker_evidence(),
        ),
        fix=Fix(
            "Join tensors with one operator, and make fewer tensors for each sample.", FIX_CODE
        ),
    )
