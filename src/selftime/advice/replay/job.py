"""The what-if of a job: when its ranks come to what they do together, if one had less to do.

A collective begins when its last rank has come, and ends after its transfer. A rank comes to it as
long after the end of the collective that its path leads back to as its own work takes, and not
before the one of the same group is done that it came after:
end[k] = max over its ranks r of (end[before[r, k]] + work[r, k], end[earlier[r, k]]) + transfer[k].
"""

from itertools import pairwise

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.ranks.lateness import with_rounds
from selftime.analysis.ranks.ranks import Ranks
from selftime.arrays import Floats, Ints


class JobReplay:
    """The collectives of a job, and what each rank does between them. Times in ns."""

    def __init__(self, ranks: Ranks) -> None:
        every = ranks.by_key()
        self._keys = list(every)
        rows = [every[key].part.rows.height for key in self._keys]
        first = dict(zip(self._keys, np.cumsum([0, *rows[:-1]]).tolist(), strict=True))
        self._arrivals = {key: rank.part.arrivals for key, rank in every.items()}
        table = with_rounds(ranks).with_columns(at=pl.int_range(pl.len(), dtype=pl.Int64))
        self._origin = int(table["start"].min() or 0) if table.height else 0  # type: ignore[arg-type]  # an integer
        self._start = table["start"].to_numpy() - self._origin
        self._before = _flat([(self._arrivals[key], first[key]) for key in self._keys])
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
        self._earlier = _earlier(table)
        self._rounds = _Rounds(table)

    def saving(self, key: int, less: Floats) -> float:
        """What a step takes less, in ns, if the rank `key` has less to do.

        The mean over the ranks, and over the rounds that all of them recorded, of the time from the
        end of one round to that of the next; 0 if no two such rounds follow each other.

        Args:
            key: One of `Ranks.by_key`.
            less: For each of its collectives, in their order, shape (n,): how much less it has to
                do from the start of the one before to the start of this one, in ns.
        """
        as_it_was, changed = (self._rounds.apart(self._ends_with(k, less)) for k in (None, key))
        return float(np.mean(as_it_was - changed)) if changed.size else 0.0

    def _ends_with(self, rank: int | None, less: Floats) -> Floats:
        return self._ends(np.concatenate([self._work(key, rank, less) for key in self._keys]))

    def _work(self, key: int, rank: int | None, less: Floats) -> Floats:
        """What it does before each of its collectives."""
        table = self._arrivals[key]
        work = table["work"].to_numpy().astype(np.float64)
        if key != rank or not work.size:
            return work
        until = np.cumsum(less)
        before = table["before"].cast(pl.Int64).fill_null(-1).to_numpy()
        removed = until - np.where(before < 0, 0.0, until[before])
        return work - np.clip(removed, 0, work)

    def _ends(self, work: Floats) -> Floats:
        """The end of every collective on every rank, in the order of the ranks' tables."""
        ends = np.zeros(work.size)
        for low, high in pairwise(self._bounds.tolist()):
            rows = self._order[low:high]
            before, earlier = self._before[rows], self._earlier[rows]
            arrived = np.where(before < 0, self._start[rows], ends[before] + work[rows])
            arrived = np.maximum(arrived, np.where(earlier < 0, arrived, ends[earlier]))
            ends[rows] = arrived.max() + self._took[low:high].min()
        return ends


class _Rounds:
    """Where the rounds that every rank recorded end, and which follow each other."""

    def __init__(self, table: pl.DataFrame) -> None:
        """Take `with_rounds`, and at, the place of each row."""
        known = table.drop_nulls("round")
        present = pl.col("rank").n_unique().over("round")
        known = known.filter(present == present.max()).sort("rank", "window", "round")
        self._at = known["at"].to_numpy()
        of = known.select(pl.struct("rank", "window", "round").rle_id()).to_series().to_numpy()
        self._first = np.flatnonzero(np.diff(of, prepend=-1))
        ended = known.select("rank", "window", "round")[self._first]
        follows = (pl.col("round").diff() == 1) & (pl.struct("rank", "window").rle_id().diff() == 0)
        self._follows = ended.select(follows.fill_null(value=False)).to_series().to_numpy()

    def apart(self, ends: Floats) -> Floats:
        """The times from the end of each round to that of the next, rank after rank."""
        if not self._first.size:
            return np.zeros(0)
        last: Floats = np.maximum.reduceat(ends[self._at], self._first)
        between: Floats = (last[1:] - last[:-1])[self._follows[1:]]
        return between


def _earlier(rows: pl.DataFrame) -> Ints:
    """The row before of the same rank and group, if it was over when this began; else -1."""
    before = pl.struct("at", "end").shift(1).over("rank", "group", "group_ranks").alias("before")
    told = rows.select("start", before).unnest("before")
    over = pl.when(pl.col("end") <= pl.col("start")).then("at").fill_null(-1)
    return told.select(over).to_series().to_numpy().astype(np.int64)


def _flat(tables: list[tuple[pl.DataFrame, int]]) -> Ints:
    """Which row of all ranks' tables each arrival leads back to; -1 if to none."""
    told = [
        table.select(pl.col("before").cast(pl.Int64) + first).to_series() for table, first in tables
    ]
    return np.concatenate([one.fill_null(-1).to_numpy() for one in told])


@cached_per_trace
def job_replay(ranks: Ranks) -> JobReplay:
    return JobReplay(ranks)
