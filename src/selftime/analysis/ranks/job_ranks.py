"""The ranks of a job: the summaries of their traces, by rank."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.aligned_collectives import (
    AlignedCollectives,
    align_collectives_on_one_clock,
)
from selftime.analysis.ranks.rank_and_process_groups import rank_and_size
from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.trace import Job, Trace, TraceInJob


@dataclass(frozen=True, slots=True, eq=False)
class RankOfJob:
    """One rank of a job, with the summary of its traces."""

    label: str
    rank: int | None
    """The rank's number; None if the trace does not record it."""
    summary: RankSummary
    """The summary of all recordings of the rank, merged into one."""
    paths: tuple[str, ...]
    """The paths of the rank's trace files, in order of recording time."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """The summaries of a job's traces by path, from which views that compare ranks are made."""

    summaries: Mapping[str, RankSummary]
    """The summary of each trace, by the trace's path."""
    members: Mapping[str, TraceInJob]
    """The rank and label of each trace, by the trace's path."""
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Maps the path of each file that could not be read to the reason."""
    notes: tuple[str, ...] = ()
    """One sentence for each problem with the ranks: missing, duplicate or unknown ranks."""

    @classmethod
    def of(cls, subject: "Trace | Job | Ranks") -> "Ranks":
        """Returns the ranks of a job, or the one rank of a single trace."""
        if isinstance(subject, Ranks):
            return subject
        if isinstance(subject, Trace):
            told = rank_and_size(subject)
            label = "this rank" if told.rank is None else f"rank {told.rank}"
            member = TraceInJob(label, told.rank, told.size)
            return cls({subject.source: rank_summary(subject)}, {subject.source: member})
        summaries = {path: rank_summary(trace) for path, trace in subject.traces.items()}
        return cls(summaries, subject.members, subject.refused, subject.notes)

    @property
    def size(self) -> int | None:
        """The number of ranks of the job; None if its traces do not agree or do not say."""
        told = {self.members[path].size for path in self._paths_of_latest_run()} - {None}
        return told.pop() if len(told) == 1 else None

    @property
    def missing(self) -> list[int]:
        """The rank numbers for which the job has no trace."""
        told = {self.members[path].rank for path in self._paths_of_latest_run()}
        if None in told or self.size is None:
            return []
        return [rank for rank in range(self.size) if rank not in told]

    def ranks_by_key(self) -> dict[int, RankOfJob]:
        """Returns the ranks by key: the rank number, or a number after all others if unknown.

        Of traces of several jobs only those of the latest count, and of several of one rank the
        latest.
        """
        windows: defaultdict[int, list[str]] = defaultdict(list)
        paths = self._paths_of_latest_run()
        known = [path for path in paths if self.members[path].rank is not None]
        for path in sorted(known, key=lambda path: self.summaries[path].origin):
            rank = self.members[path].rank or 0
            if self.members[path].window is None:
                windows[rank] = []
            windows[rank].append(path)
        unknown = sorted(set(paths) - set(known), key=lambda path: (self.members[path].label, path))
        first = max(windows, default=-1) + 1
        windows |= {key: [path] for key, path in enumerate(unknown, first)}
        return {key: self._merged_rank(paths) for key, paths in sorted(windows.items())}

    def key_of(self, trace: Trace) -> int | None:
        """Returns a trace's rank as a key of `ranks_by_key`; None if the job lacks the trace."""
        keys = (key for key, rank in self.ranks_by_key().items() if trace.source in rank.paths)
        told = rank_and_size(trace).rank
        by_rank = (
            key for key, rank in self.ranks_by_key().items() if rank.rank == told is not None
        )
        return next(chain(keys, by_rank), None)

    def _paths_of_latest_run(self) -> list[str]:
        """Returns the paths of the traces in the folder of the latest run."""
        last = max(self.summaries, key=lambda path: (self.summaries[path].origin, path), default="")
        run = self.members[last].run if last else ""
        return [path for path in self.summaries if self.members[path].run == run]

    def _merged_rank(self, paths: list[str]) -> RankOfJob:
        member = self.members[paths[0]]
        label = member.label if member.rank is None else f"rank {member.rank}"
        return RankOfJob(
            label,
            member.rank,
            _merge_recordings_of_rank([self.summaries[p] for p in paths]),
            tuple(paths),
        )


@cached_per_trace
def collectives_on_one_clock(ranks: Ranks) -> AlignedCollectives:
    """Returns all ranks' collectives with times on one clock; ranks are keys of `ranks_by_key`."""
    return align_collectives_on_one_clock(
        {key: rank.summary for key, rank in ranks.ranks_by_key().items()}
    )


def _merge_recordings_of_rank(summaries: list[RankSummary]) -> RankSummary:
    """Returns one summary of a rank's recordings, with times from the origin of the first one."""
    first = summaries[0]
    if len(summaries) == 1:
        return first
    are_counted = all(summary.steps_before is not None for summary in summaries)
    collectives, steps, arrivals, last_work, step_count, collective_count = [], [], [], [], 0, 0
    for number, summary in enumerate(summaries):
        later = summary.origin - first.origin
        instants = [pl.col(name) + later for name in ("issued", "start", "end")]
        collectives.append(
            summary.collectives.with_columns(
                *instants,
                step=pl.col("step") + (summary.steps_before or 0 if are_counted else 0),
                place=pl.col("place") + step_count,
                window=pl.lit(number, pl.Int64),
                id=pl.lit(None, pl.UInt32),
            )
        )
        steps.append(summary.steps.with_columns(pl.col("begin", "done") + later))
        arrivals.append(summary.arrivals.with_columns(pl.col("before") + collective_count))
        last_work.append(
            summary.work_after_last_collective.with_columns(
                pl.col("before") + collective_count, pl.col("done") + later
            )
        )
        step_count += summary.steps.height
        collective_count += summary.collectives.height
    return replace(
        first,
        collectives=pl.concat(collectives),
        steps=pl.concat(steps),
        arrivals=pl.concat(arrivals),
        work_after_last_collective=pl.concat(last_work),
        work=_sum_rows_of_tables([summary.work for summary in summaries], ("name",)),
        account=_sum_rows_of_tables([summary.account for summary in summaries], ("class",)),
        accounted_steps=sum(summary.accounted_steps for summary in summaries),
        spent=_sum_rows_of_tables(
            [summary.spent for summary in summaries], ("class", *SOURCE_SITE_COLUMNS)
        ),
        steps_before=0 if are_counted else None,
    )


def _sum_rows_of_tables(tables: list[pl.DataFrame], key_columns: tuple[str, ...]) -> pl.DataFrame:
    return pl.concat(tables).group_by(key_columns).agg(pl.all().sum()).sort(key_columns)
