"""Groups traces into jobs (all ranks of one run), and describes a job for the web page."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from selftime import names
from selftime.analysis.ranks.clocks import RankClock, RankClocks
from selftime.analysis.ranks.job_ranks import RankOfJob, Ranks, collectives_on_one_clock
from selftime.analysis.ranks.rank_places import parse_ranks_of_group
from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.ingest.job_ranks import TraceIdentity, identity_of_trace, job_members
from selftime.ingest.trace_listing import ListedTrace
from selftime.ingest.trace_paths import skip_reasons_of_duplicates
from selftime.names.collectives import parallel_axes_of_group
from selftime.reports.page_data.job_account import job_account_data
from selftime.reports.page_data.rank_orders import rank_orders_data
from selftime.reports.plain import plain
from selftime.trace import Trace, TraceInJob
from selftime.units import count_text, time_text

_MAX_JAVASCRIPT_INTEGER: Final = 1 << 53
"""Largest integer that JavaScript's numbers represent exactly."""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What a job needs to know of one trace: its run, its rank, and a summary of its data."""

    identity: TraceIdentity
    rank_summary: RankSummary


@dataclass(frozen=True, slots=True, eq=False)
class PageJob:
    """The ranks of a job, and the id of each trace on the web page."""

    ranks: Ranks
    ids: Mapping[str, str]
    """Id of each trace on the web page, by the trace's path in `ranks`."""

    def paths_by_key(self) -> dict[int, list[str]]:
        """Returns the trace paths of each rank in order of time, by the rank's key."""
        paths_by_key = {
            key: list(self._paths_of_rank(rank)) for key, rank in self.ranks.ranks_by_key().items()
        }
        summaries = self.ranks.summaries
        return {
            key: sorted(paths, key=lambda p: summaries[p].origin)
            for key, paths in paths_by_key.items()
        }

    def _paths_of_rank(self, rank: RankOfJob) -> Iterator[str]:
        """Yields the paths of the traces that a rank's recording consists of."""
        for path, summary in self.ranks.summaries.items():
            member = self.ranks.members[path]
            is_window = rank.rank is not None and member.window is not None
            if summary is rank.summary or (is_window and member.rank == rank.rank):
                yield path


def summarize_trace(trace: Trace) -> TraceSummary:
    """Returns a trace's run, rank and data summary, from which its job is assembled."""
    return TraceSummary(identity_of_trace(trace), rank_summary(trace))


def is_from_multi_process_job(listed: ListedTrace, identity: TraceIdentity) -> bool:
    """Returns whether a trace is one of several processes', by its content or by its path."""
    if identity.size is not None:
        return identity.size > 1
    parts = (listed.name, *listed.run_folder.split("/"))
    has_rank_in_name = any(names.rank_in_file_name(part) is not None for part in parts)
    return identity.rank is not None or identity.communicates or has_rank_in_name


def page_job_of_traces(
    summaries: Mapping[str, tuple[ListedTrace, TraceSummary]], read_failures: Mapping[str, str]
) -> PageJob:
    """Returns the job of the given traces, without duplicates.

    Args:
        summaries: Each trace's list entry and summary, by the path from the folder of its run.
        read_failures: The reason for each file that could not be read.
    """
    duplicate_reasons = skip_reasons_of_duplicates(
        {path: summary.identity.content_digest for path, (_, summary) in summaries.items()}
    )
    distinct = {
        path: summary for path, summary in summaries.items() if path not in duplicate_reasons
    }
    members, notes = job_members(
        {path: summary.identity for path, (_, summary) in distinct.items()}, ""
    )
    rank_summaries = {path: summary.rank_summary for path, (_, summary) in distinct.items()}
    ids = {path: listed.id for path, (listed, _) in distinct.items()}
    return PageJob(
        Ranks(rank_summaries, members, {**read_failures, **duplicate_reasons}, notes), ids
    )


def page_job_of_one_trace(listed: ListedTrace, summary: TraceSummary) -> PageJob:
    """Returns a job that consists of a single trace."""
    rank, size = summary.identity.rank, summary.identity.size
    label = "this rank" if rank is None else f"rank {rank}"
    member = TraceInJob(label, rank, size if size is not None and size > (rank or 0) else None)
    return PageJob(
        Ranks({listed.name: summary.rank_summary}, {listed.name: member}), {listed.name: listed.id}
    )


def group_into_jobs(traces: Mapping[str, tuple[ListedTrace, Trace]]) -> list[PageJob]:
    """Returns the jobs: ranks in one folder form a job, any other trace is a job by itself."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for path, (listed, _) in traces.items():
        folders[listed.job].append(path)
    jobs: list[PageJob] = []
    for paths in folders.values():
        summaries = {path: (traces[path][0], summarize_trace(traces[path][1])) for path in paths}
        of_several = {
            path: summary
            for path, summary in summaries.items()
            if is_from_multi_process_job(summary[0], summary[1].identity)
        }
        job = page_job_of_traces(of_several if len(paths) > 1 else {}, {})
        paths_in_job = {path for rank_paths in job.paths_by_key().values() for path in rank_paths}
        jobs += [job] if paths_in_job else []
        jobs += [
            page_job_of_one_trace(*summary)
            for path, summary in summaries.items()
            if path not in paths_in_job
        ]
    return jobs


def page_data_of_job(job: PageJob) -> dict[str, Any]:
    """Returns a job as the JSON object `Job` of the page's interface."""
    ranks = job.ranks
    clocks = collectives_on_one_clock(ranks).clocks
    ranks_by_key, paths = ranks.ranks_by_key(), job.paths_by_key()
    reference_key = (
        clocks.reference if clocks.reference is not None else min(ranks_by_key, default=0)
    )
    reference_origin = ranks_by_key[reference_key].summary.origin if ranks_by_key else 0
    groups = list(_process_group_entries(ranks_by_key))
    return {
        "size": ranks.size,
        "ranks": [
            {
                "key": key,
                "label": rank.label,
                "rank": rank.rank,
                "device": rank.summary.device,
                "residual": clocks.clock_by_rank[key].residual
                if key in clocks.clock_by_rank
                else None,
                "traces": [
                    _common_clock_shift_and_drift(
                        job.ids[path],
                        ranks.summaries[path],
                        clocks.clock_by_rank.get(key, RankClock()),
                        reference_origin,
                    )
                    for path in paths[key]
                ],
            }
            for key, rank in ranks_by_key.items()
        ],
        "missing": ranks.missing,
        "refused": [{"name": name, "why": why} for name, why in sorted(ranks.refused.items())],
        "notes": list(ranks.notes),
        "residual": clocks.residual,
        "groups": groups,
        "facts": _job_facts(ranks, clocks, len(groups)),
        "account": job_account_data(ranks),
        "orders": rank_orders_data(ranks, groups),
        "single_rank_note": _single_rank_note(ranks) if len(ranks_by_key) == 1 else None,
    }


def _job_facts(ranks: Ranks, clocks: RankClocks, group_count: int) -> list[str]:
    """Returns the numbers of ranks and process groups, the device, and the error of the clocks."""
    ranks_by_key = ranks.ranks_by_key()
    count, size = len(ranks_by_key), ranks.size
    rank_text = (
        _counted(count, "rank")
        if size is None
        else f"{count_text(count)} of {count_text(size)} ranks"
    )
    devices = {rank.summary.device for rank in ranks_by_key.values()} - {None}
    device_text = plain(str(*devices)) if len(devices) == 1 else f"{len(devices)} kinds of device"
    return [
        rank_text,
        *([device_text] if devices else []),
        *([_clock_error_text(clocks, count)] if count > 1 else []),
        _counted(group_count, "process group"),
    ]


def _counted(count: int, noun: str) -> str:
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"


def _clock_error_text(clocks: RankClocks, rank_count: int) -> str:
    """Returns how far apart the ends of a collective are after the clocks have been aligned."""
    if clocks.residual is None:
        return "clocks not aligned"
    aligned = sum(clock.residual is not None for clock in clocks.clock_by_rank.values())
    text = f"clocks agree within {time_text(max(ceil(clocks.residual), 1))}"
    unaligned = rank_count - aligned
    return f"{text}, except for {count_text(unaligned)} of the ranks" if unaligned else text


def _single_rank_note(ranks: Ranks) -> str:
    """Returns what the trace of one rank does not show, and which traces would show it."""
    size = ranks.size
    others = f"the other {_counted(size - 1, 'rank')}" if size and size > 1 else "the other ranks"
    return (
        "This is the trace of one rank: of a collective it shows waiting and transfer as one time. "
        f"With the traces of {others} in the same folder, this page shows which rank waits for "
        "which, and why."
    )


def _common_clock_shift_and_drift(
    trace_id: str, summary: RankSummary, clock: RankClock, reference_origin: int
) -> dict[str, Any]:
    """Returns as JSON what converts a trace's times to the common clock: shift (ns) and drift.

    With the instant from which its times count, in microseconds since the epoch.
    """
    offset = summary.origin - reference_origin + clock.offset
    shift = offset + round(clock.drift * (summary.origin - clock.reference_instant))
    is_known = summary.origin != 0 and abs(shift) < _MAX_JAVASCRIPT_INTEGER
    return {
        "trace": trace_id,
        "shift": shift if is_known else None,
        "drift": clock.drift,
        "origin": summary.origin // 1000 if summary.origin else None,
    }


def _process_group_entries(ranks_by_key: Mapping[int, RankOfJob]) -> Iterator[dict[str, Any]]:
    """Yields a JSON entry per process group, from trace headers, or else from collectives."""
    groups: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    columns = ("group", "group_description", "group_size", "group_ranks")
    for rank in ranks_by_key.values():
        header_groups = rank.summary.groups.select(
            "group", "description", "size", "ranks", "backend"
        ).rows()
        collective_groups = (
            rank.summary.collectives.select(columns).unique(maintain_order=True).rows()
        )
        for group, description, size, ranks_text, *backend in [*header_groups, *collective_groups]:
            if group is None and ranks_text is None:
                continue
            entry = groups.setdefault((group, ranks_text), _process_group_entry(group, ranks_text))
            entry["description"] = entry["description"] or description
            entry["size"] = size if entry["size"] is None else entry["size"]
            entry["backend"] = entry["backend"] or next(iter(backend), None)
    for entry in groups.values():
        axis = parallel_axes_of_group(entry["description"] or "")
        yield {**entry, "axis": axis}


def _process_group_entry(group_name: str | None, ranks_text: str | None) -> dict[str, Any]:
    """Returns the JSON entry of a process group of which only the name and ranks are known."""
    members = parse_ranks_of_group(ranks_text)
    size = None if members is None else len(members)
    return {
        "group": group_name,
        "description": None,
        "backend": None,
        "size": size,
        "ranks": members,
    }
