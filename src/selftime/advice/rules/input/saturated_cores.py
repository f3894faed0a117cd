"""Workers are too slow, and the machine has no core left for more.

## What it means
The loop waits for batches, its worker processes compute, and all cores that the program may use are
busy. More workers would only share the same cores. A trace does not show this; a recording by
`selftime` notes beside it how much of the cores was used.

## Why it costs
Decoding and transforming samples takes more CPU time than the machine has in a step. The device, or
the rest of the step, waits for it.

## What to do
Make a sample cheaper: decode and transform once and store the result, work on whole batches
(`__getitems__`), in float32 or uint8, or on the device. Leave one thread to each worker, which is
the default. A machine with more cores a device helps as well. What it saves depends on the
transform; time that alone, as no trace of the main process shows its workers.
`selftime run --workers` names the line that takes their time.

## Fires on
Two workers on two cores, both busy.

    column = 1 ms
    facts = {"usage": {"wall_s": 1, "workers": {"count": 2, "cpu_s": 1.6}, "busy": 0.97}}
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddd        dddd        dddd
    cpu 1  |     aaaaaaaa    aaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__; line = train.py:9 main

## Silent on
The same wait for workers that wait themselves, for storage: more of them help, whatever else the
cores do.

    column = 1 ms
    facts = {"usage": {"wall_s": 1, "workers": {"count": 2, "cpu_s": 0.1}, "busy": 0.97}}
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddd        dddd        dddd
    cpu 1  |     aaaaaaaa    aaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
"""

from collections.abc import Iterator

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
from selftime.advice.detectors.loader_workers import RECORD_WORKERS, inside
from selftime.advice.detectors.loading import loading_of, regions_of_loading
from selftime.advice.detectors.recorded_facts import Workers
from selftime.advice.gate import gate
from selftime.trace import Trace


@rule(covers=("A3",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading = gate(trace), loading_of(trace)
    if limits is None or loading is None or not loading.has_workers:
        yield Checked("no loader with worker processes", is_absent=True)
        return
    workers = Workers.of(trace.facts)
    if loading.is_small or not loading.is_steady(workers):
        yield Checked("the workers are fast enough", limits.unrecorded(loading.exposed))
        return
    if workers is None or workers.used is None or workers.demand is None:
        yield Unknown("the use of cores beside the trace: record with `selftime run`, for 0.2 s on")
        return
    if not workers.saturate:
        reason = f"{workers.used:.0%} of the cores used, by each worker {workers.demand:.0%} of one"
        yield Checked(reason, limits.unrecorded(loading.exposed))
        return
    row = max(regions_of_loading(trace), key=lambda row: row["exposed_time"])
    share = min(1.0, loading.exposed / loading.step)
    told = inside(trace)
    place = None if told is None else told.place
    yield Finding(
        title=f"The loop waits for its workers for {share:.0%} of each step, and no core is free",
        where=where(row) if place is None else place.where,
        count_per_step=row["count_per_step"],
        saving=Saving(upper_ms=limits.unrecorded(loading.exposed)),
        confidence="medium",
        evidence=(
            Evidence("wait for workers", loading.exposed, "ms", (row["first"],)),
            Evidence("cores used", workers.used, "ratio"),
            Evidence("worker processes", float(workers.count), "count"),
            Evidence("of the time each computes", workers.demand, "ratio"),
            *(told.evidence() if told is not None else ()),
        ),
        fix=Fix(
            "More workers would share the same cores: make a sample cheaper. Decode and transform "
            "once and store that, or transform whole batches, on the device if there is one."
            + (f" {RECORD_WORKERS}" if told is None else ""),
        ),
    )
