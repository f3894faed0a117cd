"""What the workers of the loader that the steps wait for recorded of themselves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from selftime.advice.base import Evidence, Where
from selftime.advice.detectors.loading import Loading
from selftime.advice.detectors.recorded_facts import Workers, cores_of
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.loader_workers import worker_tables
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.trace import Trace

HAND_OVER_MS: Final = 1.0
"""What `next` takes when the batch is ready: 0.1 to 1.9 ms on recorded loops."""

USUAL_WORKERS: Final = 4
"""Workers to assume where the machine's cores are not known."""

MOST_WORKERS: Final = 8
"""More are not recommended without a measurement."""

WORTH: Final = 0.02
"""A further worker must take this share off the step."""

FEWEST_SEEN: Final = 10
"""Looks at a part below which no line of it is named: of ten, a share is off by up to a sixth."""
RESTING: Final = 0.5
"""Workers that wait so much of their time for an index are not what is slow."""
COMPUTING: Final = 0.5
"""Workers with less CPU time than that wait for storage, a lock or another process."""
RECORD_WORKERS: Final = "`selftime run --workers` tells which line of the workers takes the time."
"""What to add where that was not recorded."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The step with workers, in ms: if loading computes all the time, and if it only waits."""

    likely: float
    best: float
    workers: int
    cores_known: bool


def without_waiting(loading: Loading, facts: Mapping[str, Any]) -> Prediction:
    """The step of a loop that loads by itself, with the workers that its machine has cores for."""
    rest = loading.rest
    cores, threads = cores_of(facts), facts.get("threads")
    if cores is None:
        best = max(rest, loading.total / USUAL_WORKERS) + HAND_OVER_MS
        workers = _hiding(loading) if _waits(loading) else USUAL_WORKERS
        return Prediction(best, best, workers, cores_known=False)
    busy = min(threads, cores) if isinstance(threads, int) and not loading.has_device else 1
    computing = (busy * rest + loading.total - loading.waiting) / cores

    def step(workers: int) -> float:
        return max(rest, loading.total / workers, computing) + HAND_OVER_MS

    workers = _hiding(loading) if _waits(loading) else _enough(step, cores)
    likely = step(workers)
    best = max(rest, loading.total / max(workers, USUAL_WORKERS)) + HAND_OVER_MS
    return Prediction(likely, min(best, likely), workers, cores_known=True)


def more_workers(loading: Loading, workers: Workers, facts: Mapping[str, Any]) -> Prediction:
    """The step of a loop whose workers are too slow, with as many as it takes.

    Those there are never rest but to wait for storage: a batch takes as many steps as there are
    workers, and computes for as much of that as they ask for a core.
    """
    total = workers.count * loading.step
    demand = 1.0 if workers.demand is None else workers.demand
    waiting = (1.0 - demand) * total
    return without_waiting(replace(loading, total=total, waiting=waiting), facts)


def _waits(loading: Loading) -> bool:
    return loading.waiting > loading.total / 2


def _hiding(loading: Loading) -> int:
    """Workers that hide loading which waits: these need no core."""
    hiding = math.ceil(loading.total / max(loading.rest, HAND_OVER_MS))
    return max(USUAL_WORKERS, min(MOST_WORKERS, hiding))


def _enough(step: Any, cores: float) -> int:
    """The fewest workers beyond which another gains nothing worth it; at most one a core."""
    most = max(1, min(MOST_WORKERS, int(cores)))
    best = step(most)
    return next(count for count in range(1, most + 1) if step(count) <= (1 + WORTH) * best)


@dataclass(frozen=True, slots=True)
class Place:
    """The own function that takes most of a part, at its heaviest line."""

    where: Where
    share: float
    """Of the workers' work, in the function."""
    line_share: float
    """Of that, in the line."""
    per_sample_ms: float | None


@dataclass(frozen=True, slots=True)
class Inside:
    """Shares are of the work of all workers of one loader: all of their time but waiting."""

    busy: float
    """Of the workers' time, what they do not wait to be asked for a batch."""
    computing: float
    """CPU time of their main threads by the time of their work."""
    collating: float
    sending: float
    """Of all their time, what the threads of their queues serialise and send."""
    ready: float | None
    """Batches that were ready when the loop took one, on average over the steps that count."""
    batch_ms: float
    """Work of one worker for a batch."""
    sample: Place | None
    collation: Place | None
    longest_ms: float | None
    """The sample that took longest."""

    @property
    def rest(self) -> bool:
        return self.busy < RESTING

    @property
    def wait(self) -> bool:
        """Whether they wait for something else than a core."""
        return self.computing < COMPUTING

    @property
    def place(self) -> Place | None:
        """Where most of the work is."""
        places = [place for place in (self.sample, self.collation) if place is not None]
        return max(places, key=lambda place: place.share, default=None)

    def evidence(self) -> tuple[Evidence, ...]:
        place = self.place
        told = [Evidence("share of time that workers are busy", self.busy, "ratio")]
        if place is not None:
            line = f"share of worker time in `{place.where.function}`"
            told.append(Evidence(line, place.share, "ratio"))
            told.append(Evidence(f"of that in line {place.where.line}", place.line_share, "ratio"))
            if place.per_sample_ms is not None:
                told.append(Evidence("time there for a sample", place.per_sample_ms, "ms"))
        told.append(Evidence("share of worker time that collates samples", self.collating, "ratio"))
        told.append(Evidence("share of worker time on the CPU", self.computing, "ratio"))
        if self.ready is not None:
            told.append(Evidence("batches ready in the queue, on average", self.ready, "count"))
        return tuple(told)


@cached_per_trace
def inside(trace: Trace) -> Inside | None:
    """The record of the loader whose batches the steps take; None if there is none."""
    tables = worker_tables(trace)
    if tables is None:
        return None
    batches = _taken_in_steps(trace)
    loader = _loader(tables.processes, batches)
    own = tables.processes.filter(pl.col("loader") == loader)
    total = {name: int(own[name].sum()) for name in own.columns}
    work = total["making"] + total["collating"] + total["putting"]
    if not work or not total["batches"]:
        return None
    ready = batches.filter(pl.col("loader") == loader)["ready"].drop_nulls()
    longest = own["longest"].drop_nulls()
    lines = trace.view("workers").filter(pl.col("loader") == loader)
    return Inside(
        busy=work / (work + total["waiting"]),
        computing=min(1.0, total["cpu"] / work),
        collating=total["collating"] / work,
        sending=(total["serialising"] + total["sending"]) / max(total["lived"], 1),
        ready=float(ready.to_numpy().mean()) if ready.len() else None,
        batch_ms=work / total["batches"] / 1e6,
        sample=_place(lines, "samples", work),
        collation=_place(lines, "collate", work),
        longest_ms=max(longest.to_list()) / 1e6 if longest.len() else None,
    )


def _taken_in_steps(trace: Trace) -> pl.DataFrame:
    """Batches that the loop took in the steps that count."""
    batches = trace.view("worker_batches").drop_nulls("taken")
    within = is_within(batches["taken"].to_numpy(), counted_windows(trace))
    return batches.filter(pl.Series(within, dtype=pl.Boolean))


def _loader(processes: pl.DataFrame, batches: pl.DataFrame) -> int:
    """The one whose batches were taken in the steps, else the one that had most to do."""
    if batches.height:
        counts = batches.group_by("loader").len().sort("len", "loader")
        return int(counts["loader"][-1])
    work = processes.group_by("loader").agg(pl.col("making").sum()).sort("making", "loader")
    return int(work["loader"][-1])


def _place(lines: pl.DataFrame, part: str, work: int) -> Place | None:
    same = lines.filter((pl.col("part") == part) & pl.col("line").is_not_null())
    own = same.filter("own")
    if not own.height or int(same["seen"].sum()) < FEWEST_SEEN:
        return None
    functions = own.group_by("file", "function").agg(pl.col("time").sum())
    file, function, time = functions.sort("time", "file", "function").row(-1)
    told = own.filter((pl.col("file") == file) & (pl.col("function") == function))
    best = told.sort("time", "line").row(-1, named=True)
    samples = best["samples"]
    return Place(
        where=Where(file, best["line"], function, "stack"),
        share=min(1.0, time / work),
        line_share=best["time"] / time if time else 0.0,
        per_sample_ms=time / samples / 1e6 if samples else None,
    )
