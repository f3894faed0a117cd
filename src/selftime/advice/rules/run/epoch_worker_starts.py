"""Each pass over the data starts the worker processes of its DataLoader.

## What it means
`for batch in loader:` makes a new iterator, and with `persistent_workers=False`, the default, that
starts all worker processes again. The recorded steps are in the middle of an epoch and show none of
it.

In the ledger of the run: iterators of one source line that started worker processes, twice or more.

## Why it costs
The program waits while the processes start, import what they need and make their first
batch: tens of milliseconds a worker on Linux, seconds where processes are spawned. Where epochs are
short, that is much of the run.

## What to do
Keep the workers: `DataLoader(..., persistent_workers=True)`. A data set that must be built anew for
each epoch, in its workers, cannot do that.

The estimate removes all starts but the first one, and the wait for the first batch after each of
them as far as the batch itself did not take it: with W workers one batch takes at most W times as
long as a step, or they would not keep up, and at most half of the wait. The low end removes three
quarters of the starts and of half of the waits, the high end all of both.

## Fires on
Three epochs, each with new workers.

    run | before 1 s
    run | iterator 500 ms with 2 new workers at train.py:9 main
    run | training 800 ms: epoch_boundary 700 ms
    run | 9 training 100 ms
    run | iterator 500 ms with 2 new workers at train.py:9 main
    run | training 800 ms: epoch_boundary 700 ms
    run | 9 training 100 ms
    run | iterator 500 ms with 2 new workers at train.py:9 main
    run | training 800 ms: epoch_boundary 700 ms
    run | 9 training 100 ms

## Silent on
Workers that stay.

    run | before 1 s
    run | iterator 500 ms with 2 new workers at train.py:9 main
    run | training 800 ms: epoch_boundary 700 ms
    run | 9 training 100 ms
    run | iterator 1 ms with 2 workers at train.py:9 main
    run | training 105 ms: epoch_boundary 5 ms
    run | 9 training 100 ms

A single epoch.

    run | before 1 s
    run | iterator 500 ms with 2 new workers at train.py:9 main
    run | training 800 ms: epoch_boundary 700 ms
    run | 9 training 100 ms
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime.advice.detectors.loader_fixes import KEEP_WORKERS_FIX
from selftime.advice.detectors.run_lines import where_from_reading
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Outcome,
    Unknown,
    rule,
)
from selftime.advice.savings.claims import REPLAYED_SAVING_RANGE, RunClaim
from selftime.analysis.run.compilation_sites import iterators_with_segments
from selftime.run import Run
from selftime.trace import Trace

MAX_BATCH_SHARE_OF_FIRST_WAIT: Final = 0.5
"""Largest share of the wait for a first batch that goes into the batch itself, and stays: the
ledger does not tell where the start of the processes ends."""


@rule(covers=("M1", "A7"), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    run = trace.run
    boundaries = int(run.segments["epoch_boundary"].sum())
    if not run.iterators.height and boundaries:
        yield Unknown("which iterators start workers: record with this version of `selftime run`")
        return
    starts = _starts_of_workers(run)
    again = starts.filter(pl.col("number") > 0)
    if not again.height:
        yield Checked("no DataLoader started workers more than once", is_absent=True)
        return
    for _, rows in again.group_by("file", "line", maintain_order=True):
        yield _finding(rows, _mean_step_time(run))


def _starts_of_workers(run: Run) -> pl.DataFrame:
    """Returns the iterators that started workers, one row each, with columns `number` and `wait`.

    number: how many iterators of the same line started workers before. wait: time (ns) for which
    the program waited for the iterator's first batch.
    """
    placed = iterators_with_segments(run)
    wait = pl.col("epoch_boundary") - pl.col("duration").sum().over("segment")
    starts = placed.with_columns(
        (wait / pl.len().over("segment")).clip(lower_bound=0).fill_null(0).alias("wait")
    ).filter("starts_workers")
    return starts.with_columns(pl.int_range(pl.len()).over("file", "line").alias("number"))


def _mean_step_time(run: Run) -> float:
    """Returns the mean time of a step without rare activities such as evaluation, in ns."""
    steps = run.segments.filter(pl.col("kind").is_not_null())
    seldom = pl.sum_horizontal("epoch_boundary", "evaluation", "compile", "recording")
    times = steps.select((pl.col("duration") - seldom).alias("time"))["time"]
    return float(times.sum()) / max(times.len(), 1)


def _finding(restarts: pl.DataFrame, step_ns: float) -> Finding:
    first: dict[str, Any] = restarts.row(0, named=True)
    starting, waiting = int(restarts["duration"].sum()), int(restarts["wait"].sum())
    count, half = restarts.height, int(MAX_BATCH_SHARE_OF_FIRST_WAIT * waiting)
    batches = min(half, int(count * first["workers"] * step_ns))
    return Finding(
        title=f"Worker processes restart {_times_text(count)} after their first start",
        where=where_from_reading(first),
        claim=RunClaim(
            starting + waiting,
            saved_ns=starting + waiting - batches,
            low_ns=int(REPLAYED_SAVING_RANGE.low * (starting + waiting - half)),
        ),
        confidence="high",
        evidence=(
            Evidence("workers of the DataLoader", float(first["workers"]), "count"),
            Evidence("starts of workers after the first one", float(count), "count"),
            Evidence("time of one start", starting / count / 1e6, "ms"),
            Evidence("wait for the first batch after a start", waiting / count / 1e6, "ms"),
        ),
        fix=KEEP_WORKERS_FIX,
    )


def _times_text(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
