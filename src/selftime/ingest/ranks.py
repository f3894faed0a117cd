"""The place of each trace of a folder in its job: its rank, how it is known, and what is odd.

The rank is what the header tells, else the name of the file, else that of a folder, else the one
rank that is in all of the process groups. Traces that follow each other in one process are windows
of one rank.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, pairwise
from pathlib import PurePath
from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.ingest.text.header import groups_of, rank_of, world_size_of
from selftime.trace import Member, Trace

__all__ = ["members_of"]

_MOST_NAMED: Final = 8
"""Ranks or files that one sentence names."""
_FILE: Final = ".pt.trace.json"
"""How names end that TensorBoard's handler gives: `worker.1700000000000.pt.trace.json`."""


class _Found(NamedTuple):
    """What one trace tells of its place."""

    path: str
    run: str
    """The folder of its job."""
    rank: int | None
    size: int | None
    known_by: str
    axes: str | None


def members_of(traces: Mapping[str, Trace], root: str) -> tuple[dict[str, Member], tuple[str, ...]]:
    """The place of each trace, and one sentence for each thing that is odd.

    Args:
        traces: The traces of a folder, by path.
        root: The folder: what stands in the path before it tells no rank.
    """
    runs: defaultdict[str, list[_Found]] = defaultdict(list)
    for path, trace in traces.items():
        found = _found(path, trace, root)
        runs[found.run].append(found)
    members: dict[str, Member] = {}
    notes: list[str] = []
    for run in runs.values():
        members |= _labelled(run, traces)
        if any(_is_of_several(found, traces[found.path]) for found in run):
            notes += _odd(run, members)
    return {path: members[path] for path in traces}, tuple(notes)


def _found(path: str, trace: Trace, root: str) -> _Found:
    below = PurePath(path.removeprefix(root).lstrip("/\\") or PurePath(path).name)
    folders = [(part, names.rank_in_path(part)) for part in below.parts[:-1]]
    run = "/".join("" if rank is not None else part for part, rank in folders)
    told = [
        ("header", rank_of(trace.metadata)),
        ("file name", names.rank_in_path(below.name)),
        *(("folder", rank) for _, rank in reversed(folders)),
        ("process groups", _of_all(groups_of(trace.metadata))),
    ]
    known = ((how, rank) for how, rank in told if rank is not None)
    how, rank = next(known, ("", None))
    size = world_size_of(trace.metadata)
    possible = size is not None and size > (rank or 0)
    return _Found(path, run, rank, size if possible else None, how, names.axes_in_path(below.name))


def _of_all(groups: list[set[int]]) -> int | None:
    """The one rank that is in every group, as a process lists only groups that it is in."""
    common = set.intersection(*groups) if groups else set()
    return common.pop() if len(common) == 1 else None


def _is_of_several(found: _Found, trace: Trace) -> bool:
    """Whether a trace is of one of several processes."""
    if found.size is not None:
        return found.size > 1
    return found.rank is not None or found.axes is not None or trace.collective_args.height > 0


def _labelled(run: list[_Found], traces: Mapping[str, Trace]) -> dict[str, Member]:
    """The label of each trace, the same whatever the order in which they are given."""
    alike: defaultdict[object, list[_Found]] = defaultdict(list)
    for found in sorted(run, key=lambda found: found.path):
        process = _worker(found.path), frozenset(_processes(traces[found.path]))
        alike[found.rank if found.rank is not None else found.axes or process].append(found)
    members: dict[str, Member] = {}
    numbers = count(1)
    for those in alike.values():
        windows = _are_windows([traces[found.path] for found in those])
        if windows:
            those.sort(key=lambda found: traces[found.path].origin or 0)
        label = _told(those[0])
        for number, found in enumerate(those, 1):
            if not label or (number > 1 and not _told(found) and not windows):
                label = f"trace {next(numbers)}"
            which = f", window {number}" if windows else f" ({number})" if _told(found) else ""
            called = label + (which if len(those) > 1 else "")
            members[found.path] = Member(called, found.rank, found.size, found.known_by)
    return members


def _told(found: _Found) -> str:
    """The rank or the place that a trace tells; empty if it tells none."""
    return f"rank {found.rank}" if found.rank is not None else found.axes or ""


def _worker(path: str) -> str:
    """The worker of a file that TensorBoard's handler named; else nothing."""
    stem, end, _ = PurePath(path).name.partition(_FILE)
    return stem.rpartition(".")[0] if end else ""


def _are_windows(traces: list[Trace]) -> bool:
    """Whether traces are of one process, one after the other, each with a time of its own."""
    spans = []
    for trace in traces:
        ends = trace.slices["start"] + trace.slices["duration"].fill_null(0)
        if trace.origin is None or ends.len() == 0:
            return False
        spans.append((trace.origin, trace.origin + int(ends.max() or 0)))  # type: ignore[arg-type]  # integers
    spans.sort()
    if any(end > begin for (_, end), (begin, _) in pairwise(spans)):
        return False
    return bool(set.intersection(*map(_processes, traces)))


def _processes(trace: Trace) -> set[str]:
    hosts = trace.tracks.filter(pl.col("kind").cast(pl.String) == "host")
    return set(hosts["process"].cast(pl.String))


def _odd(run: list[_Found], members: Mapping[str, Member]) -> Iterator[str]:
    """What is odd about the ranks of one job's traces."""
    unknown = sorted(found.path for found in run if found.rank is None and found.axes is None)
    if unknown and len(run) > 1:
        yield f"no rank is told by {_listed(unknown)}: they are numbered by name"
    twice = Counter(found.rank for found in run if found.rank is not None)
    for rank, times in sorted(twice.items()):
        paths = sorted(found.path for found in run if found.rank == rank)
        if times > 1 and "window" not in members[paths[0]].label:
            yield f"{times} traces say that they are of rank {rank}: {_listed(paths)}"
    sizes = {found.size for found in run if found.size is not None}
    if len(sizes) > 1:
        yield f"the traces tell different numbers of ranks: {_listed(map(str, sorted(sizes)))}"
    elif sizes and len(twice) > 1 and not unknown:
        size = sizes.pop()
        yield from _missing(size, {rank for rank in twice if rank < size})


def _missing(size: int, there: set[int]) -> Iterator[str]:
    lacking = size - len(there)
    if lacking:
        every = (str(rank) for rank in range(size) if rank not in there)
        named = [rank for rank, _ in zip(every, range(_MOST_NAMED), strict=False)]
        more = f" and {lacking - len(named):,} more" if lacking > len(named) else ""
        ranks, are = ("rank", "is") if lacking == 1 else ("ranks", "are")
        yield f"{ranks} {', '.join(named)}{more} of {size:,} {are} missing"


def _listed(paths: Iterable[str]) -> str:
    every = list(paths)
    named = ", ".join(f"`{path}`" for path in every[:_MOST_NAMED])
    return named + (f" and {len(every) - _MOST_NAMED:,} more" if len(every) > _MOST_NAMED else "")
