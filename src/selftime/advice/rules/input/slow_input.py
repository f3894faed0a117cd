"""The step waits for the next batch.

## What it means
The main thread spends a part of each step in the `DataLoader`, and nothing else runs meanwhile: the
device has drained its queue, or there is no device. Only that exposed part costs; loading that
runs while the device works, or in worker processes, is hidden. A loader does not make the host wait
for the device: the device just runs dry.

Where something narrower explains the waiting, that is said instead: `slow_collate`,
`restarted_workers`, `late_first_batch`, `bursty_input`, `saturated_cores`. Batches in memory that
is not pinned are the subject of `pageable_copy`.

Worker processes are not in a trace. `selftime run --workers` records what they do, and the line
that takes their time is named.

## Why it costs
With `num_workers=0` samples are read, transformed and collated on the main thread, between two
steps. With workers the main thread waits if they all together make batches more slowly than the
step uses them.

## What to do
Let worker processes load: `DataLoader(..., num_workers=4, persistent_workers=True)`, with
`pin_memory=True` for a GPU. More workers help only while there are free cores; loading that
computes on a machine without free cores gets faster only by computing less: decode and transform
once, in batches, in float32, or on the device. Where the verdict is *hidden*, do nothing.

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
A worker has every batch ready; to hand it over takes a millisecond.

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

No loader that the trace could show: the rule cannot tell.

    cpu 1 | aaaaaaaa aaaaaaaa
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import polars as pl

from selftime import names
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
from selftime.advice.detectors.batch_fetching import collating, share_of_loading, waits_for_workers
from selftime.advice.detectors.loader_workers import (
    RECORD_WORKERS,
    Inside,
    inside,
    more_workers,
    without_waiting,
)
from selftime.advice.detectors.loading import Loading, cut, loading_of, regions_of_loading
from selftime.advice.detectors.recorded_facts import Workers, used_by_others
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import ERROR
from selftime.advice.replay import Cut, replay_of
from selftime.trace import Trace

HIDDEN_SHARE: Final = 0.01
"""Below this share of the step loading counts as hidden."""

HIDDEN_STEPS: Final = 0.9
"""In so many of the steps it must be, for the verdict that nothing needs doing."""

CROWDED: Final = 0.25
"""With more of the cores used by others, what workers gain may be less than the model says."""

MOSTLY: Final = 0.5
"""A function that takes more than this of the loading is what is slow."""


@rule(covers=("A1", "A2", "A10", "L5"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading = gate(trace), loading_of(trace)
    if loading is None or limits is None:
        yield Unknown("a loader that the trace names, as `torch.utils.data.DataLoader` is")
        return
    most = limits.unrecorded(loading.exposed)
    reason = _reason(trace, loading)
    if reason is not None:
        yield Checked(reason, most)
        return
    finding = _starved(trace, limits, loading) if loading.has_workers else _alone(trace, loading)
    if loading.has_workers and finding.saving.method == "none":
        yield finding
    elif finding.saving.estimate_ms:
        yield limits.of_cause(loading.noise).judge(finding)
    else:
        reason = f"data loading takes {loading.exposed:.1f} ms a step; no core is free for workers"
        yield Checked(reason, most)


def _reason(trace: Trace, loading: Loading) -> str | None:
    """Why more workers are not worth it, if they are not."""
    workers = Workers.of(trace.facts)
    if _is_hidden(loading):
        return _hidden(loading, workers)
    if loading.is_small and loading.around > loading.exposed:
        return (
            f"the loop waits {loading.around:.2f} ms of {loading.step:.1f} ms a step as epochs "
            "begin and end: see `restarted_workers` and `late_first_batch`"
        )
    if loading.is_small:
        return f"the loop waits {loading.exposed:.2f} ms of {loading.step:.1f} ms a step for data"
    if not loading.has_workers:
        return _of_collate(trace, loading)
    return _of_workers(loading, workers, inside(trace))


def _of_workers(loading: Loading, workers: Workers | None, told: Inside | None) -> str | None:
    waits = f"the loop waits {loading.exposed:.1f} ms a step for its workers"
    if not loading.is_steady(workers):
        late = len(loading.waiting_steps)
        return f"{waits}, but in {late} of {len(loading.shares)} steps only: see `bursty_input`"
    if workers is not None and workers.saturate:
        return f"{waits}, and more of them would find no free core: see `saturated_cores`"
    if told is not None and told.collating > MOSTLY and not told.rest:
        joining = f"{waits}, which join samples for {told.collating:.0%} of their work"
        return f"{joining}: see `slow_collate`"
    return None


def _of_collate(trace: Trace, loading: Loading) -> str | None:
    collate = collating(trace)
    if collate is None:
        return None
    share = share_of_loading(trace, collate.python)
    rest = (1 - share) * loading.exposed
    if share > MOSTLY and replace(loading, exposed=rest, average=rest).is_small:
        return f"`{collate.function}` takes {share:.0%} of the data loading: see `slow_collate`"
    return None


def _is_hidden(loading: Loading) -> bool:
    """Little is exposed in nearly all steps, and by structure: workers, or a device that lags."""
    shares = [share < HIDDEN_SHARE for share in loading.shares]
    structural = loading.has_workers or loading.lag > loading.total
    structural &= loading.around < HIDDEN_SHARE * loading.step
    return structural and sum(shares) >= HIDDEN_STEPS * len(shares)


def _hidden(loading: Loading, workers: Workers | None) -> str:
    text = (
        f"data loading is hidden, no need to optimise: the loop waits {loading.exposed:.2f} ms of "
        f"{loading.step:.1f} ms a step"
    )
    if not loading.has_workers:
        margin = loading.lag / loading.total if loading.total else 1.0
        return f"{text}; it could take {margin:.1f} times as long before it costs anything"
    if workers is None or not workers.demand:
        return f"{text}; by how much, only a recording with `selftime` can tell"
    return (
        f"{text}; its workers compute for {workers.demand:.0%} of the time: if they never wait for "
        f"storage, it could take {1 / workers.demand:.1f} times as long before it costs anything"
    )


def _alone(trace: Trace, loading: Loading) -> Finding:
    """The main thread loads."""
    row = max(regions_of_loading(trace), key=lambda row: row["exposed_time"])
    model, crowded = without_waiting(loading, trace.facts), _crowded(trace)
    estimate = max(0.0, loading.step - model.likely)
    high = max(estimate, min(loading.exposed, loading.step - model.best))
    upper = max(high, loading.step - loading.rest)
    kept = min(1.0, max(0.0, model.likely - loading.rest) / loading.total) if loading.total else 0.0
    pin = ", pin_memory=True" if loading.has_device else ""
    code = f"DataLoader(..., num_workers={model.workers}, persistent_workers=True{pin})"
    return Finding(
        covers=("A1",),
        title=f"The loop loads data on the main thread for {_share(loading):.0%} of each step",
        where=where(row),
        count_per_step=row["count_per_step"],
        saving=Saving.of_step(
            loading.step,
            estimate,
            method="replay",
            low_ms=(1 - ERROR) * estimate if model.cores_known and not crowded else 0.0,
            high_ms=min(upper, max(high, (1 + ERROR) * estimate)),
            upper_ms=upper,
        ),
        confidence="high" if model.cores_known and not crowded else "medium",
        evidence=(*_measured(loading, row), *_slowest_frame(trace), *crowded),
        fix=Fix("Load in worker processes, and make a sample cheaper where it computes.", code),
        changes=(cut(trace, kept),),
    )


def _starved(trace: Trace, limits: Gate, loading: Loading) -> Finding:
    """Workers are too slow."""
    row = max(regions_of_loading(trace), key=lambda row: row["exposed_time"])
    waits = waits_for_workers(trace)
    upper = min(limits.typical(replay_of(trace).saving(Cut(waits)) / 1e6), loading.step)
    told = inside(trace)
    if told is not None and told.rest:
        return _handed_over(loading, row, told, upper)
    estimate, count = _with_more(loading, Workers.of(trace.facts), trace.facts)
    estimate = min(estimate, upper)
    place = None if told is None else told.place
    pin = ", pin_memory=True" if loading.has_device else ""
    crowded = _crowded(trace)
    return Finding(
        covers=("A2",),
        title=f"The loop waits for its workers for {_share(loading):.0%} of each step",
        where=where(row) if place is None else place.where,
        count_per_step=row["count_per_step"],
        saving=Saving.of_step(
            loading.step,
            estimate,
            method="replay",
            high_ms=min(upper, (1 + ERROR) * estimate),
            upper_ms=upper,
        ),
        confidence="low" if crowded else "medium",
        evidence=(*_measured(loading, row), *crowded, *(told.evidence() if told else ())),
        fix=Fix(
            _way_out(told),
            f"DataLoader(..., num_workers={count}, prefetch_factor=4{pin})",
        ),
        changes=(Cut(waits, 1 - estimate / upper if upper else 1.0),),
    )


def _way_out(told: Inside | None) -> str:
    if told is not None and told.wait:
        return (
            "The workers wait for storage, or for another process, more than they compute: more of "
            "them help even where no core is free. Else read less: larger files, a local copy."
        )
    text = (
        "Give the loader more workers while there are free cores; else make a sample cheaper: "
        "decode and transform it once, in float32, or on the device."
    )
    return text if told is not None else f"{text} {RECORD_WORKERS}"


def _handed_over(loading: Loading, row: Mapping[str, Any], told: Inside, upper: float) -> Finding:
    """The workers rest, and still the loop waits: batches are late on the way."""
    sending = Evidence("of their time sending batches", told.sending, "ratio")
    return Finding(
        covers=("A2",),
        title=f"The loop waits {_share(loading):.0%} of each step for batches of workers that rest",
        where=where(row),
        count_per_step=row["count_per_step"],
        saving=Saving(upper_ms=upper),
        confidence="low",
        evidence=(*_measured(loading, row), *told.evidence(), sending),
        fix=Fix(
            "More workers gain nothing. Hand over less, and in fewer parts: one tensor for each "
            "field, which lies in shared memory, and no lists, arrays or bytes, which go through a "
            "pipe; and ask for more at once.",
            "DataLoader(..., prefetch_factor=8)",
        ),
    )


def _with_more(
    loading: Loading, workers: Workers | None, facts: Mapping[str, Any]
) -> tuple[float, str]:
    """What more workers save, and how many: twice as many make batches in half the time."""
    if workers is None or workers.demand is None:
        return min(loading.exposed, loading.step / 2), "2 * workers"
    # Of the average step: where waits come in bursts, the typical one has none.
    scale = min(1.0, loading.exposed / loading.average) if loading.average else 1.0
    rest = loading.rest / scale
    step = max(loading.step / scale, rest + loading.average)
    model = more_workers(replace(loading, step=step, rest=rest), workers, facts)
    saved = scale * max(0.0, step - model.likely)
    return min(loading.exposed, saved), str(model.workers)


def _crowded(trace: Trace) -> tuple[Evidence, ...]:
    """That other programs took the cores, so that workers would get, or got, less of them."""
    others = used_by_others(trace.facts)
    if others is None or others <= CROWDED:
        return ()
    return (Evidence("of the cores used by other programs", others, "ratio"),)


def _share(loading: Loading) -> float:
    return min(1.0, loading.exposed / loading.step)


def _measured(loading: Loading, row: Mapping[str, Any]) -> tuple[Evidence, ...]:
    return (
        Evidence("exposed data loading time", loading.exposed, "ms", (row["first"],)),
        Evidence("total data loading time", loading.total, "ms"),
        Evidence("exposed share of the step", _share(loading), "ratio"),
    )


def _slowest_frame(trace: Trace) -> Iterator[Evidence]:
    """The user's function that takes most of the loading, where frames were recorded."""
    table = trace.view("operators", within=names.LOADING_PREFIX, python=True)
    frames = table.filter(pl.col("kind") == "frame").sort("cpu_time_total", descending=True)
    whole = table.filter(pl.col("kind") == "annotation")["cpu_time_total"].sum()
    for name, time in frames.select("name", "cpu_time_total").iter_rows():
        frame = names.frame(name)
        if frame is not None and frame.origin == "user" and whole:
            text = f"of it in `{frame.function}` (`{frame.file}`, defined in line {frame.line})"
            yield Evidence(text, min(1.0, time / whole), "ratio")
            return
