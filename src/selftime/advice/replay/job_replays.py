"""Simulates when collectives end if one rank of a job has less work before them.

What the collectives wait for is in `analysis/ranks/job_dependencies.py`.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.job_dependencies import NO_ROW, job_dependencies
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.lateness import collectives_with_rounds
from selftime.array_types import Floats

_MIN_SHARE_OF_KNOWN_WAITS: Final = 0.5
"""Smallest share (0 to 1) of collectives that must follow known ones for a saving to be told."""


class JobReplay:
    """A simulation of a job: its collectives, and each rank's work before each of them, in ns."""

    def __init__(self, ranks: Ranks) -> None:
        self.dependencies = job_dependencies(ranks)
        self._rounds = _CommonCollectiveRounds(
            collectives_with_rounds(ranks).with_columns(at=pl.int_range(pl.len(), dtype=pl.Int64))
        )

    @property
    def can_tell(self) -> bool:
        """Whether it is known of most collectives which earlier ones the ranks waited for.

        It is not where a host waits for collectives of another thread in calls that are not
        recorded: the waits of other ranks then count as their work, which nothing shortens.
        """
        before = self.dependencies.previous_collective_row
        return bool(np.mean(before != NO_ROW) > _MIN_SHARE_OF_KNOWN_WAITS) if before.size else False

    def saving_ns(self, rank_key: int, removed_work: Floats) -> float:
        """Returns by how many ns the mean step is shorter if one rank has `removed_work` less work.

        The mean over the ranks, and over the rounds that all of them recorded, of the time from the
        end of one round to that of the next; 0 if no two such rounds follow each other.

        Args:
            rank_key: One of `Ranks.ranks_by_key`.
            removed_work: For each of its collectives, in their order, shape (n,): how much less
                work it has from the start of the previous one to the start of this one, in ns.
        """
        work = self._work_with_less_of_rank(rank_key, removed_work)
        as_it_was, changed = (
            self._rounds.times_between(self.dependencies.times(much).end) for much in (None, work)
        )
        return float(np.mean(as_it_was - changed)) if changed.size else 0.0

    def _work_with_less_of_rank(self, rank_key: int, removed_work: Floats) -> Floats:
        """Returns the ns of work before each collective if one rank has `removed_work` less."""
        work = self.dependencies.work.astype(np.float64)
        if not removed_work.size:
            return work
        first = self.dependencies.first_row_of_rank[rank_key]
        own = slice(first, first + removed_work.size)
        before = self.dependencies.previous_collective_row[own]
        until = np.cumsum(removed_work)
        known = before != NO_ROW
        removed = until.copy()
        removed[known] -= until[before[known] - first]
        work[own] -= np.clip(removed, 0, work[own])
        return work


class _CommonCollectiveRounds:
    """Steps whose collectives every rank recorded, to measure the time from step to step."""

    def __init__(self, table: pl.DataFrame) -> None:
        """Indexes the collectives in `table` by rank and step; its column `at` is the row index."""
        known = table.drop_nulls("round")
        present = pl.col("rank").n_unique().over("round")
        known = known.filter(present == present.max()).sort("rank", "window", "round")
        self._at = known["at"].to_numpy()
        of = known.select(pl.struct("rank", "window", "round").rle_id()).to_series().to_numpy()
        self._first = np.flatnonzero(np.diff(of, prepend=-1))
        ended = known.select("rank", "window", "round")[self._first]
        follows = (pl.col("round").diff() == 1) & (pl.struct("rank", "window").rle_id().diff() == 0)
        self._follows = ended.select(follows.fill_null(value=False)).to_series().to_numpy()

    def times_between(self, ends: Floats) -> Floats:
        """Returns the ns between the ends of successive steps, one rank after the other."""
        if not self._first.size:
            return np.zeros(0)
        last: Floats = np.maximum.reduceat(ends[self._at], self._first)
        between: Floats = (last[1:] - last[:-1])[self._follows[1:]]
        return between


@cached_per_trace
def job_replay(ranks: Ranks) -> JobReplay:
    """Returns the simulation of a job's collectives, built once for each job."""
    return JobReplay(ranks)
