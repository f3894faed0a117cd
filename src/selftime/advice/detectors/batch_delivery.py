"""Tells whether a DataLoader's workers are too slow, or deliver unevenly, by the steps that wait.

A worker rests only when as many of its batches are ready as it may make ahead of the loop. The loop
then takes that many batches of each worker without a wait. So between two waits with fewer steps
no worker rested: the workers are too slow, however even or uneven the waits are, and a longer queue
gives no more batches. Only a wait that comes after more steps may be that of one late batch.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime.advice.detectors.recorded_facts import WorkerCoreUse
from selftime.analysis.data_loader_workers import loader_worker_tables
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.run.compilation_sites import iterators_with_segments
from selftime.array_types import Floats, Ints
from selftime.run import Run
from selftime.trace import Trace

MIN_EXPOSED_LOADING_SHARE: Final = 0.05
"""Smallest share of the step spent waiting for data for which worker processes are worth their
cost."""

USUAL_READY_BATCH_FETCH_NS: Final = 1_000_000
"""Usual time of `next` on a DataLoader, in ns, if a worker has the batch ready; 0.1 to 1.9 ms were
recorded."""

DEFAULT_BATCHES_AHEAD_PER_WORKER: Final = 2
"""`prefetch_factor` of a DataLoader with workers that names none."""

Delivery: TypeAlias = Literal["too slow", "uneven", "unknown"]
"""How workers deliver: too slowly for the loop, late now and then, or waits do not tell."""


@dataclass(frozen=True, slots=True)
class RunDelivery:
    """How the workers of the loader of a run's steps delivered over the whole run."""

    delivery: Delivery
    waiting_share: float
    """Share of the steps' time spent waiting for batches, without the first of each pass."""
    step_count: int
    late_count: int
    """The number of steps that waited for a batch for over 5 % of their time."""


@cached_per_trace
def run_delivery(trace: Trace) -> RunDelivery | None:
    """Returns how workers delivered over the run; None without its ledger, or without workers."""
    run = trace.run
    steps = run.segments.filter(pl.col("kind").is_not_null()).slice(1)
    made = iterators_of_step_loop(run)
    if not steps.height or not made.height or not made["workers"].max():
        return None
    workers, ahead = (made.select("workers", "ahead").max()).row(0)
    begins = np.searchsorted(steps["id"].to_numpy(), iterators_with_segments(run)["segment"])
    # The first batch of each worker is late because the worker has just begun.
    number = np.arange(steps.height)
    begins = np.unique(np.append(begins, 0))
    place = number - begins[np.searchsorted(begins, number, side="right") - 1]
    waits = np.maximum(steps["data_wait"].to_numpy() - USUAL_READY_BATCH_FETCH_NS, 0)
    waits[place < workers] = 0
    whole = steps["duration"].to_numpy() - steps["recording"].to_numpy()
    late = np.flatnonzero(waits > MIN_EXPOSED_LOADING_SHARE * whole)
    return RunDelivery(
        delivery_of_waits(late, waits[late], ahead or DEFAULT_BATCHES_AHEAD_PER_WORKER * workers),
        float(waits.sum() / max(int(whole.sum()), 1)),
        steps.height,
        late.size,
    )


def delivery_of_waits(late: Ints, waits: Floats | Ints, ahead: int) -> Delivery:
    """Returns how workers deliver; `late` has the numbers of the steps that waited, in order.

    `waits` is how long they did, `ahead` the number of batches that may be ready. The first wait
    comes after an unknown number of steps, and tells nothing.
    """
    if late.size < 2:
        return "unknown"
    is_after_rest = np.diff(late) > ahead
    uneven, slow = waits[1:][is_after_rest].sum(), waits[1:][~is_after_rest].sum()
    return "uneven" if uneven > slow else "too slow"


def recorded_delivery(
    trace: Trace, late_steps: list[int], waiting_shares: tuple[float, ...]
) -> Delivery:
    """Returns how workers delivered in the recorded steps, or over the run if its ledger tells."""
    workers = WorkerCoreUse.from_facts(trace.facts)
    if workers is not None and workers.are_always_busy:
        return "too slow"
    over_run = run_delivery(trace)
    if over_run is not None and over_run.delivery != "unknown":
        return over_run.delivery
    late = np.array(late_steps, np.int64)
    known = _batches_ahead(trace, workers)
    delivery = delivery_of_waits(
        late,
        np.array([waiting_shares[step] for step in late_steps]),
        DEFAULT_BATCHES_AHEAD_PER_WORKER if known is None else known,
    )
    # Where the queue's length is not known, a wait after more steps may be either.
    return "unknown" if known is None and delivery == "uneven" else delivery


def _batches_ahead(trace: Trace, workers: WorkerCoreUse | None) -> int | None:
    """Returns how many batches workers may make ahead of the loop; None if it was not recorded."""
    tables = loader_worker_tables(trace)
    if tables is not None:
        each = tables.loaders.select(pl.col("workers") * pl.col("prefetch_factor")).to_series()
        if each.drop_nulls().len():
            return int(each.drop_nulls().to_numpy().max())
    if workers is None:
        return None
    made = trace.run.iterators["ahead"].drop_nulls()
    if made.len():
        return int(made.to_numpy().max())
    return DEFAULT_BATCHES_AHEAD_PER_WORKER * workers.worker_count


def iterators_of_step_loop(run: Run) -> pl.DataFrame:
    """Returns the iterators of DataLoaders that the steps with waits most likely waited for.

    Those made where the loop of these steps begins; else, where the first was made: a loader for
    evaluation has iterators of its own, mostly more of them.
    """
    waits = run.segments.filter(pl.col("kind").is_not_null()).slice(1)
    waited = waits.group_by(pl.col("kind").cast(pl.String)).agg(pl.col("data_wait").sum())
    if not waited.height:
        return run.iterators.clear()
    kind = waited.sort("data_wait", "kind", descending=True)["kind"][0]
    file, line = run.loop_lines.get(kind, ("", 0))
    at_loop = run.iterators.filter((pl.col("file") == file) & (pl.col("line") == line))
    if at_loop.height:
        return at_loop
    first = [pl.col(name).eq_missing(pl.col(name).first()) for name in ("file", "line")]
    return run.iterators.filter(*first)
