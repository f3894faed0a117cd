"""Determines the rank and the label of each trace of a job, and reports contradictions.

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
from selftime.ingest.text.trace_header import (
    process_groups_in_header,
    pytorch_version_in_header,
    rank_in_header,
    world_size_in_header,
)
from selftime.ingest.trace_paths import content_digest
from selftime.trace import Trace, TraceInJob

_MAX_ITEMS_LISTED_IN_NOTE: Final = 8
"""Largest number of ranks or files that a message lists by name."""
_TENSORBOARD_HANDLER_FILE_SUFFIX: Final = ".pt.trace.json"
"""Suffix of file names from TensorBoard's handler, as in `worker.1700000000000.pt.trace.json`."""


@dataclass(frozen=True, slots=True)
class TraceIdentity:
    """What a trace records about its rank: rank, world size, processes, times."""

    rank: int | None
    """The rank in the trace's header; None if the header has none."""
    rank_in_all_groups: int | None
    """The one rank that is in all process groups of the header; None if there is none or several.
    """
    size: int | None
    """The world size in the header; None if the header has none."""
    processes: frozenset[str]
    """The names of the host processes whose operators are in the trace."""
    span: tuple[int, int] | None
    """The trace's first and last time in ns since the Unix epoch; None if unknown."""
    communicates: bool
    """Whether the trace has collectives."""
    version: str | None
    """The version of PyTorch that recorded the trace; None if unknown."""
    content_digest: str
    """Digest of header, times and names; it is equal only for copies of one trace."""


def identity_of_trace(trace: Trace) -> TraceIdentity:
    ends = trace.slices["start"] + trace.slices["duration"].fill_null(0)
    last = ends.max()
    begin = trace.origin
    span = (begin, begin + last) if begin is not None and isinstance(last, int) else None
    return TraceIdentity(
        rank=rank_in_header(trace.metadata),
        rank_in_all_groups=_rank_in_all_groups(process_groups_in_header(trace.metadata)),
        size=world_size_in_header(trace.metadata),
        processes=frozenset(_host_process_names(trace)),
        span=span,
        communicates=trace.collective_args.height > 0,
        version=pytorch_version_in_header(trace.metadata),
        content_digest=content_digest(trace),
    )


class _LocatedTrace(NamedTuple):
    """A trace with its rank, world size and run folder, determined from its header and path."""

    path: str
    identity: TraceIdentity
    run: str
    """The path of the folder that holds all traces of the run."""
    rank: int | None
    world_size: int | None
    rank_source: str
    """What the rank was read from, such as the header or the file name."""
    axes: str | None


def job_members(
    identities: Mapping[str, TraceIdentity], root: str
) -> tuple[dict[str, TraceInJob], tuple[str, ...]]:
    """Returns each trace's rank and label by path, and a sentence for each contradiction.

    Args:
        identities: The identity of each trace, by path.
        root: The loaded folder; ranks are not read from the path above it.
    """
    folders: defaultdict[str, list[_LocatedTrace]] = defaultdict(list)
    for path, identity in identities.items():
        found = _located_trace(path, identity, root)
        folders[found.run].append(found)
    runs, notes = _group_traces_by_run(folders)
    members: dict[str, TraceInJob] = {}
    for run in runs:
        members |= _members_of_run_by_path(run)
        if any(map(_is_from_multi_process_job, run)):
            notes += _notes_about_ranks_of_run(run, members)
    return {path: members[path] for path in identities}, tuple(notes)


def _group_traces_by_run(
    traces_by_folder: Mapping[str, list[_LocatedTrace]],
) -> tuple[list[list[_LocatedTrace]], list[str]]:
    """Returns the traces in one list per run of the program, and a note if there are several.

    Each folder is a run of its own, unless several nodes of a job wrote into one folder each: then
    the folders' ranks differ and all traces have the same world size.
    """
    runs: list[list[_LocatedTrace]] = []
    notes: list[str] = []
    for folder in traces_by_folder.values():
        run_of_folder = next(
            (run for run in runs if _do_folder_and_run_form_one_run(run, folder)), None
        )
        if run_of_folder is None:
            runs.append(list(folder))
        else:
            run_of_folder += [found._replace(run=run_of_folder[0].run) for found in folder]
    several = [run for run in runs if any(map(_is_from_multi_process_job, run))]
    if len(several) > 1:
        listed = _shortened_list(run[0].run.strip("/") or "." for run in several)
        notes.append(
            f"{len(several)} runs were found: {listed}; views across ranks show the latest"
        )
    return runs, notes


def _do_folder_and_run_form_one_run(run: list[_LocatedTrace], folder: list[_LocatedTrace]) -> bool:
    every = [*run, *folder]
    sizes = {found.world_size for found in every}
    ranks = [found.rank for found in run]
    is_apart = all(found.rank is not None and found.rank not in ranks for found in folder)
    return is_apart and None not in ranks and None not in sizes and len(sizes) == 1


def _located_trace(path: str, identity: TraceIdentity, root: str) -> _LocatedTrace:
    below = PurePath(path.removeprefix(root).lstrip("/\\") or PurePath(path).name)
    folders = [(part, names.rank_in_file_name(part)) for part in below.parts[:-1]]
    run = "/".join("" if rank is not None else part for part, rank in folders)
    candidates = [
        ("header", identity.rank),
        ("file name", names.rank_in_file_name(below.name)),
        *(("folder", rank) for _, rank in reversed(folders)),
        ("process groups", identity.rank_in_all_groups),
    ]
    known = ((how, rank) for how, rank in candidates if rank is not None)
    how, rank = next(known, ("", None))
    size = identity.size
    possible = size is not None and size > (rank or 0)
    axes = names.parallel_axes_in_file_name(below.name)
    return _LocatedTrace(path, identity, run, rank, size if possible else None, how, axes)


def _rank_in_all_groups(groups: list[set[int]]) -> int | None:
    """Returns the rank that is in all process groups of a trace; None if no rank or several are."""
    common = set.intersection(*groups) if groups else set()
    return common.pop() if len(common) == 1 else None


def _is_from_multi_process_job(trace: _LocatedTrace) -> bool:
    """Returns whether a trace was recorded in a job of several processes."""
    if trace.world_size is not None:
        return trace.world_size > 1
    return trace.rank is not None or trace.axes is not None or trace.identity.communicates


def _members_of_run_by_path(run: list[_LocatedTrace]) -> dict[str, TraceInJob]:
    """Returns the rank and label of each trace of a run, by path."""
    alike: defaultdict[object, list[_LocatedTrace]] = defaultdict(list)
    for found in sorted(run, key=lambda found: found.path):
        process = _worker_name_in_tensorboard_file_name(found.path), found.identity.processes
        alike[found.rank if found.rank is not None else found.axes or process].append(found)
    members: dict[str, TraceInJob] = {}
    numbers = count(1)
    for same_rank in alike.values():
        windows = _are_windows_of_one_process([found.identity for found in same_rank])
        if windows:
            same_rank.sort(key=lambda found: found.identity.span or (0, 0))
        label = _rank_or_axes_label(same_rank[0])
        several = len(same_rank) > 1
        for number, found in enumerate(same_rank, 1):
            if not label or (number > 1 and not _rank_or_axes_label(found) and not windows):
                label = f"trace {next(numbers)}"
            which = (
                f", window {number}"
                if windows
                else f" ({number})"
                if _rank_or_axes_label(found)
                else ""
            )
            members[found.path] = TraceInJob(
                label + (which if several else ""),
                found.rank,
                found.world_size,
                found.rank_source,
                found.run.strip("/"),
                number if windows and several else None,
            )
    return members


def _rank_or_axes_label(trace: _LocatedTrace) -> str:
    """Returns a label: `rank 3`, or the parallel axes in the file name, or "" if unknown."""
    return f"rank {trace.rank}" if trace.rank is not None else trace.axes or ""


def _worker_name_in_tensorboard_file_name(path: str) -> str:
    """Returns the worker name in the file name that TensorBoard's trace handler gave, else ""."""
    stem, end, _ = PurePath(path).name.partition(_TENSORBOARD_HANDLER_FILE_SUFFIX)
    return stem.rpartition(".")[0] if end else ""


def _are_windows_of_one_process(identities: list[TraceIdentity]) -> bool:
    """Returns whether the traces were recorded one after the other in the same process."""
    spans = sorted(identity.span for identity in identities if identity.span is not None)
    if len(spans) < len(identities):
        return False
    if any(end > begin for (_, end), (begin, _) in pairwise(spans)):
        return False
    return bool(frozenset.intersection(*(identity.processes for identity in identities)))


def _host_process_names(trace: Trace) -> set[str]:
    hosts = trace.tracks.filter(pl.col("kind").cast(pl.String) == "host")
    return set(hosts["process"].cast(pl.String))


def _notes_about_ranks_of_run(
    run: list[_LocatedTrace], members: Mapping[str, TraceInJob]
) -> Iterator[str]:
    """Yields a sentence for each problem with the ranks of one run, such as a missing rank."""
    unknown = sorted(found.path for found in run if found.rank is None and found.axes is None)
    if unknown and len(run) > 1:
        yield f"no rank is known for {_shortened_list(unknown)}: they are numbered by name"
    twice = Counter(found.rank for found in run if found.rank is not None)
    for rank, times in sorted(twice.items()):
        paths = sorted(found.path for found in run if found.rank == rank)
        if times > 1 and members[paths[0]].window is None:
            yield f"{times} traces claim rank {rank}: {_shortened_list(paths)}"
    versions = {found.identity.version for found in run} - {None}
    if len(versions) > 1:
        listed = _shortened_list(sorted(map(str, versions)))
        yield f"the ranks ran different versions of PyTorch: {listed}"
    sizes = {found.world_size for found in run if found.world_size is not None}
    if len(sizes) > 1:
        yield f"the traces state different world sizes: {_shortened_list(map(str, sorted(sizes)))}"
    elif sizes and len(twice) > 1 and not unknown:
        size = sizes.pop()
        yield from _missing_ranks_note(size, {rank for rank in twice if rank < size})


def _missing_ranks_note(world_size: int, present_ranks: set[int]) -> Iterator[str]:
    lacking = world_size - len(present_ranks)
    if lacking:
        every = (str(rank) for rank in range(world_size) if rank not in present_ranks)
        named = [rank for rank, _ in zip(every, range(_MAX_ITEMS_LISTED_IN_NOTE), strict=False)]
        more = f" and {lacking - len(named):,} more" if lacking > len(named) else ""
        ranks = ", ".join(named)
        if lacking == 1:
            yield f"rank {ranks} of {world_size:,} is missing"
        else:
            yield f"ranks {ranks}{more} of {world_size:,} are missing"


def _shortened_list(items: Iterable[str]) -> str:
    all_items = list(items)
    listed = ", ".join(f"`{item}`" for item in all_items[:_MAX_ITEMS_LISTED_IN_NOTE])
    return listed + (
        f" and {len(all_items) - _MAX_ITEMS_LISTED_IN_NOTE:,} more"
        if len(all_items) > _MAX_ITEMS_LISTED_IN_NOTE
        else ""
    )
