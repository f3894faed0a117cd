"""Assign each trace of a folder its rank and label within the job, and report oddities.

The rank comes from the header, else from the file name, else from a folder's name, else it is the
one rank that all process groups share. Successive traces of one process are windows of one rank.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import PurePath
from typing import Final, NamedTuple

import polars as pl

from selftime import names
from selftime.ingest.paths import content_digest
from selftime.ingest.text.header import process_groups_of, rank_of, version_of, world_size_of
from selftime.trace import Member, Trace

_MOST_NAMED: Final = 8
"""The most ranks or files that a message lists by name."""
_TENSORBOARD_SUFFIX: Final = ".pt.trace.json"
"""Suffix of files from TensorBoard's handler: `worker.1700000000000.pt.trace.json`."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one trace says about its place in a job; small, so that workers can send it."""

    rank: int | None
    """The rank in the header; None if it has none."""
    common: int | None
    """The one rank that all process groups of the header contain; None if there is no such one."""
    size: int | None
    """The number of processes (world size) in the header."""
    processes: frozenset[str]
    """The names of the processes whose operators the trace holds."""
    span: tuple[int, int] | None
    """The trace's first and last time in ns since the Unix epoch; None if unknown."""
    exchanges: bool
    """Whether the trace holds collectives."""
    version: str | None
    """The version of PyTorch that recorded the trace; None if unknown."""
    content: str
    """Digest of header, times and names: equal only for copies of the same trace."""


def identity_of(trace: Trace) -> Identity:
    ends = trace.slices["start"] + trace.slices["duration"].fill_null(0)
    last = ends.max()
    begin = trace.origin
    span = (begin, begin + last) if begin is not None and isinstance(last, int) else None
    return Identity(
        rank=rank_of(trace.metadata),
        common=_rank_in_all_groups(process_groups_of(trace.metadata)),
        size=world_size_of(trace.metadata),
        processes=frozenset(_processes(trace)),
        span=span,
        exchanges=trace.collective_args.height > 0,
        version=version_of(trace.metadata),
        content=content_digest(trace),
    )


class _LocatedTrace(NamedTuple):
    """One trace's rank, world size and run folder, from its content and its path."""

    path: str
    identity: Identity
    run: str
    """The folder of the trace's run."""
    rank: int | None
    size: int | None
    known_by: str
    axes: str | None


def members_of(
    identities: Mapping[str, Identity], root: str
) -> tuple[dict[str, Member], tuple[str, ...]]:
    """Returns each trace's place in the job, and one sentence for each oddity.

    Args:
        identities: The identity of each trace, by path.
        root: The loaded folder; ranks are not read from the path above it.
    """
    folders: defaultdict[str, list[_LocatedTrace]] = defaultdict(list)
    for path, identity in identities.items():
        found = _locate(path, identity, root)
        folders[found.run].append(found)
    runs, notes = _runs(folders)
    members: dict[str, Member] = {}
    for run in runs:
        members |= _labels(run)
        if any(map(_is_of_several, run)):
            notes += _oddities(run, members)
    return {path: members[path] for path in identities}, tuple(notes)


def _runs(
    folders: Mapping[str, list[_LocatedTrace]],
) -> tuple[list[list[_LocatedTrace]], list[str]]:
    """Groups the traces by run; also returns a sentence if there are several runs.

    Each folder is a run of its own, unless several nodes of a job wrote into one folder each: then
    the folders' ranks differ and all traces have the same world size.
    """
    runs: list[list[_LocatedTrace]] = []
    notes: list[str] = []
    for folder in folders.values():
        mates = next((run for run in runs if _are_of_one_run(run, folder)), None)
        if mates is None:
            runs.append(list(folder))
        else:
            mates += [found._replace(run=mates[0].run) for found in folder]
    several = [run for run in runs if any(map(_is_of_several, run))]
    if len(several) > 1:
        named = _listing(run[0].run.strip("/") or "." for run in several)
        notes.append(f"{len(several)} runs were found: {named}; views across ranks show the latest")
    return runs, notes


def _are_of_one_run(run: list[_LocatedTrace], folder: list[_LocatedTrace]) -> bool:
    every = [*run, *folder]
    sizes = {found.size for found in every}
    ranks = [found.rank for found in run]
    is_apart = all(found.rank is not None and found.rank not in ranks for found in folder)
    return is_apart and None not in ranks and None not in sizes and len(sizes) == 1


def _locate(path: str, identity: Identity, root: str) -> _LocatedTrace:
    below = PurePath(path.removeprefix(root).lstrip("/\\") or PurePath(path).name)
    folders = [(part, names.rank_in_path(part)) for part in below.parts[:-1]]
    run = "/".join("" if rank is not None else part for part, rank in folders)
    candidates = [
        ("header", identity.rank),
        ("file name", names.rank_in_path(below.name)),
        *(("folder", rank) for _, rank in reversed(folders)),
        ("process groups", identity.common),
    ]
    known = ((how, rank) for how, rank in candidates if rank is not None)
    how, rank = next(known, ("", None))
    size = identity.size
    possible = size is not None and size > (rank or 0)
    axes = names.axes_in_path(below.name)
    return _LocatedTrace(path, identity, run, rank, size if possible else None, how, axes)


def _rank_in_all_groups(groups: list[set[int]]) -> int | None:
    """Returns the one rank that is in every group: a process lists only its own groups."""
    common = set.intersection(*groups) if groups else set()
    return common.pop() if len(common) == 1 else None


def _is_of_several(found: _LocatedTrace) -> bool:
    """Returns whether the trace comes from a job of several processes."""
    if found.size is not None:
        return found.size > 1
    return found.rank is not None or found.axes is not None or found.identity.exchanges


def _labels(run: list[_LocatedTrace]) -> dict[str, Member]:
    """Returns the label of each trace; independent of the order of the traces."""
    alike: defaultdict[object, list[_LocatedTrace]] = defaultdict(list)
    for found in sorted(run, key=lambda found: found.path):
        process = _tensorboard_worker(found.path), found.identity.processes
        alike[found.rank if found.rank is not None else found.axes or process].append(found)
    members: dict[str, Member] = {}
    numbers = count(1)
    for same_rank in alike.values():
        windows = _are_windows([found.identity for found in same_rank])
        if windows:
            same_rank.sort(key=lambda found: found.identity.span or (0, 0))
        label = _label_of(same_rank[0])
        several = len(same_rank) > 1
        for number, found in enumerate(same_rank, 1):
            if not label or (number > 1 and not _label_of(found) and not windows):
                label = f"trace {next(numbers)}"
            which = f", window {number}" if windows else f" ({number})" if _label_of(found) else ""
            members[found.path] = Member(
                label + (which if several else ""),
                found.rank,
                found.size,
                found.known_by,
                found.run.strip("/"),
                number if windows and several else None,
            )
    return members


def _label_of(found: _LocatedTrace) -> str:
    """Returns the rank or the position in parallel axes as a label; empty if both are unknown."""
    return f"rank {found.rank}" if found.rank is not None else found.axes or ""


def _tensorboard_worker(path: str) -> str:
    """Returns the worker name in a file name of TensorBoard's handler; else empty."""
    stem, end, _ = PurePath(path).name.partition(_TENSORBOARD_SUFFIX)
    return stem.rpartition(".")[0] if end else ""


def _are_windows(identities: list[Identity]) -> bool:
    """Returns whether the traces come from one process and do not overlap in time."""
    spans = sorted(identity.span for identity in identities if identity.span is not None)
    if len(spans) < len(identities):
        return False
    if any(end > begin for (_, end), (begin, _) in pairwise(spans)):
        return False
    return bool(frozenset.intersection(*(identity.processes for identity in identities)))


def _processes(trace: Trace) -> set[str]:
    hosts = trace.tracks.filter(pl.col("kind").cast(pl.String) == "host")
    return set(hosts["process"].cast(pl.String))


def _oddities(run: list[_LocatedTrace], members: Mapping[str, Member]) -> Iterator[str]:
    """Yields a sentence for each oddity about the ranks of one job's traces."""
    unknown = sorted(found.path for found in run if found.rank is None and found.axes is None)
    if unknown and len(run) > 1:
        yield f"no rank is known for {_listing(unknown)}: they are numbered by name"
    twice = Counter(found.rank for found in run if found.rank is not None)
    for rank, times in sorted(twice.items()):
        paths = sorted(found.path for found in run if found.rank == rank)
        if times > 1 and members[paths[0]].window is None:
            yield f"{times} traces claim rank {rank}: {_listing(paths)}"
    versions = {found.identity.version for found in run} - {None}
    if len(versions) > 1:
        yield f"the ranks ran different versions of PyTorch: {_listing(sorted(map(str, versions)))}"
    sizes = {found.size for found in run if found.size is not None}
    if len(sizes) > 1:
        yield f"the traces state different world sizes: {_listing(map(str, sorted(sizes)))}"
    elif sizes and len(twice) > 1 and not unknown:
        size = sizes.pop()
        yield from _missing_ranks(size, {rank for rank in twice if rank < size})


def _missing_ranks(size: int, there: set[int]) -> Iterator[str]:
    lacking = size - len(there)
    if lacking:
        every = (str(rank) for rank in range(size) if rank not in there)
        named = [rank for rank, _ in zip(every, range(_MOST_NAMED), strict=False)]
        more = f" and {lacking - len(named):,} more" if lacking > len(named) else ""
        ranks, are = ("rank", "is") if lacking == 1 else ("ranks", "are")
        yield f"{ranks} {', '.join(named)}{more} of {size:,} {are} missing"


def _listing(paths: Iterable[str]) -> str:
    every = list(paths)
    named = ", ".join(f"`{path}`" for path in every[:_MOST_NAMED])
    return named + (f" and {len(every) - _MOST_NAMED:,} more" if len(every) > _MOST_NAMED else "")
