"""The run waits for its data.

## What it means
The loop asks for a batch, and it is not there. Recorded steps show a few of these waits; over a run
they change, as caches fill, other programs use the disk, or workers fall behind.

In the ledger of the run: the time in requests for batches, but the first of each pass over the
data, and whether the DataLoaders have workers.

## Why it costs
Neither the processor nor a device computes meanwhile, or the thread that trains does the loading
itself.

## What to do
Without workers: `num_workers=4`, so that batches are made beside the steps. Where the program may
use one core only, they gain nothing but where loading waits for storage, and where a step waits for
less than 2 ms they cost more than they hide. With workers: more of them while cores are free, or
less work for each sample; a longer queue, by `prefetch_factor`, only where workers rest between two
waits. `selftime run --workers` tells what workers do.

Without workers the estimate hides of each wait as much as the rest of its step lasts; half of that
at the low end, since workers need cores of their own, and nothing where fewer than 4 logical cores
may be threads of one; the whole wait at the high end. With workers,
what more of them would save cannot be estimated: the finding names the whole wait as the most that
a fix can save, from a tenth of the run.

## Fires on
A third of each step is a wait, without workers.

    run | before 1 s
    run | iterator 1 ms with 0 workers at train.py:9 main
    run | 50 training 100 ms: data_wait 30 ms

Workers that are too slow.

    run | before 1 s
    run | iterator 1 ms with 2 new workers at train.py:9 main
    run | 50 training 100 ms: data_wait 30 ms

## Silent on
No core free for a worker.

    run | before 1 s
    run | iterator 1 ms with 0 workers at train.py:9 main
    run | 50 training 100 ms: data_wait 30 ms
    facts = {"cores": {"effective": 1}}

Short waits.

    run | before 1 s
    run | iterator 1 ms with 2 new workers at train.py:9 main
    run | 50 training 100 ms: data_wait 1 ms
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime.advice.detectors.batch_delivery import iterators_of_step_loop, run_delivery
from selftime.advice.detectors.exposed_loading import (
    MIN_EXPOSED_LOADING_MS,
    data_loading_times_of,
)
from selftime.advice.detectors.loader_fixes import may_share_core
from selftime.advice.detectors.loader_workers import ASSUMED_LOADER_WORKERS
from selftime.advice.detectors.recorded_facts import available_cores
from selftime.advice.detectors.run_lines import where_from_reading, where_of_step_loop
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
)
from selftime.advice.savings.claims import RunClaim
from selftime.trace import Trace
from selftime.units import share_text, tenths_text

MIN_CORES_FOR_WORKERS: Final = 2
"""Fewest cores that the program may use at which one is free for a worker."""

MIN_SAVED_SHARE: Final = 0.5
"""Smallest share of the estimate that workers save, if the program uses the cores itself."""


@rule(covers=("M10", "A1", "A2", "A3", "A4", "A5", "A9"), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    run = trace.run
    steps = run.segments.filter(pl.col("kind").is_not_null()).slice(1)
    waits = steps.filter(pl.col("data_wait") > 0)
    spent = int(waits["data_wait"].sum())
    if not spent:
        yield Checked("no step waited for a batch", is_absent=True)
        return
    made = iterators_of_step_loop(run)
    counted = made.group_by("workers", maintain_order=True).len()
    workers = counted.sort("len", descending=True, maintain_order=True)["workers"].first()
    rest = waits.select(pl.min_horizontal("data_wait", pl.col("duration") - pl.col("data_wait")))
    hidden = int(rest.to_series().sum())
    title = f"The run waits for data {share_text(spent / run.wall_ns)} of its time"
    if workers == 0 and spent < MIN_EXPOSED_LOADING_MS * 1e6 * waits.height:
        reason = f"{title}, but less a step than a worker takes to hand over a batch"
        yield Checked(reason, run_upper_s=spent / 1e9)
        return
    if workers == 0 and not _can_workers_help(trace):
        reason = f"{title}; no core is free for workers, so they gain only where loading waits"
        yield Checked(reason, run_upper_s=spent / 1e9)
        return
    are_apart = not may_share_core(trace)
    least = MIN_SAVED_SHARE if are_apart else 0.0
    yield Finding(
        title=title,
        where=where_from_reading(made.row(0, named=True))
        if made.height
        else where_of_step_loop(run),
        claim=RunClaim(spent, saved_ns=hidden, low_ns=int(least * hidden))
        if workers == 0
        else RunClaim(spent),
        confidence="medium" if workers != 0 or are_apart else "low",
        evidence=(
            Evidence("waits for data", spent / 1e6, "ms"),
            Evidence("steps that waited", float(waits.height), "count"),
            Evidence("workers of the DataLoader", _as_float(workers), "count"),
        ),
        fix=Fix("Load in workers.", _code_of_loader_with_workers(trace))
        if workers == 0
        else _fix_of_workers(trace, workers),
    )


def _can_workers_help(trace: Trace) -> bool:
    """Returns whether a core is free for a worker, or recorded loading mostly waits for storage."""
    cores = available_cores(trace.facts)
    if cores is None or cores >= MIN_CORES_FOR_WORKERS:
        return True
    loading = data_loading_times_of(trace)
    return loading is not None and loading.waiting_ms > loading.total_ms / 2


def _fix_of_workers(trace: Trace, workers: Any) -> Fix:
    """Returns what to do about workers that are too slow, or late now and then."""
    found = run_delivery(trace)
    if found is not None and found.delivery == "uneven":
        return Fix(
            "The workers make batches fast enough on average: prefetch more of them; they take "
            "that much more host memory.",
            "DataLoader(..., num_workers=workers, prefetch_factor=8)",
            Argument("loader", "prefetch_factor", "8"),
        )
    cores = available_cores(trace.facts)
    if cores is not None and workers is not None and workers >= cores:
        return Fix(
            f"The program may use {tenths_text(cores)} cores, which {workers} workers share "
            "already: do less work a sample, or fetch a batch at once with `__getitems__`."
        )
    return Fix("Give the DataLoader more workers while cores are free, or less work a sample.")


def _code_of_loader_with_workers(trace: Trace) -> str:
    """Returns code for a DataLoader with one worker per free core, but no more than usual.

    One core is left to the program; where there is no other, the loading waits for storage.
    """
    cores = available_cores(trace.facts)
    workers = ASSUMED_LOADER_WORKERS
    if cores is not None and cores >= MIN_CORES_FOR_WORKERS:
        workers = min(workers, int(cores) - 1)
    return f"DataLoader(..., num_workers={workers}, persistent_workers=True)"


def _as_float(count: Any) -> float | None:
    return None if count is None else float(count)
