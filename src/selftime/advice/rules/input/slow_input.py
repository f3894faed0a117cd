"""The step waits for the next batch.

## What it means
The main thread spends a part of each step in the `DataLoader`, and nothing else runs meanwhile: the
device has drained its queue, or there is no device. Only that exposed part costs; loading that
runs while the device works, or in worker processes, is hidden.

Where a narrower rule explains the wait, that one reports it: `slow_collate`, `restarted_workers`,
`late_first_batch`, `bursty_input`, `saturated_cores`. `pageable_copy` reports copies of batches
that are not pinned.

Worker processes are not in a trace. `selftime run --workers` records what they do, and the line
that takes their time is named.

In the trace: the time of the loader's slices on the main thread in which no device works: 5 % of
the step and 2 ms or more.

## Why it costs
With `num_workers=0` samples are read, transformed and collated on the main thread, between two
steps. With workers the main thread waits if they all together make batches more slowly than the
step uses them.

## What to do
Let worker processes load: `DataLoader(..., num_workers=4, persistent_workers=True)`, with
`pin_memory=True` for a GPU. More workers help only while there are free cores; loading that
computes on a machine without free cores gets faster only by computing less: decode and transform
once, in batches, in float32, or on the device. Where the verdict is *hidden*, do nothing.

The estimate is a model of the loader with as many workers as there are free cores, or twice as
many; of low confidence for loading that computes, where under 4 logical cores may be one core.

## Fires on
Loading on the main thread, every step.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddd        dddd        dddd
    cpu 1  |     aaaaaaaa    aaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__

Workers that are too slow for the step.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddd        dddd        dddd
    cpu 1  |     aaaaaaaa    aaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__

## Silent on
A worker has every batch ready; to hand it over takes a millisecond, and more for many tensors.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | d           d           d
    cpu 1  |  aaaaaaaaaaa aaaaaaaaaaa aaaaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__

Loading while the device still works on the step before: it is hidden.

    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | ddd         ddd         ddd
    call 1 |     k           l           m
    gpu 7  |     kkkkkkkkkkkkllllllllllllmmmmmmmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__

No loader in the trace: the rule cannot know.

    cpu 1 | aaaaaaaa aaaaaaaa
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.batch_fetching import (
    collate_function,
    mid_epoch_worker_wait_times,
    share_of_loading_time,
)
from selftime.advice.detectors.exposed_loading import (
    DataLoadingTimes,
    change_shortening_loading,
    data_loading_annotations,
    data_loading_times_of,
    longer_waits_of_run_text,
)
from selftime.advice.detectors.loader_fixes import (
    HAND_OVER_LESS_FIX,
    LOAD_IN_WORKERS,
    confidence_in_new_workers,
    text_on_more_workers,
    worker_count_fix,
)
from selftime.advice.detectors.loader_workers import (
    LoaderWorkerRecord,
    loader_worker_record,
    predict_step_with_more_workers,
    predict_step_with_workers,
    reason_workers_save_nothing,
)
from selftime.advice.detectors.loading_lines import findings_by_loading_line
from selftime.advice.detectors.recorded_facts import WorkerCoreUse, share_used_by_others
from selftime.advice.replay import CutHostTime, replay_of
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Outcome,
    Unknown,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import (
    REPLAYED_SAVING_RANGE,
    UNSURE_SAVING_RANGE,
    ModelledClaim,
    UpperBoundClaim,
)
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.frame_origins import parse_frame_of_trace
from selftime.trace import Trace
from selftime.units import share_text, tenths_text, whole_percent_text

MAX_WAIT_SHARE_OF_HIDDEN_LOADING: Final = 0.01
"""Largest share of a step spent waiting for data at which loading counts as hidden by other
work."""
MIN_STEPS_SHARE_WITH_HIDDEN_LOADING: Final = 0.9
"""Smallest share of steps with hidden loading at which it is said to be hidden."""
MAX_CORE_SHARE_OF_OTHER_PROGRAMS: Final = 0.25
"""Largest share of the cores in use by other programs at which the saving is reliable."""
MIN_COLLATE_SHARE: Final = 0.5
"""Smallest share of the data loading time in `collate_fn` to name it as the cause."""


@rule(covers=("A1", "A2", "A10", "L5"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats, loading = step_statistics(trace), data_loading_times_of(trace)
    if loading is None or step_stats is None:
        yield Unknown("a recorded data loader, such as `torch.utils.data.DataLoader`")
        return
    longer = longer_waits_of_run_text(trace) if loading.is_small else None
    if longer is not None:
        yield Checked(longer)
        return
    reason = _reason_against_adding_workers(trace, loading)
    if reason is not None:
        yield Checked(reason, loading.exposed_ms, is_slowed=not loading.has_workers)
        return
    finding = (
        _finding_with_workers(trace, step_stats, loading)
        if loading.has_workers
        else _finding_without_workers(trace, loading)
    )
    if not isinstance(finding.claim, ModelledClaim):
        yield finding
    elif finding.claim.saved_ms > 0:
        yield from findings_by_loading_line(trace, loading, finding, finding.claim, _title)
    else:
        reason = reason_workers_save_nothing(loading, trace.facts)
        yield Checked(reason, loading.exposed_ms, is_slowed=not loading.has_workers)


def _title(loading: DataLoadingTimes) -> str:
    share = whole_percent_text(loading.exposed_share)
    if loading.has_workers:
        return f"The loop waits for DataLoader workers {share} of each step"
    return f"The loop loads data on the main thread for {share} of each step"


def _reason_against_adding_workers(trace: Trace, loading: DataLoadingTimes) -> str | None:
    """Returns why more DataLoader workers are not worthwhile; None if they are."""
    workers = WorkerCoreUse.from_facts(trace.facts)
    if _is_loading_hidden(loading):
        return _hidden_loading_text(loading, workers)
    if loading.is_small and loading.at_epoch_ends_ms > loading.exposed_ms:
        share = share_text(loading.at_epoch_ends_ms / loading.step_ms)
        return (
            f"the loop waits {share} of its time as epochs begin and end: see "
            "`restarted_workers` and `late_first_batch`"
        )
    if loading.is_small:
        waits = f"the loop waits {share_text(loading.exposed_share)} of each step for data"
        is_brief = not loading.is_small_share
        return f"{waits}, less than a worker takes to hand over a batch" if is_brief else waits
    if not loading.has_workers:
        return _reason_to_speed_up_collate_instead(trace, loading)
    return _reason_against_more_workers(loading, workers, loader_worker_record(trace))


def _reason_against_more_workers(
    loading: DataLoadingTimes, workers: WorkerCoreUse | None, record: LoaderWorkerRecord | None
) -> str | None:
    waits = f"the loop waits {share_text(loading.exposed_share)} of its time for its workers"
    late, steps = len(loading.waiting_steps), len(loading.waiting_share_by_step)
    if loading.delivery == "uneven" or (loading.delivery == "unknown" and late < 2):
        return f"{waits}, but in {late} of {steps} steps only: see `bursty_input`"
    if workers is not None and workers.saturate_cores:
        return f"{waits}, and no core is free for more of them: see `saturated_cores`"
    collating = 0.0 if record is None or record.are_mostly_idle else record.collating_share
    if collating > MIN_COLLATE_SHARE:
        joining = f"{waits}, which join samples for {whole_percent_text(collating)} of their work"
        return f"{joining}: see `slow_collate`"
    return None


def _reason_to_speed_up_collate_instead(trace: Trace, loading: DataLoadingTimes) -> str | None:
    collate = collate_function(trace)
    if collate is None:
        return None
    share = share_of_loading_time(trace, collate.python_times)
    rest = (1 - share) * loading.exposed_ms
    without_collating = replace(loading, exposed_ms=rest, mean_exposed_ms=rest)
    if share > MIN_COLLATE_SHARE and without_collating.is_small:
        percent = whole_percent_text(share)
        return f"`{collate.function}` takes {percent} of the data loading: see `slow_collate`"
    return None


def _is_loading_hidden(loading: DataLoadingTimes) -> bool:
    """Returns whether worker processes or device work hide the loading time in nearly all steps."""
    shares = [share < MAX_WAIT_SHARE_OF_HIDDEN_LOADING for share in loading.waiting_share_by_step]
    structural = loading.has_workers or loading.device_lag_ms > loading.total_ms
    structural &= loading.at_epoch_ends_ms < MAX_WAIT_SHARE_OF_HIDDEN_LOADING * loading.step_ms
    return structural and sum(shares) >= MIN_STEPS_SHARE_WITH_HIDDEN_LOADING * len(shares)


def _hidden_loading_text(loading: DataLoadingTimes, workers: WorkerCoreUse | None) -> str:
    share = share_text(loading.exposed_share)
    text = f"data loading is hidden, no need to optimise: the loop waits {share} of each step"
    if not loading.has_workers:
        margin = loading.device_lag_ms / loading.total_ms if loading.total_ms else 1.0
        return f"{text}; it could take {tenths_text(margin)} times as long before it costs anything"
    if not (demand := None if workers is None else workers.core_demand_share):
        return f"{text}; only a recording with `selftime` shows by how much"
    return (
        f"{text}; its workers compute for {whole_percent_text(demand)} of the time: if they never "
        f"wait for storage, it could take {tenths_text(1 / demand)} times as long before it costs "
        "anything"
    )


def _finding_without_workers(trace: Trace, loading: DataLoadingTimes) -> Finding:
    """Returns the finding that data is loaded on the main thread."""
    annotation = max(data_loading_annotations(trace), key=itemgetter("exposed_time"))
    model = predict_step_with_workers(loading, trace.facts)
    crowded = _evidence_of_other_programs(trace)
    is_sure = model.is_core_count_known and not crowded
    estimate = max(0.0, loading.step_ms - model.likely_ms)
    best = max(estimate, min(loading.exposed_ms, loading.step_ms - model.shortest_ms))
    rest, total = loading.step_without_loading_ms, loading.total_ms
    kept = min(1.0, max(0.0, model.likely_ms - rest) / total) if total else 0.0
    pin = ", pin_memory=True" if loading.has_device else ""
    code = f"DataLoader(..., num_workers={model.worker_count}, persistent_workers=True{pin})"
    return Finding(
        covers=("A1",),
        title=_title(loading),
        where=where_from_row(annotation),
        count_per_step=annotation["count_per_step"],
        claim=ModelledClaim(
            estimate,
            max(best, loading.step_ms - rest),
            changes=(change_shortening_loading(trace, kept),),
            high_ms=best,
            interval=REPLAYED_SAVING_RANGE if is_sure else UNSURE_SAVING_RANGE,
            step_ms=loading.step_ms,
            noise_ms=loading.noise_ms,
        ),
        confidence=confidence_in_new_workers(trace, loading, is_sure=is_sure),
        evidence=(
            *_loading_evidence(loading, annotation["first"]),
            *_evidence_of_slowest_function(trace),
            *crowded,
        ),
        fix=worker_count_fix(LOAD_IN_WORKERS, code, str(model.worker_count)),
    )


def _finding_with_workers(
    trace: Trace, step_stats: StepStatistics, loading: DataLoadingTimes
) -> Finding:
    """Returns the finding that the DataLoader's worker processes are too slow."""
    annotation = max(data_loading_annotations(trace), key=itemgetter("exposed_time"))
    waits = mid_epoch_worker_wait_times(trace)
    waits_ms = replay_of(trace).saving(CutHostTime(waits)) / 1e6
    upper_ms = min(step_stats.scaled_to_typical_step(waits_ms), loading.step_ms)
    record = loader_worker_record(trace)
    if record is not None and record.are_mostly_idle:
        return _slow_batch_transfer_finding(loading, annotation, record, upper_ms)
    estimate, count = _saved_ms_and_advised_worker_count(
        loading, WorkerCoreUse.from_facts(trace.facts), trace.facts
    )
    estimate = min(estimate, upper_ms)
    place = None if record is None else record.slowest_line
    pin = ", pin_memory=True" if loading.has_device else ""
    code = f"DataLoader(..., num_workers={count}, prefetch_factor=4{pin})"
    crowded = _evidence_of_other_programs(trace)
    record_evidence = () if record is None else record.worker_evidence()
    return Finding(
        covers=("A2",),
        title=_title(loading),
        where=where_from_row(annotation) if place is None else place.where,
        count_per_step=annotation["count_per_step"],
        claim=ModelledClaim(
            estimate,
            upper_ms,
            changes=(CutHostTime(waits, 1 - estimate / upper_ms if upper_ms else 1.0),),
            interval=UNSURE_SAVING_RANGE,
            step_ms=loading.step_ms,
            noise_ms=0.0 if loading.delivery == "too slow" else loading.noise_ms,
        ),
        confidence="low" if crowded or loading.delivery == "unknown" else "medium",
        evidence=(*_loading_evidence(loading, annotation["first"]), *crowded, *record_evidence),
        fix=worker_count_fix(text_on_more_workers(record), code, count),
    )


def _slow_batch_transfer_finding(
    loading: DataLoadingTimes,
    annotation: Mapping[str, Any],
    record: LoaderWorkerRecord,
    upper_ms: float,
) -> Finding:
    """Returns the finding that workers send batches slowly: the loop waits, and so do workers."""
    waited, sent = whole_percent_text(loading.exposed_share), record.sending_share
    first = annotation["first"]
    sending = Evidence("share of the workers' time spent sending batches", sent, "ratio")
    return Finding(
        covers=("A2",),
        title=f"The loop waits {waited} of each step for batches of idle workers",
        where=where_from_row(annotation),
        count_per_step=annotation["count_per_step"],
        claim=UpperBoundClaim(upper_ms, is_slowed=False),
        confidence="low",
        evidence=(*_loading_evidence(loading, first), *record.worker_evidence(), sending),
        fix=HAND_OVER_LESS_FIX,
    )


def _saved_ms_and_advised_worker_count(
    loading: DataLoadingTimes, workers: WorkerCoreUse | None, facts: Mapping[str, Any]
) -> tuple[float, str]:
    """Returns (ms saved per step, advised number of workers as a Python expression)."""
    if workers is None or workers.core_demand_share is None:
        return min(loading.exposed_ms, loading.step_ms / 2), "2 * workers"
    # Computed for the mean step: if waits come in bursts, the typical step has none.
    mean = loading.mean_exposed_ms
    scale = min(1.0, loading.exposed_ms / mean) if mean else 1.0
    rest = loading.step_without_loading_ms / scale
    step = max(loading.step_ms / scale, rest + mean)
    loading_once = replace(loading, step_ms=step, step_without_loading_ms=rest)
    model = predict_step_with_more_workers(loading_once, workers, facts)
    saved = scale * max(0.0, step - model.likely_ms)
    return min(loading.exposed_ms, saved), str(model.worker_count)


def _evidence_of_other_programs(trace: Trace) -> tuple[Evidence, ...]:
    """Returns evidence that other programs used the CPU cores; empty if they used few cores."""
    others = share_used_by_others(trace.facts)
    if others is None or others <= MAX_CORE_SHARE_OF_OTHER_PROGRAMS:
        return ()
    return (Evidence("share of the cores used by other programs", others, "ratio"),)


def _loading_evidence(loading: DataLoadingTimes, first: int) -> tuple[Evidence, ...]:
    return (
        Evidence("exposed data loading time", loading.exposed_ms, "ms", (first,), loading.slices),
        Evidence("total data loading time", loading.total_ms, "ms", (), loading.slices),
        Evidence("exposed share of the step", loading.exposed_share, "ratio"),
    )


def _evidence_of_slowest_function(trace: Trace) -> Iterator[Evidence]:
    """Yields the share of loading time in the user's slowest function, if frames were recorded."""
    table = trace.view("operators", within=names.DATA_LOADING_PREFIX, python=True)
    frames = table.filter(pl.col("kind") == "frame").sort("cpu_time_total", descending=True)
    whole = table.filter(pl.col("kind") == "annotation")["cpu_time_total"].sum()
    for name, time in frames.select("name", "cpu_time_total").iter_rows():
        frame = parse_frame_of_trace(trace, name)
        if frame is not None and frame.origin == "user" and whole:
            definition = f"`{frame.file}`, defined in line {frame.line}"
            text = f"share of data loading in `{frame.function}` ({definition})"
            yield Evidence(text, min(1.0, time / whole), "ratio")
            return
