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

A start keeps the program's thread on a core for 5 to 10 ms a worker, as it copies the process.
Where all cores are taken by the workers that have begun already, it also waits for one of them, and
they make their first batches meanwhile: that work stays, and so does the wait. Where loaders are
created at one line, as those for training and validation by one function, one change there keeps
all of their workers, and they are told as one.

The estimate removes all starts but the first one, of those the thread's own time where there are no
more cores than workers, and the wait for the first batch after each of
them as far as the batch itself did not take it: with W workers one batch takes at most W times as
long as a step, or they would not keep up, and at most half of the wait. The low end removes three
quarters of the thread's own time in the starts and of half of the waits, the high end all of both.
An older ledger does not hold the thread's own time: then only the most is known.

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

from selftime.advice.detectors.creation_sites import creation_sites
from selftime.advice.detectors.loader_fixes import KEEP_WORKERS_FIX
from selftime.advice.detectors.recorded_facts import available_cores
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
    cores = available_cores(trace.facts)
    created = {(one.file, one.line) for one in creation_sites(trace) if one.kind == "loader"}
    places = [] if len(created) == 1 else ["file", "line"]
    for _, rows in again.group_by(pl.lit(0), *places, maintain_order=True):
        yield _finding(rows, _mean_step_time(run), cores)


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


def _finding(restarts: pl.DataFrame, step_ns: float, cores: float | None) -> Finding:
    first: dict[str, Any] = restarts.row(0, named=True)
    has_cores = (pl.col("workers") < pl.lit(cores)).fill_null(value=True)
    own = restarts.select(
        running=pl.col("cpu").clip(upper_bound="duration"),
        saved=pl.when(has_cores).then("duration").otherwise(pl.col("cpu").clip(0, "duration")),
    )
    starting, waiting = int(restarts["duration"].sum()), int(restarts["wait"].sum())
    count, half = restarts.height, int(MAX_BATCH_SHARE_OF_FIRST_WAIT * waiting)
    batches = min(half, int((restarts["workers"] * step_ns).sum()))
    saved = None if own["saved"].null_count() else int(own["saved"].sum())
    running = starting if own["running"].null_count() else int(own["running"].sum())
    return Finding(
        title=f"Worker processes restart {_times_text(count)} after their first start",
        where=where_from_reading(first),
        claim=RunClaim(
            starting + waiting,
            saved_ns=None if saved is None else saved + waiting - batches,
            low_ns=0
            if saved is None
            else int(REPLAYED_SAVING_RANGE.low * (min(running, saved) + waiting - half)),
        ),
        confidence="medium" if saved is None else "high",
        evidence=(
            Evidence("workers of the DataLoader", float(first["workers"]), "count"),
            Evidence("starts of workers after the first one", float(count), "count"),
            *_evidence_of_lines(restarts),
            Evidence("time of one start", starting / count / 1e6, "ms"),
            *(
                ()
                if own["running"].null_count()
                else (Evidence("of it on a core", running / count / 1e6, "ms"),)
            ),
            Evidence("wait for the first batch after a start", waiting / count / 1e6, "ms"),
        ),
        fix=KEEP_WORKERS_FIX,
    )


def _evidence_of_lines(restarts: pl.DataFrame) -> Iterator[Evidence]:
    """Yields how many of the starts each line makes, if several do."""
    lines = restarts.group_by("file", "line", "function", maintain_order=True).len()
    if lines.height > 1:
        for row in lines.iter_rows(named=True):
            yield Evidence(f"of them at {where_from_reading(row)}", float(row["len"]), "count")


def _times_text(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
