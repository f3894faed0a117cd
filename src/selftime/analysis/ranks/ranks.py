"""The ranks of a job: what each one's trace tells, laid side by side."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.ranks.aligned_collectives import Joined, joined
from selftime.analysis.ranks.membership import place
from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.analysis.sites import SITE
from selftime.trace import Job, Member, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Rank:
    """One rank of a job."""

    label: str
    rank: int | None
    """Null if nothing tells it."""
    part: RankSummary
    """Of all windows in which it was recorded."""
    paths: tuple[str, ...]
    """Of its traces, in order of time."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """What the traces of one job tell, by path: small, and all that views across ranks need."""

    parts: Mapping[str, RankSummary]
    members: Mapping[str, Member]
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Files that could not be read, and why."""
    notes: tuple[str, ...] = ()
    """What is odd about the ranks: missing, there twice, or unknown. One sentence each."""

    @classmethod
    def of(cls, subject: "Trace | Job | Ranks") -> "Ranks":
        """The ranks of what is in hand: of a trace it alone."""
        if isinstance(subject, Ranks):
            return subject
        if isinstance(subject, Trace):
            told = place(subject)
            label = "this rank" if told.rank is None else f"rank {told.rank}"
            member = Member(label, told.rank, told.size)
            return cls({subject.source: rank_summary(subject)}, {subject.source: member})
        parts = {path: rank_summary(trace) for path, trace in subject.traces.items()}
        return cls(parts, subject.members, subject.refused, subject.notes)

    @property
    def size(self) -> int | None:
        """How many ranks the job has, if its traces agree on it."""
        told = {self.members[path].size for path in self._latest_run()} - {None}
        return told.pop() if len(told) == 1 else None

    @property
    def missing(self) -> list[int]:
        """The ranks of which there is no trace."""
        told = {self.members[path].rank for path in self._latest_run()}
        if None in told or self.size is None:
            return []
        return [rank for rank in range(self.size) if rank not in told]

    def by_key(self) -> dict[int, Rank]:
        """Each rank by its number; those whose number nothing tells come after, in order of label.

        Of traces of several jobs those of the latest count, and of several of one rank the latest.
        """
        windows: defaultdict[int, list[str]] = defaultdict(list)
        paths = self._latest_run()
        known = [path for path in paths if self.members[path].rank is not None]
        for path in sorted(known, key=lambda path: self.parts[path].origin):
            rank = self.members[path].rank or 0
            if self.members[path].window is None:
                windows[rank] = []
            windows[rank].append(path)
        unknown = sorted(set(paths) - set(known), key=lambda path: (self.members[path].label, path))
        first = max(windows, default=-1) + 1
        windows |= {key: [path] for key, path in enumerate(unknown, first)}
        return {key: self._rank(paths) for key, paths in sorted(windows.items())}

    def key_of(self, trace: Trace) -> int | None:
        """The key of the rank that a trace is of; None if it is not of these."""
        keys = (key for key, rank in self.by_key().items() if trace.source in rank.paths)
        told = place(trace).rank
        by_rank = (key for key, rank in self.by_key().items() if rank.rank == told is not None)
        return next(chain(keys, by_rank), None)

    def _latest_run(self) -> list[str]:
        """The paths of the job that was recorded last: of one folder, but for those of ranks."""
        last = max(self.parts, key=lambda path: (self.parts[path].origin, path), default="")
        run = self.members[last].run if last else ""
        return [path for path in self.parts if self.members[path].run == run]

    def _rank(self, paths: list[str]) -> Rank:
        member = self.members[paths[0]]
        label = member.label if member.rank is None else f"rank {member.rank}"
        return Rank(label, member.rank, _whole([self.parts[p] for p in paths]), tuple(paths))


@cached_per_trace
def joined_ranks(ranks: Ranks) -> Joined:
    """The collectives of all ranks by one clock, by the keys of `Ranks.by_key`."""
    return joined({key: rank.part for key, rank in ranks.by_key().items()})


def _whole(windows: list[RankSummary]) -> RankSummary:
    """One part of several windows of a rank, its times from the origin of the first."""
    first = windows[0]
    if len(windows) == 1:
        return first
    rows, steps, arrivals, tails, places, before = [], [], [], [], 0, 0
    for number, part in enumerate(windows):
        later = part.origin - first.origin
        instants = [pl.col(name) + later for name in ("issued", "start", "end")]
        rows.append(
            part.rows.with_columns(
                *instants,
                place=pl.col("place") + places,
                window=pl.lit(number, pl.Int64),
                id=pl.lit(None, pl.UInt32),
            )
        )
        steps.append(part.steps.with_columns(pl.col("begin", "done") + later))
        arrivals.append(part.arrivals.with_columns(pl.col("before") + before))
        tails.append(part.tails.with_columns(pl.col("before") + before, pl.col("done") + later))
        places += part.steps.height
        before += part.rows.height
    return replace(
        first,
        rows=pl.concat(rows),
        steps=pl.concat(steps),
        arrivals=pl.concat(arrivals),
        tails=pl.concat(tails),
        lines=_summed([part.lines for part in windows], SITE),
        work=_summed([part.work for part in windows], ("name",)),
    )


def _summed(tables: list[pl.DataFrame], key: tuple[str, ...]) -> pl.DataFrame:
    return pl.concat(tables).group_by(key).agg(pl.all().sum()).sort(key)
