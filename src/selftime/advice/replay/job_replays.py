"""Simulates when collectives end if one rank of a job has less work before them.

A collective begins when its last rank arrives, and ends after its transfer. A rank arrives once it
has done its own work since the collective that its path leads back to, and not before the previous
collective of the same group is done:
end[k] = max over its ranks r of (end[before[r, k]] + work[r, k], end[earlier[r, k]]) + transfer[k].
"""

from itertools import pairwise

import numpy as np
import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.lateness import collectives_with_rounds
from selftime.array_types import Floats, Ints


class JobReplay:
    """A simulation of a job: its collectives, and each rank's work before each of them, in ns."""

    def __init__(self, ranks: Ranks) -> None:
        every = ranks.ranks_by_key()
        self._keys = list(every)
        rows = [every[key].part.rows.height for key in self._keys]
        first = dict(zip(self._keys, np.cumsum([0, *rows[:-1]]).tolist(), strict=True))
        self._arrivals = {key: rank.part.arrivals for key, rank in every.items()}
        table = collectives_with_rounds(ranks).with_columns(
            at=pl.int_range(pl.len(), dtype=pl.Int64)
        )
        self._origin = int(table["start"].min() or 0) if table.height else 0  # type: ignore[arg-type]  # an integer
        self._start = table["start"].to_numpy() - self._origin
        self._before = _rows_that_arrivals_follow(
            [(self._arrivals[key], first[key]) for key in self._keys]
        )
        shortest = pl.coalesce("transfer", pl.col("end") - pl.col("start"))
        ordered = table.select("at", "start", "match", took=shortest).with_columns(
            node=pl.coalesce("match", -1 - pl.col("at"))
        )
        when = pl.col("start").max().over("node")
        ordered = ordered.sort(when, "node", "at", maintain_order=True)
        self._order = ordered["at"].to_numpy()
        node = ordered["node"].to_numpy()
        self._bounds = np.append(np.flatnonzero(np.diff(node, prepend=node[:1] - 1)), node.size)
        self._took = ordered["took"].to_numpy()
        self._previous_rows_of_same_group = _previous_rows_of_same_group(table)
        self._rounds = _CommonCollectiveRounds(table)

    def saving_ns(self, rank_key: int, removed_work: Floats) -> float:
        """Returns by how many ns the mean step is shorter if one rank has `removed_work` less work.

        The mean over the ranks, and over the rounds that all of them recorded, of the time from the
        end of one round to that of the next; 0 if no two such rounds follow each other.

        Args:
            rank_key: One of `Ranks.ranks_by_key`.
            removed_work: For each of its collectives, in their order, shape (n,): how much less
                work it has from the start of the previous one to the start of this one, in ns.
        """
        as_it_was, changed = (
            self._rounds.times_between(
                self._collective_ends_with_less_work(changed_rank, removed_work)
            )
            for changed_rank in (None, rank_key)
        )
        return float(np.mean(as_it_was - changed)) if changed.size else 0.0

    def _collective_ends_with_less_work(
        self, changed_rank: int | None, removed_work: Floats
    ) -> Floats:
        """Returns when each collective ends, in ns, if one rank has `removed_work` less work."""
        return self._simulate_collective_ends(
            np.concatenate(
                [
                    self._work_before_collectives(key, changed_rank, removed_work)
                    for key in self._keys
                ]
            )
        )

    def _work_before_collectives(
        self, rank: int, changed_rank: int | None, removed_work: Floats
    ) -> Floats:
        """Returns the ns of work that one rank does before each of its collectives."""
        table = self._arrivals[rank]
        work = table["work"].to_numpy().astype(np.float64)
        if rank != changed_rank or not work.size:
            return work
        until = np.cumsum(removed_work)
        before = table["before"].cast(pl.Int64).fill_null(-1).to_numpy()
        removed = until - np.where(before < 0, 0.0, until[before])
        return work - np.clip(removed, 0, work)

    def _simulate_collective_ends(self, work: Floats) -> Floats:
        """Returns when each collective ends on each rank, in ns, given the work before it."""
        ends = np.zeros(work.size)
        for low, high in pairwise(self._bounds.tolist()):
            rows = self._order[low:high]
            before, earlier = self._before[rows], self._previous_rows_of_same_group[rows]
            arrived = np.where(before < 0, self._start[rows], ends[before] + work[rows])
            arrived = np.maximum(arrived, np.where(earlier < 0, arrived, ends[earlier]))
            ends[rows] = arrived.max() + self._took[low:high].min()
        return ends


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


def _previous_rows_of_same_group(collectives: pl.DataFrame) -> Ints:
    """Returns for each collective the row of the rank's previous one in its group; -1 if none.

    Only if it ended before this one began.
    """
    before = pl.struct("at", "end").shift(1).over("rank", "group", "group_ranks").alias("before")
    told = collectives.select("start", before).unnest("before")
    over = pl.when(pl.col("end") <= pl.col("start")).then("at").fill_null(-1)
    return told.select(over).to_series().to_numpy().astype(np.int64)


def _rows_that_arrivals_follow(arrivals: list[tuple[pl.DataFrame, int]]) -> Ints:
    """Returns for each arrival at a collective the row of the rank's previous one; -1 if none."""
    told = [
        table.select(pl.col("before").cast(pl.Int64) + first).to_series()
        for table, first in arrivals
    ]
    return np.concatenate([one.fill_null(-1).to_numpy() for one in told])


@cached_per_trace
def job_replay(ranks: Ranks) -> JobReplay:
    """Returns the simulation of a job's collectives, built once for each job."""
    return JobReplay(ranks)
