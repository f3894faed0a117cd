"""Tells which traces of one folder may be of one job, from their names and first bytes alone.

The page lists unrelated traces one by one; what would read a folder as one job refuses them.

A folder may hold unrelated traces. They are told apart by what the ranks of one job have in common:
the world size, the device, and the name but for its numbers.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from filecmp import cmp
from itertools import groupby
from pathlib import Path
from typing import Final

from selftime.errors import UnrelatedTraces
from selftime.ingest.text.format_detection import looks_like_trace
from selftime.ingest.text.trace_start import (
    TraceStart,
    read_trace_start,
    trace_start_of_header,
)
from selftime.ingest.trace_listing import (
    ListedTrace,
    is_named_by_recorder,
    listed_trace,
    short_hash_of_text,
)
from selftime.ingest.trace_paths import TraceFiles
from selftime.names import parallel_axes_in_file_name, rank_in_file_name
from selftime.trace import Trace

_NUMBER: Final = "#"
"""Stands for any number in the pattern of a name."""
_MAX_JOBS_NAMED_IN_ERROR: Final = 5
_PAIR: Final = 2
"""Files that are named one by one, outside of a folder: two are a pair to compare."""
_UNKNOWN_START: Final = TraceStart()


def separate_jobs(
    traces: Sequence[ListedTrace], starts: Mapping[str, TraceStart]
) -> list[ListedTrace]:
    """Returns the entries with a `job` of their own where the traces of a folder are unrelated.

    Args:
        traces: The entries; those of one folder have one `job`.
        starts: What the first bytes of the traces tell, by id, as far as they have been read.
    """
    sizes = _world_sizes_by_pattern(traces, starts)
    groups: defaultdict[tuple[str, str], list[ListedTrace]] = defaultdict(list)
    for listed in traces:
        start = starts.get(listed.id, _UNKNOWN_START)
        of_pattern = sizes[listed.job, name_pattern(listed)]
        if start.world_size is None and len(of_pattern) == 1:  # as of a rank's damaged trace
            start = replace(start, world_size=min(of_pattern))
        groups[listed.job, _group_in_folder(listed, start)].append(listed)
    parts: defaultdict[str, dict[str, list[ListedTrace]]] = defaultdict(dict)
    for (job, group), members in groups.items():
        for pattern, part in _split_contradictory_ranks(members, starts).items():
            parts[job][f"{group}\n{pattern}"] = part
    job_by_id = {
        listed.id: short_hash_of_text(f"{job}\n{key}") if len(parts_of_folder) > 1 else job
        for job, parts_of_folder in parts.items()
        for key, part in parts_of_folder.items()
        for listed in part
    }
    return [replace(listed, job=job_by_id[listed.id]) for listed in traces]


def are_unrelated(traces: Sequence[ListedTrace]) -> bool:
    """Returns whether some folder holds traces of several jobs; the page then shows the list first.

    Two files that were named themselves, outside of a folder, are a pair to compare. The function
    `areUnrelated` of the page is the same.
    """
    jobs_by_folder: defaultdict[str, set[str]] = defaultdict(set)
    for listed in traces:
        jobs_by_folder[listed.run_folder].add(listed.job)
    return any(len(jobs) > (1 if folder else _PAIR) for folder, jobs in jobs_by_folder.items())


def refuse_unrelated_traces(found: TraceFiles) -> None:
    """Raises an error if a folder of this machine holds traces of several jobs.

    A pattern was asked for as it is: what it matches is read together. Of an address the names
    alone would tell, which is not enough to refuse it.

    Raises:
        UnrelatedTraces: Some folder at the path holds traces of several jobs.
    """
    if not found.is_local_folder:
        return
    paths = _without_copies([path for path in found.files if looks_like_trace(Path(path))])
    grouped = _unrelated_traces({path: read_trace_start(Path(path)) for path in paths})
    if grouped is None:
        return
    jobs: defaultdict[str, list[str]] = defaultdict(list)
    for one in grouped.values():
        jobs[one.job].append(one.name)
    firsts = [names[0] for names in jobs.values()]
    listed_names = ", ".join(f"`{name}`" for name in firsts[:_MAX_JOBS_NAMED_IN_ERROR])
    more = len(firsts) - _MAX_JOBS_NAMED_IN_ERROR
    raise UnrelatedTraces(
        f"{found.description} holds {len(grouped)} traces of {len(jobs)} jobs that do not belong "
        f"together, such as {listed_names}{f' and {more} more' if more > 0 else ''}; name one "
        f"of them, or all traces of one job by a pattern such as `{found.root}/NAME*`; "
        f"`selftime serve {found.root}` lists them"
    )


def jobs_of_unrelated_traces(traces: Mapping[str, Trace]) -> dict[str, str] | None:
    """Returns the job of each trace by its name; None if the traces may belong together."""
    starts = {one.source: trace_start_of_header(one.metadata) for one in traces.values()}
    grouped = _unrelated_traces(starts)
    if grouped is None:
        return None
    return {name: grouped[one.source].job for name, one in traces.items()}


def _unrelated_traces(starts: Mapping[str, TraceStart]) -> dict[str, ListedTrace] | None:
    """Returns the entry, with its job, of each trace by its path; None if they may be related.

    Names alone do not tell here: what is in the files must contradict that they are of one job.
    """
    listed = [listed_trace(path, run_folder=str(Path(path).parent)) for path in starts]
    starts_by_id = {one.id: start for one, start in zip(listed, starts.values(), strict=True)}
    grouped = separate_jobs(listed, starts_by_id)
    starts_by_folder: defaultdict[str, list[TraceStart]] = defaultdict(list)
    for one in grouped:
        starts_by_folder[one.run_folder].append(starts_by_id[one.id])
    is_contradictory = any(map(_is_of_several_jobs, starts_by_folder.values()))
    return dict(zip(starts, grouped, strict=True)) if is_contradictory else None


def _is_of_several_jobs(starts: Sequence[TraceStart]) -> bool:
    """Returns whether traces state different devices or world sizes."""
    devices = {start.device for start in starts} - {None}
    world_sizes = {start.world_size for start in starts} - {None}
    return len(devices) > 1 or len(world_sizes) > 1


def _without_copies(paths: Sequence[str]) -> list[str]:
    """Returns the paths without those whose file is equal to an earlier one, byte for byte."""
    kept_by_bytes: defaultdict[int, list[str]] = defaultdict(list)
    for path in paths:
        alike = kept_by_bytes[Path(path).stat().st_size]
        if not any(cmp(path, other, shallow=False) for other in alike):
            alike.append(path)
    kept = {path for alike in kept_by_bytes.values() for path in alike}
    return [path for path in paths if path in kept]


def other_of_named_pair(traces: Sequence[ListedTrace], trace_id: str) -> ListedTrace | None:
    """Returns the second of two files that were named themselves, if the trace is the first."""
    if len(traces) != _PAIR or any(listed.run_folder for listed in traces):
        return None
    before, after = traces
    return after if before.id == trace_id else None


def name_pattern(listed: ListedTrace) -> str:
    """Returns what the names of all ranks of a job have in common: the name without its numbers.

    Names that PyTorch's trace handler or `selftime run` made differ in host and process; they have
    one pattern.

    >>> name_pattern(ListedTrace("", "step3_rank12.json", worker="step3_rank12"))
    'step#_rank#'
    """
    if is_named_by_recorder(listed.name):
        return ""
    parts = groupby(listed.worker, str.isdecimal)
    return "".join(_NUMBER if is_number else "".join(part) for is_number, part in parts)


def _world_sizes_by_pattern(
    traces: Sequence[ListedTrace], starts: Mapping[str, TraceStart]
) -> Mapping[tuple[str, str], set[int]]:
    """Returns the world sizes that traces state, by their folder's `job` and pattern of name."""
    sizes: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for listed in traces:
        size = starts.get(listed.id, _UNKNOWN_START).world_size
        if size is not None:
            sizes[listed.job, name_pattern(listed)].add(size)
    return sizes


def _group_in_folder(listed: ListedTrace, start: TraceStart) -> str:
    """Returns a key that all ranks of a job share; other traces share it with similar names."""
    if start.world_size is not None and start.world_size > 1:
        return f"size {start.world_size}"
    is_rank = _rank(listed, start) is not None and start.world_size is None
    if is_rank or parallel_axes_in_file_name(listed.name) is not None:
        return "ranks"
    return f"name {name_pattern(listed)}"


def _rank(listed: ListedTrace, start: TraceStart | None) -> int | None:
    """Returns the rank that the first bytes tell, else the file's name, else a folder's."""
    in_names = (rank_in_file_name(name) for name in (listed.name, *listed.run_folder.split("/")))
    known = (None if start is None else start.rank, *in_names)
    return next((rank for rank in known if rank is not None), None)


def _split_contradictory_ranks(
    group: list[ListedTrace], starts: Mapping[str, TraceStart]
) -> dict[str, list[ListedTrace]]:
    """Returns the group whole, or by pattern of name where it cannot be of one job.

    It cannot if traces of several patterns claim one rank, or if devices of several kinds ran it.
    """
    by_pattern: defaultdict[str, list[ListedTrace]] = defaultdict(list)
    patterns_by_rank: defaultdict[int, set[str]] = defaultdict(set)
    for listed in group:
        pattern = name_pattern(listed)
        by_pattern[pattern].append(listed)
        if (rank := _rank(listed, starts.get(listed.id))) is not None:
            patterns_by_rank[rank].add(pattern)
    devices = {start.device for listed in group if (start := starts.get(listed.id))} - {None}
    is_contradictory = len(devices) > 1 or any(len(p) > 1 for p in patterns_by_rank.values())
    return by_pattern if is_contradictory else {"": group}
