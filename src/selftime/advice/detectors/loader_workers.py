"""Reads what was measured in DataLoader workers; predicts step times with more workers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from selftime.advice.detectors.exposed_loading import DataLoadingTimes
from selftime.advice.detectors.recorded_facts import WorkerCoreUse, available_cores
from selftime.advice.rule_definition import Evidence, Where
from selftime.analysis.data_loader_workers import loader_worker_tables
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.trace import Trace
from selftime.units import whole_percent_text

USUAL_READY_BATCH_FETCH_MS: Final = 1.0
"""Usual time of `next` on a DataLoader, in ms, if the batch is ready; 0.1 to 1.9 ms were
recorded."""

BATCH_HAND_OVER_MS: Final = 0.75
"""Time of two processes for the hand-over of a batch by a worker, in ms, without its tensors."""

TENSOR_HAND_OVER_MS: Final = 0.09
"""The same for each tensor of the batch, in ms, on a CPU that does nothing else: `python
benchmarks/hand_over.py` measures both. On a virtual machine whose system calls are slow and whose
cores others used they were 1.4 and 0.75 ms."""

ASSUMED_LOADER_WORKERS: Final = 4
"""Assumed number of workers if the number of CPU cores is not recorded."""

MAX_RECOMMENDED_WORKERS: Final = 8
"""Largest number of workers that is recommended without a measurement."""

MIN_STEP_SHARE_SAVED_PER_WORKER: Final = 0.02
"""Smallest share of the step that an additional worker must save to be recommended."""

MIN_WORKER_STACK_SAMPLES: Final = 10
"""Smallest number of stack samples of the workers from which a finding names a line."""
MAX_BUSY_SHARE_OF_IDLE_WORKERS: Final = 0.5
"""Share of their time below which busy workers do not limit the step."""
MIN_CPU_SHARE_OF_COMPUTING_WORKERS: Final = 0.5
"""Smallest share of CPU time in the workers' busy time; below it they mostly wait, as for
storage."""
RECORD_WORKERS_HINT: Final = (
    "`selftime run --workers` records which line of the workers takes the time."
)
"""Sentence that says how to record the workers' stacks, if the recording lacks them."""


@dataclass(frozen=True, slots=True)
class StepTimePrediction:
    """The predicted duration of a step, in ms, if a DataLoader has the given number of workers."""

    likely_ms: float
    """The likely duration of the step in ms."""
    shortest_ms: float
    """Shortest duration of the step in ms: if loading only waits and needs no CPU core."""
    worker_count: int
    """Number of DataLoader workers that the prediction assumes."""
    is_core_count_known: bool
    """Whether the recording contains the number of CPU cores."""


def batch_hand_over_ms(facts: Mapping[str, Any]) -> float:
    """Returns how long `next` takes in ms if a worker has the batch ready, by its tensors.

    The usual time if the recording does not tell how many there are.
    """
    tensors = facts.get("batch_tensors")
    if type(tensors) is not int or tensors < 1:
        return USUAL_READY_BATCH_FETCH_MS
    return BATCH_HAND_OVER_MS + TENSOR_HAND_OVER_MS * tensors


def predict_step_with_workers(
    loading: DataLoadingTimes, facts: Mapping[str, Any]
) -> StepTimePrediction:
    """Returns the predicted step time if workers, not the main thread, load the data."""
    rest = loading.step_without_loading_ms
    cores, threads = available_cores(facts), facts.get("threads")
    fetch = batch_hand_over_ms(facts)
    if cores is None:
        best = max(rest, loading.total_ms / ASSUMED_LOADER_WORKERS) + fetch
        workers = (
            _worker_count_to_hide_waits(loading)
            if _is_loading_mostly_waiting(loading)
            else ASSUMED_LOADER_WORKERS
        )
        return StepTimePrediction(best, best, workers, is_core_count_known=False)
    busy = min(threads, cores) if isinstance(threads, int) and not loading.has_device else 1
    computing = (busy * rest + loading.total_ms - loading.waiting_ms) / cores

    def step_ms_with(workers: int) -> float:
        return max(rest, loading.total_ms / workers, computing) + fetch

    workers = (
        _worker_count_to_hide_waits(loading)
        if _is_loading_mostly_waiting(loading)
        else _sufficient_worker_count(step_ms_with, cores)
    )
    likely = step_ms_with(workers)
    best = max(rest, loading.total_ms / max(workers, ASSUMED_LOADER_WORKERS)) + fetch
    return StepTimePrediction(likely, min(best, likely), workers, is_core_count_known=True)


def reason_workers_save_nothing(loading: DataLoadingTimes, facts: Mapping[str, Any]) -> str:
    """Returns why no worker process would shorten a step that loads data on the main thread."""
    loads = f"data loading takes {whole_percent_text(loading.exposed_share)} of each step"
    if batch_hand_over_ms(facts) < loading.exposed_ms:
        return f"{loads}; no core is free for workers"
    tensors = facts.get("batch_tensors")
    return f"{loads}; to hand over a batch of {tensors} tensors takes a worker as long"


def predict_step_with_more_workers(
    loading: DataLoadingTimes, workers: WorkerCoreUse, facts: Mapping[str, Any]
) -> StepTimePrediction:
    """Returns the predicted step time if a DataLoader with too few workers had enough of them.

    The present workers are taken to be always busy: a batch takes as many steps as there are
    workers, and computes for the share of that in which they want a core.
    """
    total = workers.worker_count * loading.step_ms
    demand = 1.0 if workers.core_demand_share is None else workers.core_demand_share
    waiting = (1.0 - demand) * total
    return predict_step_with_workers(replace(loading, total_ms=total, waiting_ms=waiting), facts)


def _is_loading_mostly_waiting(loading: DataLoadingTimes) -> bool:
    """Returns whether more than half of the loading time is waiting, for example for storage."""
    return loading.waiting_ms > loading.total_ms / 2


def _worker_count_to_hide_waits(loading: DataLoadingTimes) -> int:
    """Returns how many workers hide data loading that mostly waits for storage, not for cores."""
    hiding = math.ceil(
        loading.total_ms / max(loading.step_without_loading_ms, USUAL_READY_BATCH_FETCH_MS)
    )
    return max(ASSUMED_LOADER_WORKERS, min(MAX_RECOMMENDED_WORKERS, hiding))


def _sufficient_worker_count(step_ms: Any, cores: float) -> int:
    """Returns the fewest workers with which a step is at most 2 % longer than with the most.

    At most one per core.
    """
    most = max(1, min(MAX_RECOMMENDED_WORKERS, int(cores)))
    best = step_ms(most)
    return next(
        count
        for count in range(1, most + 1)
        if step_ms(count) <= (1 + MIN_STEP_SHARE_SAVED_PER_WORKER) * best
    )


@dataclass(frozen=True, slots=True)
class LoaderWorkerLine:
    """The function in which workers spend most time in a phase of loading, and its slowest line."""

    where: Where
    share: float
    """Share of the workers' busy time in the function, 0 to 1."""
    line_share: float
    """Share of the function's time in its slowest line, 0 to 1."""
    per_sample_ms: float | None
    """The function's time per sample in ms; None if unknown."""


@dataclass(frozen=True, slots=True)
class LoaderWorkerRecord:
    """What was measured in one DataLoader's workers: shares of time, counts, and times in ms."""

    busy_share: float
    """Share of the workers' time in which they do not wait for a request, 0 to 1."""
    computing_share: float
    """CPU time of the workers' main threads as a share of their busy time."""
    collating_share: float
    """Share of the workers' busy time spent collating samples into batches."""
    sending_share: float
    """Share of all the workers' time in which their queue threads serialise and send batches."""
    mean_ready_batches: float | None
    """Mean number of batches that were ready when a measured step took one; None if unknown."""
    batch_ms: float
    """Time that one worker takes to make a batch, in ms."""
    sample_line: LoaderWorkerLine | None
    """Function that takes most time in making samples; None if unknown."""
    collation_line: LoaderWorkerLine | None
    """Function that takes most time in collating samples; None if unknown."""
    slowest_sample_ms: float | None
    """Time of the slowest sample, in ms; None if unknown."""

    @property
    def are_mostly_idle(self) -> bool:
        """Returns whether workers are busy for less than half of their time."""
        return self.busy_share < MAX_BUSY_SHARE_OF_IDLE_WORKERS

    @property
    def wait_for_other_than_core(self) -> bool:
        """Returns whether workers use the CPU for less than half of their busy time.

        Then they wait for something else, such as storage.
        """
        return self.computing_share < MIN_CPU_SHARE_OF_COMPUTING_WORKERS

    @property
    def slowest_line(self) -> LoaderWorkerLine | None:
        """The function and line that take most of the workers' time; None if unknown."""
        places = [place for place in (self.sample_line, self.collation_line) if place is not None]
        return max(places, key=lambda place: place.share, default=None)

    def worker_evidence(self) -> tuple[Evidence, ...]:
        """Returns the workers' recorded shares of time and counts as evidence for a finding."""
        place = self.slowest_line
        told = [
            Evidence("share of the workers' time in which they are busy", self.busy_share, "ratio")
        ]
        if place is not None:
            line = f"share of worker time in `{place.where.function}`"
            told.append(Evidence(line, place.share, "ratio"))
            told.append(
                Evidence(
                    f"share of that time in line {place.where.line}", place.line_share, "ratio"
                )
            )
            if place.per_sample_ms is not None:
                told.append(Evidence("time in that function per sample", place.per_sample_ms, "ms"))
        told.append(
            Evidence(
                "share of the workers' busy time spent collating samples",
                self.collating_share,
                "ratio",
            )
        )
        told.append(
            Evidence("share of the workers' busy time on the CPU", self.computing_share, "ratio")
        )
        if self.mean_ready_batches is not None:
            told.append(
                Evidence(
                    "mean number of ready batches in the queue", self.mean_ready_batches, "count"
                )
            )
        return tuple(told)


@cached_per_trace
def loader_worker_record(trace: Trace) -> LoaderWorkerRecord | None:
    """Returns what was measured in the workers that served the measured steps; None if nothing."""
    tables = loader_worker_tables(trace)
    if tables is None:
        return None
    batches = _batches_of_counted_steps(trace)
    loader = _loader_number_with_most_batches(tables.processes, batches)
    own = tables.processes.filter(pl.col("loader") == loader)
    total = {name: int(own[name].sum()) for name in own.columns}
    work = total["making"] + total["collating"] + total["putting"]
    if not work or not total["batches"]:
        return None
    ready = batches.filter(pl.col("loader") == loader)["ready"].drop_nulls()
    longest = own["longest"].drop_nulls()
    lines = trace.view("workers").filter(pl.col("loader") == loader)
    return LoaderWorkerRecord(
        busy_share=work / (work + total["waiting"]),
        computing_share=min(1.0, total["cpu"] / work),
        collating_share=total["collating"] / work,
        sending_share=(total["serialising"] + total["sending"]) / max(total["lived"], 1),
        mean_ready_batches=float(ready.to_numpy().mean()) if ready.len() else None,
        batch_ms=work / total["batches"] / 1e6,
        sample_line=_slowest_line_of_part(lines, "samples", work),
        collation_line=_slowest_line_of_part(lines, "collate", work),
        slowest_sample_ms=max(longest.to_list()) / 1e6 if longest.len() else None,
    )


def _batches_of_counted_steps(trace: Trace) -> pl.DataFrame:
    """Returns the rows of the view `worker_batches` for batches taken in the measured steps."""
    batches = trace.view("worker_batches").drop_nulls("taken")
    within = is_instant_in_windows(batches["taken"].to_numpy(), counted_step_windows(trace))
    return batches.filter(pl.Series(within, dtype=pl.Boolean))


def _loader_number_with_most_batches(processes: pl.DataFrame, batches: pl.DataFrame) -> int:
    """Returns the number of the DataLoader that made most batches, or else worked longest."""
    if batches.height:
        counts = batches.group_by("loader").len().sort("len", "loader")
        return int(counts["loader"][-1])
    work = processes.group_by("loader").agg(pl.col("making").sum()).sort("making", "loader")
    return int(work["loader"][-1])


def _slowest_line_of_part(lines: pl.DataFrame, part: str, work_ns: int) -> LoaderWorkerLine | None:
    """Returns the slowest user function and line in one phase of loading; None if unknown.

    None with too few stack samples.
    """
    same = lines.filter((pl.col("part") == part) & pl.col("line").is_not_null())
    own = same.filter("own")
    if not own.height or int(same["seen"].sum()) < MIN_WORKER_STACK_SAMPLES:
        return None
    functions = own.group_by("file", "function").agg(pl.col("time").sum())
    file, function, time = functions.sort("time", "file", "function").row(-1)
    told = own.filter((pl.col("file") == file) & (pl.col("function") == function))
    best = told.sort("time", "line").row(-1, named=True)
    samples = best["samples"]
    return LoaderWorkerLine(
        where=Where(file, best["line"], function, "stack"),
        share=min(1.0, time / work_ns),
        line_share=best["time"] / time if time else 0.0,
        per_sample_ms=time / samples / 1e6 if samples else None,
    )
