"""Converts the measurements of DataLoader workers and batch arrivals to JSON columns."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from selftime.capture.workers.batch_arrivals import (
    BatchArrival,
    BatchArrivals,
    LoaderIterator,
    PinningTimes,
)
from selftime.capture.workers.clock_offset import ClockReading
from selftime.capture.workers.worker_times import (
    WorkerBatch,
    WorkerBatchSums,
    WorkerLine,
    WorkerPhase,
)

_FIELDS_SUMMED_OVER_PROCESSES: Final = tuple(
    name for name in WorkerBatchSums.__slots__ if name not in {"lines", "longest"}
)

_FACT_NUMBER_BY_PHASE: Final = {WorkerPhase.SAMPLES: 0, WorkerPhase.COLLATE: 1}
"""Maps each phase whose source lines are recorded to its number in the JSON."""

Json = dict[str, Any]


def worker_facts(
    files: Iterable[Json], arrivals: BatchArrivals, origin_ns: int, clock: ClockReading
) -> Json:
    """Returns all measurements of DataLoader workers as columns; times are ns since `origin_ns`.

    Args:
        files: Contents of the workers' files.
        arrivals: What the main process recorded.
        origin_ns: Origin of the times.
        clock: Offset from the shared counter to the system clock.
    """
    iterators = tuple(arrivals.iterators)
    loaders: dict[tuple[Any, ...], list[LoaderIterator]] = {}
    for iterator in iterators:
        loaders.setdefault(iterator.loader, []).append(iterator)
    loader_of_iterator = {
        iterator.number: list(loaders).index(iterator.loader) for iterator in iterators
    }
    iterator_of_process = {pid: iterator.number for iterator in iterators for pid in iterator.pids}
    known_files = [file for file in files if file["pid"] in iterator_of_process]
    files_by_worker: dict[tuple[int, int], list[Json]] = {}
    for file in known_files:
        loader = loader_of_iterator[iterator_of_process[file["pid"]]]
        files_by_worker.setdefault((loader, file["worker"]), []).append(file)
    return {
        "clock": {"zero_ns": origin_ns + clock.offset_ns, "error_ns": clock.error_ns},
        "loaders": [_loader_settings(same_loader) for same_loader in loaders.values()],
        "processes": [
            _time_sums_of_worker(*slot, worker_files)
            for slot, worker_files in sorted(files_by_worker.items())
        ],
        "lines": _columns_of_line_times(dict(sorted(files_by_worker.items()))),
        "batches": _columns_of_recent_batches(
            known_files, iterator_of_process, loader_of_iterator, tuple(arrivals.recent), origin_ns
        ),
        "pinning": _pinning_times_as_json(arrivals.pinning),
    }


def _loader_settings(iterators: Sequence[LoaderIterator]) -> Json:
    """Returns a DataLoader's settings as JSON values, read from its last iterator."""
    last = iterators[-1]
    return {
        "dataset": last.dataset,
        "workers": last.workers,
        "prefetch_factor": last.prefetch,
        "batch_size": last.batch_size,
        "pin_memory": last.pin_memory,
        "persistent_workers": last.persistent_workers,
        "start_method": last.start_method,
        "iterators": len(iterators),
    }


def _time_sums_of_worker(loader: int, worker: int, files: Sequence[Json]) -> Json:
    """Returns the summed times in ns of one worker number, over all its successive processes."""
    last = files[-1]
    part = _key_of_sums_to_use(files)
    return {
        "loader": loader,
        "worker": worker,
        "pid": last["pid"],
        "processes": len(files),
        "threads": last["threads"],
        "cores": last["cores"],
        "failed": sum(file["failed"] for file in files),
        "lived": sum(file["written"] - file["began"] for file in files),
        "first_batch": max(file["first"]["making"] + file["first"]["collating"] for file in files),
        **{name: sum(file[part][name] for file in files) for name in _FIELDS_SUMMED_OVER_PROCESSES},
        "longest": max(file[part]["longest"] for file in files) or None,
    }


def _key_of_sums_to_use(files: Sequence[Json]) -> str:
    """Returns the key of the sums to use: `rest` (without first batches) if any, else `first`."""
    return "rest" if any(file["rest"]["batches"] for file in files) else "first"


def _columns_of_line_times(files_by_worker: dict[tuple[int, int], list[Json]]) -> Json:
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    rows: list[tuple[int, ...]] = []
    for place, worker_files in enumerate(files_by_worker.values()):
        part = _key_of_sums_to_use(worker_files)
        sums: dict[WorkerLine, list[int]] = {}
        for worker_file in worker_files:
            for phase, file, line, function, own, *times in worker_file[part]["lines"]:
                key = WorkerLine(phase, file, line, function, own)
                before = sums.get(key, [0, 0, 0])
                sums[key] = [old + new for old, new in zip(before, times, strict=True)]
        for key, times in sorted(sums.items(), key=lambda row: (-row[1][0], row[0])):
            file = files.setdefault(key.file, len(files))
            function = functions.setdefault(key.function, len(functions))
            phase = _FACT_NUMBER_BY_PHASE[WorkerPhase(key.phase)]
            rows.append((place, phase, file, key.line, function, int(key.own), *times))
    names = ("process", "part", "file", "line", "function", "own", "self", "total", "seen")
    return {"files": list(files), "functions": list(functions), **_columns_by_name(names, rows)}


def _columns_of_recent_batches(
    worker_files: Sequence[Json],
    iterator_of_process: dict[int, int],
    loaders: dict[int, int],
    arrivals: Sequence[BatchArrival],
    origin_ns: int,
) -> Json:
    arrival_by_batch = {
        (arrival.iterator, arrival.epoch, arrival.number): arrival for arrival in arrivals
    }
    rows = []
    for worker_file in worker_files:
        iterator = iterator_of_process[worker_file["pid"]]
        for batch in (WorkerBatch(*row) for row in worker_file["recent"]):
            arrival = arrival_by_batch.get((iterator, batch.epoch, batch.number))
            collating = batch.collating
            rows.append(
                (
                    loaders[iterator],
                    worker_file["worker"],
                    batch.number,
                    batch.started - batch.requested,
                    batch.started - origin_ns,
                    None if collating is None else collating - origin_ns,
                    batch.made - origin_ns,
                    batch.put - origin_ns,
                    batch.cpu,
                    batch.samples,
                    batch.longest,
                    None if arrival is None else arrival.time - origin_ns,
                    None if arrival is None else arrival.ready,
                )
            )
    names = ("loader", "worker", "index", "waited", "begun", "joined", "made", "put", "cpu")
    rows.sort(key=lambda row: (row[4], row[:3]))
    return _columns_by_name((*names, "samples", "longest", "taken", "ready"), rows)


def _columns_by_name(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Json:
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def _pinning_times_as_json(pinning: PinningTimes) -> Json | None:
    return (
        {"batches": pinning.batch_count, "time": pinning.time_ns} if pinning.batch_count else None
    )
