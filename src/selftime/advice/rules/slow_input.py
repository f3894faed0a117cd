"""The step waits for the next batch.

## What it means
The main thread spends a part of each step in the `DataLoader`, and nothing else runs meanwhile: the
device has drained its queue, or there is no device. Only that exposed part costs; loading that
runs while the device works, or in worker processes, is hidden.

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

from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Unknown, rule
from selftime.advice.gate import Gate, gate
from selftime.advice.loading import Loading, without_waiting
from selftime.advice.replay import Cut, replay_of
from selftime.advice.source import where
from selftime.trace import Trace
from selftime.views.accounts.named import of_kind, whose_name
from selftime.views.accounts.times import times_of

EXPOSED_SHARE: Final = 0.05
"""Exposed loading below this share of the step is not worth worker processes."""

EXPOSED_MS: Final = 2.0
"""Nor is it below this time: a worker hands a batch to the loop in about a millisecond."""

HIDDEN_SHARE: Final = 0.01
"""Below this share of the step loading counts as hidden."""

HIDDEN_STEPS: Final = 0.9
"""In so many of the steps it must be, for the verdict that nothing needs doing."""

ERROR: Final = 0.25
"""Relative error of the model: a first interval, until a corpus of repaired programs gives it."""


@rule(covers=("A1", "A2", "A10"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    loading = None if limits is None else _loading(trace, limits)
    if loading is None or limits is None:
        yield Unknown("a loader that the trace names, as `torch.utils.data.DataLoader` is")
        return
    if _is_hidden(loading):
        yield Checked(_hidden(loading), limits.unrecorded(loading.exposed))
        return
    if loading.exposed < max(EXPOSED_SHARE * loading.step, EXPOSED_MS):
        reason = f"the loop waits {loading.exposed:.2f} ms of {loading.step:.1f} ms a step for data"
        yield Checked(reason, limits.unrecorded(loading.exposed))
        return
    finding = _finding(trace, loading, _cut(trace))
    if finding.saving.estimate_ms:
        yield limits.of_cause(loading.noise).judge(finding)
    else:
        reason = f"data loading takes {loading.exposed:.1f} ms a step; no core is free for workers"
        yield Checked(reason, limits.unrecorded(loading.exposed))


def _cut(trace: Trace, keep: float = 0.0) -> Cut:
    """The time in which the main thread loads data, or waits for workers that do."""
    loading = whose_name(of_kind(trace, "host"), names.is_data_loading)
    return Cut(times_of(loading), keep)


def _loading(trace: Trace, limits: Gate) -> Loading | None:
    steps = trace.view("steps").filter(pl.col("counted") & pl.col("loading").is_not_null())
    rows = _rows(trace)
    if not steps.height or not rows:
        return None
    time = "device_time" if steps["device_time"].null_count() < steps.height else "host_time"
    told = steps.filter(pl.col(time).is_not_null())
    return Loading(
        step=_median_ms(told[time]),
        exposed=_median_ms(told["data_loading"]),
        total=_median_ms(told["loading"]),
        waiting=_waiting_share(trace) * _median_ms(told["loading"]),
        noise=_deviation_ms(told["data_loading"]),
        shares=tuple((told["data_loading"] / told[time]).to_list()),
        rest=limits.typical(replay_of(trace).step_time(_cut(trace)) / 1e6),
        lag=_median_ms(told["lag"].drop_nulls()),
        has_workers=not any(names.loads_on_main_thread(row["name"]) for row in rows),
        has_device=time == "device_time",
    )


def _waiting_share(trace: Trace) -> float:
    """How much of the loading lies in frames that wait, where frames were recorded."""
    table = trace.view("operators", within=names.LOADING_PREFIX, python=True)
    whole = table.filter(pl.col("kind") == "annotation")["cpu_time_total"].sum()
    frames = whose_name(table.filter(pl.col("kind") == "frame"), names.is_waiting_frame)
    return min(1.0, float(frames["self_cpu_time_total"].sum()) / float(whole)) if whole else 0.0


def _rows(trace: Trace) -> list[dict[str, Any]]:
    regions = trace.view("regions").iter_rows(named=True)
    return [row for row in regions if names.is_data_loading(row["name"])]


def _median_ms(times: pl.Series) -> float:
    return median(times.to_list()) / 1e6 if times.len() else 0.0


def _deviation_ms(times: pl.Series) -> float:
    """The median absolute deviation."""
    listed: list[int] = times.to_list()
    middle = median(listed)
    return float(median(abs(time - middle) for time in listed)) / 1e6


def _is_hidden(loading: Loading) -> bool:
    """Little is exposed in nearly all steps, and by structure: workers, or a device that lags."""
    shares = [share < HIDDEN_SHARE for share in loading.shares]
    structural = loading.has_workers or loading.lag > loading.total
    return structural and sum(shares) >= HIDDEN_STEPS * len(shares)


def _hidden(loading: Loading) -> str:
    text = (
        f"data loading is hidden, no need to optimise: the loop waits {loading.exposed:.2f} ms of "
        f"{loading.step:.1f} ms a step"
    )
    if loading.has_workers or not loading.total:
        return text
    margin = loading.lag / loading.total
    return f"{text}; it could take {margin:.1f} times as long before it costs anything"


def _finding(trace: Trace, loading: Loading, cut: Cut) -> Finding:
    row = max(_rows(trace), key=lambda row: row["exposed_time"])
    model = without_waiting(loading, trace.facts)
    estimate = max(0.0, loading.step - model.likely)
    high = max(estimate, min(loading.exposed, loading.step - model.best))
    upper = max(high, loading.step - loading.rest)
    kept = min(1.0, max(0.0, model.likely - loading.rest) / loading.total) if loading.total else 0.0
    share = loading.exposed / loading.step
    kind = "waits for its workers" if loading.has_workers else "loads data on the main thread"
    return Finding(
        covers=("A2",) if loading.has_workers else ("A1",),
        title=f"The loop {kind} for {share:.0%} of each step",
        where=where(row),
        count_per_step=row["count_per_step"],
        saving=Saving.of_step(
            loading.step,
            estimate,
            method="replay",
            low_ms=(1 - ERROR) * estimate if model.cores_known else 0.0,
            high_ms=min(upper, max(high, (1 + ERROR) * estimate)),
            upper_ms=upper,
        ),
        confidence="medium" if loading.has_workers or not model.cores_known else "high",
        evidence=(
            Evidence("data loading, exposed", loading.exposed, "ms", (row["first"],)),
            Evidence("data loading in all", loading.total, "ms"),
            Evidence("exposed share of the step", share, "ratio"),
            *_slowest_frame(trace),
        ),
        fix=_fix(loading, model.workers),
        changes=(replace(cut, keep=kept),),
    )


def _slowest_frame(trace: Trace) -> Iterator[Evidence]:
    """The user's function that takes most of the loading, where frames were recorded."""
    table = trace.view("operators", within=names.LOADING_PREFIX, python=True)
    frames = table.filter(pl.col("kind") == "frame").sort("cpu_time_total", descending=True)
    whole = table.filter(pl.col("kind") == "annotation")["cpu_time_total"].sum()
    for name, time in frames.select("name", "cpu_time_total").iter_rows():
        frame = names.frame(name)
        if frame is not None and frame.origin == "user" and whole:
            text = f"of it in `{frame.function}` ({frame.file}, defined in line {frame.line})"
            yield Evidence(text, min(1.0, time / whole), "ratio")
            return


def _fix(loading: Loading, workers: int) -> Fix:
    pin = ", pin_memory=True" if loading.has_device else ""
    if loading.has_workers:
        text = (
            "Give the loader more workers while there are free cores; else make a sample cheaper: "
            "decode and transform it once, in float32, or on the device."
        )
        return Fix(text, f"DataLoader(..., num_workers=2 * workers, prefetch_factor=4{pin})")
    text = "Load in worker processes, and make a sample cheaper where it computes."
    return Fix(text, f"DataLoader(..., num_workers={workers}, persistent_workers=True{pin})")
