"""DataLoader workers are too slow, and no core is free for more of them.

## What it means
The loop waits for batches, its worker processes compute, and all cores that the program may use are
busy. More workers would only share the same cores. A trace shows the waits; the use of the cores
is a fact of a recording by `selftime`.

## Why it costs
Decoding and transforming samples takes more CPU time than the machine has in a step. The device, or
the rest of the step, waits for it.

## What to do
Make a sample cheaper: decode and transform once and store the result, work on whole batches
(`__getitems__`), in float32 or uint8, or on the device. Leave one thread to each worker, which is
the default. A machine with more cores per device helps as well. The saving depends on the
transform: time it alone. `selftime run --workers` names the line that takes the workers' time.

At most the wait for the workers is saved; no estimate is made.

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

from selftime.advice.detectors.exposed_loading import (
    data_loading_annotations,
    data_loading_times_of,
    outcome_of_brief_waits,
)
from selftime.advice.detectors.loader_workers import RECORD_WORKERS_HINT, loader_worker_record
from selftime.advice.detectors.recorded_facts import WorkerCoreUse
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import UpperBoundClaim
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace
from selftime.units import whole_percent_text


@rule(covers=("A3",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, loading = step_statistics(trace), data_loading_times_of(trace)
    if limits is None or loading is None or not loading.has_workers:
        yield Checked("no data loader with worker processes is in this trace", is_absent=True)
        return
    workers = WorkerCoreUse.from_facts(trace.facts)
    if loading.is_small or loading.delivery == "uneven":
        yield outcome_of_brief_waits(trace, loading)
        return
    if workers is None or workers.core_use_share is None or workers.core_demand_share is None:
        yield Unknown("the use of the CPU cores: record with `selftime run`, for 0.2 s or longer")
        return
    if not workers.saturate_cores:
        reason = (
            f"{whole_percent_text(workers.core_use_share)} of the cores are busy; each worker "
            f"needs {whole_percent_text(workers.core_demand_share)} of one"
        )
        yield Checked(reason, loading.exposed_ms, is_slowed=False)
        return
    row = max(data_loading_annotations(trace), key=lambda row: row["exposed_time"])
    share = whole_percent_text(loading.exposed_share)
    told = loader_worker_record(trace)
    place = None if told is None else told.slowest_line
    yield Finding(
        title=f"The loop waits for DataLoader workers {share} of each step; no core is free",
        where=where_from_row(row) if place is None else place.where,
        count_per_step=row["count_per_step"],
        claim=UpperBoundClaim(loading.exposed_ms, is_slowed=False),
        confidence="medium",
        evidence=(
            Evidence("wait for workers", loading.exposed_ms, "ms", (row["first"],), loading.slices),
            Evidence("cores used", workers.core_use_share, "ratio"),
            Evidence("worker processes", float(workers.worker_count), "count"),
            Evidence(
                "share of the time that each worker computes", workers.core_demand_share, "ratio"
            ),
            *(told.worker_evidence() if told is not None else ()),
        ),
        fix=Fix(
            "More workers would share the same cores: make a sample cheaper. Decode and transform "
            "once and store that, or transform whole batches, on the device if there is one."
            + (f" {RECORD_WORKERS_HINT}" if told is None else ""),
        ),
    )
