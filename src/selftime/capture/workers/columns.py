"""What workers and the main process told, as columns of the fact `workers`."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from selftime.capture.workers.batch_arrivals import Iterator, Pinning, Taken, Takes
from selftime.capture.workers.clock import Reading
from selftime.capture.workers.tally import Batch, Line, Phase, Times

_SUMS: Final = tuple(name for name in Times.__slots__ if name not in {"lines", "longest"})

_PHASES: Final = {Phase.SAMPLES: 0, Phase.COLLATE: 1}
"""What lines are told of, as the facts number it."""

Told = dict[str, Any]


def told_as_columns(files: Iterable[Told], takes: Takes, zero: int, clock: Reading) -> Told:
    """Instants are told from `zero`, an instant of the shared counter.

    `clock` leads from that counter to the system's clock.
    """
    iterators = tuple(takes.iterators)
    loaders: dict[tuple[Any, ...], list[Iterator]] = {}
    for iterator in iterators:
        loaders.setdefault(iterator.loader, []).append(iterator)
    number = {iterator.number: list(loaders).index(iterator.loader) for iterator in iterators}
    made_by = {pid: iterator.number for iterator in iterators for pid in iterator.pids}
    known = [told for told in files if told["pid"] in made_by]
    slots: dict[tuple[int, int], list[Told]] = {}
    for told in known:
        slots.setdefault((number[made_by[told["pid"]]], told["worker"]), []).append(told)
    return {
        "clock": {"zero_ns": zero + clock.offset, "error_ns": clock.error},
        "loaders": [_loader(same) for same in loaders.values()],
        "processes": [_process(*slot, told) for slot, told in sorted(slots.items())],
        "lines": _lines(dict(sorted(slots.items()))),
        "batches": _batches(known, made_by, number, tuple(takes.recent), zero),
        "pinning": _pinning(takes.pinning),
    }


def _loader(iterators: Sequence[Iterator]) -> Told:
    """How a loader is set, by the last iterator over it."""
    last = iterators[-1]
    return {
        "dataset": last.dataset,
        "workers": last.workers,
        "prefetch_factor": last.prefetch,
        "batch_size": last.batch_size,
        "pin_memory": last.pinned,
        "persistent_workers": last.persistent,
        "start_method": last.start,
        "iterators": len(iterators),
    }


def _process(loader: int, worker: int, told: Sequence[Told]) -> Told:
    """All processes that were the same worker of a loader, one after the other."""
    last = told[-1]
    part = _part(told)
    return {
        "loader": loader,
        "worker": worker,
        "pid": last["pid"],
        "processes": len(told),
        "threads": last["threads"],
        "cores": last["cores"],
        "failed": sum(one["failed"] for one in told),
        "lived": sum(one["told"] - one["began"] for one in told),
        "first_batch": max(one["first"]["making"] + one["first"]["collating"] for one in told),
        **{name: sum(one[part][name] for one in told) for name in _SUMS},
        "longest": max(one[part]["longest"] for one in told) or None,
    }


def _part(told: Sequence[Told]) -> str:
    """What counts of a worker: all but first batches, unless there are no others."""
    return "rest" if any(one["rest"]["batches"] for one in told) else "first"


def _lines(slots: dict[tuple[int, int], list[Told]]) -> Told:
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    rows: list[tuple[int, ...]] = []
    for place, told in enumerate(slots.values()):
        part = _part(told)
        sums: dict[Line, list[int]] = {}
        for one in told:
            for phase, file, line, function, own, *times in one[part]["lines"]:
                key = Line(phase, file, line, function, own)
                before = sums.get(key, [0, 0, 0])
                sums[key] = [old + new for old, new in zip(before, times, strict=True)]
        for key, times in sorted(sums.items(), key=lambda row: (-row[1][0], row[0])):
            file = files.setdefault(key.file, len(files))
            function = functions.setdefault(key.function, len(functions))
            phase = _PHASES[Phase(key.phase)]
            rows.append((place, phase, file, key.line, function, int(key.own), *times))
    names = ("process", "part", "file", "line", "function", "own", "self", "total", "seen")
    return {"files": list(files), "functions": list(functions), **_columns(names, rows)}


def _batches(
    told: Sequence[Told],
    made_by: dict[int, int],
    loaders: dict[int, int],
    taken: Sequence[Taken],
    zero: int,
) -> Told:
    when = {(take.iterator, take.epoch, take.number): take for take in taken}
    rows = []
    for one in told:
        iterator = made_by[one["pid"]]
        for batch in (Batch(*row) for row in one["recent"]):
            take = when.get((iterator, batch.epoch, batch.number))
            joined = batch.collating
            rows.append(
                (
                    loaders[iterator],
                    one["worker"],
                    batch.number,
                    batch.begun - batch.asked,
                    batch.begun - zero,
                    None if joined is None else joined - zero,
                    batch.made - zero,
                    batch.put - zero,
                    batch.cpu,
                    batch.samples,
                    batch.longest,
                    None if take is None else take.time - zero,
                    None if take is None else take.ready,
                )
            )
    names = ("loader", "worker", "index", "waited", "begun", "joined", "made", "put", "cpu")
    rows.sort(key=lambda row: (row[4], row[:3]))
    return _columns((*names, "samples", "longest", "taken", "ready"), rows)


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Told:
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def _pinning(pinning: Pinning) -> Told | None:
    return {"batches": pinning.batches, "time": pinning.time} if pinning.batches else None
