"""The place of each trace of a folder in its job: its rank, how it is known, and what is odd.

The rank is what the header tells, else the name of the file, else that of a folder, else the one
rank that is in all of the process groups. Traces that follow each other in one process are windows
of one rank.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import PurePath
from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.ingest.paths import content_of
from selftime.ingest.text.header import groups_of, rank_of, version_of, world_size_of
from selftime.trace import Member, Trace

_MOST_NAMED: Final = 8
"""Ranks or files that one sentence names."""
_FILE: Final = ".pt.trace.json"
"""How names end that TensorBoard's handler gives: `worker.1700000000000.pt.trace.json`."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one trace tells of its place in a job, taken where it is read; small, to be sent."""

    rank: int | None
    """As the header tells it."""
    common: int | None
    """The one rank that is in all of the process groups of the header."""
    size: int | None
    """The number of processes that the header tells."""
    processes: frozenset[str]
    """The names of the processes whose operators it holds."""
    span: tuple[int, int] | None
    """Its first and last instant in ns since 1970; None if that is not told."""
    exchanges: bool
    """Whether it holds collectives."""
    version: str | None
    """The version of PyTorch that recorded it, if it is told."""
    content: str
    """The same for two traces only if they are one: a digest of header, times and names."""


def identity_of(trace: Trace) -> Identity:
    ends = trace.slices["start"] + trace.slices["duration"].fill_null(0)
    last = ends.max()
    begin = trace.origin
    span = (begin, begin + last) if begin is not None and isinstance(last, int) else None
    return Identity(
        rank=rank_of(trace.metadata),
        common=_of_all(groups_of(trace.metadata)),
        size=world_size_of(trace.metadata),
        processes=frozenset(_processes(trace)),
        span=span,
        exchanges=trace.collective_args.height > 0,
        version=version_of(trace.metadata),
        content=content_of(trace),
    )


class _Found(NamedTuple):
    """What one trace and its path tell together."""

    path: str
    identity: Identity
    run: str
    """The folder of its run."""
    rank: int | None
    size: int | None
    known_by: str
    axes: str | None


def members_of(
    identities: Mapping[str, Identity], root: str
) -> tuple[dict[str, Member], tuple[str, ...]]:
    """The place of each trace, and one sentence for each thing that is odd.

    Args:
        identities: What the traces of a folder tell, by path.
        root: The folder: what stands in the path before it tells no rank.
    """
    folders: defaultdict[str, list[_Found]] = defaultdict(list)
    for path, identity in identities.items():
        found = _found(path, identity, root)
        folders[found.run].append(found)
    runs, notes = _runs(folders)
    members: dict[str, Member] = {}
    for run in runs:
        members |= _labelled(run)
        if any(map(_is_of_several, run)):
            notes += _odd(run, members)
    return {path: members[path] for path in identities}, tuple(notes)


def _runs(folders: Mapping[str, list[_Found]]) -> tuple[list[list[_Found]], list[str]]:
    """The traces of each run, and a sentence where several folders are one, or several runs.

    A folder is a run, unless each node of a job wrote into one of its own: their ranks differ and
    they tell the same number of ranks.
    """
    runs: list[list[_Found]] = []
    notes: list[str] = []
    for folder in folders.values():
        mates = next((run for run in runs if _are_of_one_run(run, folder)), None)
        if mates is None:
            runs.append(list(folder))
        else:
            mates += [found._replace(run=mates[0].run) for found in folder]
    several = [run for run in runs if any(map(_is_of_several, run))]
    if len(several) > 1:
        named = _listed(run[0].run.strip("/") or "." for run in several)
        notes.append(
            f"{len(several)} runs are here: {named}; of views across ranks the latest is shown"
        )
    return runs, notes


def _are_of_one_run(run: list[_Found], folder: list[_Found]) -> bool:
    every = [*run, *folder]
    sizes = {found.size for found in every}
    ranks = [found.rank for found in run]
    is_apart = all(found.rank is not None and found.rank not in ranks for found in folder)
    return is_apart and None not in ranks and None not in sizes and len(sizes) == 1


def _found(path: str, identity: Identity, root: str) -> _Found:
    below = PurePath(path.removeprefix(root).lstrip("/\\") or PurePath(path).name)
    folders = [(part, names.rank_in_path(part)) for part in below.parts[:-1]]
    run = "/".join("" if rank is not None else part for part, rank in folders)
    told = [
        ("header", identity.rank),
        ("file name", names.rank_in_path(below.name)),
        *(("folder", rank) for _, rank in reversed(folders)),
        ("process groups", identity.common),
    ]
    known = ((how, rank) for how, rank in told if rank is not None)
    how, rank = next(known, ("", None))
    size = identity.size
    possible = size is not None and size > (rank or 0)
    axes = names.axes_in_path(below.name)
    return _Found(path, identity, run, rank, size if possible else None, how, axes)


def _of_all(groups: list[set[int]]) -> int | None:
    """The one rank that is in every group, as a process lists only groups that it is in."""
    common = set.intersection(*groups) if groups else set()
    return common.pop() if len(common) == 1 else None


def _is_of_several(found: _Found) -> bool:
    """Whether a trace is of one of several processes."""
    if found.size is not None:
        return found.size > 1
    return found.rank is not None or found.axes is not None or found.identity.exchanges


def _labelled(run: list[_Found]) -> dict[str, Member]:
    """The label of each trace, the same whatever the order in which they are given."""
    alike: defaultdict[object, list[_Found]] = defaultdict(list)
    for found in sorted(run, key=lambda found: found.path):
        process = _worker(found.path), found.identity.processes
        alike[found.rank if found.rank is not None else found.axes or process].append(found)
    members: dict[str, Member] = {}
    numbers = count(1)
    for those in alike.values():
        windows = _are_windows([found.identity for found in those])
        if windows:
            those.sort(key=lambda found: found.identity.span or (0, 0))
        label = _told(those[0])
        several = len(those) > 1
        for number, found in enumerate(those, 1):
            if not label or (number > 1 and not _told(found) and not windows):
                label = f"trace {next(numbers)}"
            which = f", window {number}" if windows else f" ({number})" if _told(found) else ""
            members[found.path] = Member(
                label + (which if several else ""),
                found.rank,
                found.size,
                found.known_by,
                found.run.strip("/"),
                number if windows and several else None,
            )
    return members


def _told(found: _Found) -> str:
    """The rank or the place that a trace tells; empty if it tells none."""
    return f"rank {found.rank}" if found.rank is not None else found.axes or ""


def _worker(path: str) -> str:
    """The worker of a file that TensorBoard's handler named; else nothing."""
    stem, end, _ = PurePath(path).name.partition(_FILE)
    return stem.rpartition(".")[0] if end else ""


def _are_windows(identities: list[Identity]) -> bool:
    """Whether traces are of one process, one after the other, each with a time of its own."""
    spans = sorted(one.span for one in identities if one.span is not None)
    if len(spans) < len(identities):
        return False
    if any(end > begin for (_, end), (begin, _) in pairwise(spans)):
        return False
    return bool(frozenset.intersection(*(one.processes for one in identities)))


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
        if times > 1 and members[paths[0]].window is None:
            yield f"{times} traces say that they are of rank {rank}: {_listed(paths)}"
    versions = {found.identity.version for found in run} - {None}
    if len(versions) > 1:
        yield f"the ranks ran different versions of PyTorch: {_listed(sorted(map(str, versions)))}"
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
