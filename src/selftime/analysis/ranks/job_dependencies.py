"""The dependencies between the ranks of a job, from which its critical path and replay are read.

A collective begins when its last rank arrives, and ends after its transfer. A rank arrives once it
has done its own work since the collective that its critical path leads back to, and not before the
previous collective of the same group is done:
end[k] = max over its ranks r of (max(end[before[r, k]] + work[r, k], end[previous[r, k]]))
+ transfer[k].
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.clocks import RankClock
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.array_types import Flags, Floats, Ints

NO_ROW: Final = -1
"""Stands for a dependency on no collective: on the begin of the recording."""
_MAX_ORDER_CORRECTIONS: Final = 100
"""Largest number of passes that put collectives after those that they depend on."""


@dataclass(frozen=True, slots=True, eq=False)
class JobTimes:
    """When each rank arrives at each of its collectives, and when that ends, in ns."""

    arrival: Floats
    """When the rank arrives at the collective, in ns."""
    end: Floats
    """When the collective ends, in ns."""
    is_held_by_group: Flags
    """Whether the rank's own work was done, but not the previous collective of the same group."""


@dataclass(frozen=True, slots=True, eq=False)
class JobDependencies:
    """What each rank of a job waits for before its collectives: a row per rank and collective.

    The rows are those of `collectives_on_one_clock`, all times in ns by the common clock, from
    `origin` on. Ranks that took part in one collective share a node; where their clocks are not
    aligned it is unknown who came last, and each rank has a node of its own.
    """

    origin: int
    """When the first collective began, in ns by the common clock; other times count from it."""
    first_row_of_rank: dict[int, int]
    """Maps each rank, a key of `Ranks.ranks_by_key`, to the index of its first row."""
    previous_collective_row: Ints
    """The row of the rank's own collective that its work follows; `NO_ROW` if there is none."""
    begin: Ints
    """When work that follows no collective began, in ns; unused in rows that follow one."""
    work: Ints
    """The rank's own work between `previous_collective_row` and this collective, in ns."""
    previous_of_group: Ints
    """The row of the rank's previous collective of the same group; `NO_ROW` if there is none."""
    transfer: Ints
    """How long the collective takes after its last rank arrived.

    The shortest of its durations, that of a rank that did not wait; on a node of its own the rank's
    duration, with its wait.
    """
    order: Ints
    """The rows in an order in which each node follows the nodes that it depends on."""
    node_bounds: Ints
    """The index in `order` of the first row of each node, and last the number of rows."""

    def times(self, work: Ints | Floats | None = None) -> JobTimes:
        """Computes all arrivals and ends, with the recorded work before collectives or `work`."""
        own_work = self.work if work is None else work
        arrival, end = np.zeros(own_work.size), np.zeros(own_work.size)
        held = np.zeros(own_work.size, bool)
        for low, high in pairwise(self.node_bounds.tolist()):
            rows = self.order[low:high]
            before, previous = self.previous_collective_row[rows], self.previous_of_group[rows]
            begin = np.where(before == NO_ROW, self.begin[rows], end[before])
            arrived = begin + own_work[rows]
            free = np.where(previous == NO_ROW, arrived, end[previous])
            held[rows] = free > arrived
            arrival[rows] = np.maximum(arrived, free)
            end[rows] = arrival[rows].max() + self.transfer[rows[0]]
        return JobTimes(arrival, end, held)

    def last_rows(self, times: JobTimes) -> Ints:
        """Returns for each row that of the rank which arrives last at the same collective."""
        last = np.empty(self.order.size, np.int64)
        for low, high in pairwise(self.node_bounds.tolist()):
            rows = self.order[low:high]
            last[rows] = rows[np.argmax(times.arrival[rows])]
        return last

    def rank_of(self, row: int) -> int:
        """Returns the rank of a row, a key of `Ranks.ranks_by_key`."""
        return max((at, key) for key, at in self.first_row_of_rank.items() if at <= row)[1]


@cached_per_trace
def job_dependencies(ranks: Ranks) -> JobDependencies:
    """Returns what each rank of a job waits for before each collective."""
    table = collectives_on_one_clock(ranks).rows
    summaries = {key: rank.summary for key, rank in ranks.ranks_by_key().items()}
    heights = [summary.collectives.height for summary in summaries.values()]
    first = dict(zip(summaries, np.cumsum([0, *heights[:-1]]).tolist(), strict=False))
    if not table.height:
        none = np.zeros(0, np.int64)
        return JobDependencies(0, first, none, none, none, none, none, none, np.zeros(1, np.int64))
    arrivals = [(summary.arrivals, first[key]) for key, summary in summaries.items()]
    before = np.concatenate([_rows_or_none(one["before"], at) for one, at in arrivals])
    work = np.concatenate([one["work"].to_numpy() for one, _ in arrivals])
    start = table["start"].to_numpy()
    origin = int(start.min())
    previous = _previous_rows_of_same_group(table)
    is_shared = pl.col("match").is_not_null() & pl.col("wait").is_not_null()
    told = table.select(
        node=pl.when(is_shared).then("match").otherwise(-1 - pl.int_range(pl.len())),
        transfer=pl.when(is_shared).then("transfer").otherwise(pl.col("end") - pl.col("start")),
    )
    node = told["node"].rank("dense").to_numpy().astype(np.int64) - 1
    place = _places_of_nodes(node, start - origin, (before, previous))
    order = np.lexsort((np.arange(node.size), node, place[node]))
    bounds = np.append(np.flatnonzero(np.diff(node[order], prepend=-1)), node.size)
    turn = np.empty(node.size, np.int64)
    turn[order] = np.repeat(np.arange(bounds.size - 1), np.diff(bounds))
    before, previous = (_earlier_rows(rows, turn) for rows in (before, previous))
    return JobDependencies(
        origin,
        first,
        before,
        start - origin - work,
        work,
        previous,
        told["transfer"].to_numpy(),
        order,
        bounds,
    )


@dataclass(frozen=True, slots=True)
class RankFinish:
    """When a rank finished its last step: its work after the last collective, and what precedes."""

    previous_collective_row: int
    """The row of the collective that the work follows; `NO_ROW` if there is none."""
    begin: int
    """When the work began if it follows no collective, in ns."""
    work: int
    """The work, in ns."""

    def time(self, times: JobTimes) -> float:
        """Returns when the rank finishes its last step, in ns, from the ends of collectives."""
        if self.previous_collective_row == NO_ROW:
            return float(self.begin + self.work)
        return float(times.end[self.previous_collective_row]) + self.work


def rank_finishes(ranks: Ranks) -> dict[int, RankFinish]:
    """Returns for each rank with a step when it finished the last one."""
    dependencies, clocks = (
        job_dependencies(ranks),
        collectives_on_one_clock(ranks).clocks.clock_by_rank,
    )
    finishes = {}
    for key, rank in ranks.ranks_by_key().items():
        if not rank.summary.work_after_last_collective.height:
            continue
        tail = rank.summary.work_after_last_collective.row(-1, named=True)
        done = np.array([tail["done"] + rank.summary.origin], np.int64)
        done_on_clock = int(clocks.get(key, RankClock()).to_reference_times(done)[0])
        before = (
            NO_ROW
            if tail["before"] is None
            else dependencies.first_row_of_rank[key] + tail["before"]
        )
        begin = done_on_clock - dependencies.origin - tail["work"]
        finishes[key] = RankFinish(before, begin, tail["work"])
    return finishes


def _rows_or_none(before: pl.Series, first_row: int) -> Ints:
    """Converts a rank's own collective numbers to row numbers; null becomes `NO_ROW`."""
    return (before.cast(pl.Int64) + first_row).fill_null(NO_ROW).to_numpy()


def _previous_rows_of_same_group(collectives: pl.DataFrame) -> Ints:
    """Returns for each collective the row of the rank's previous one in its group; -1 if none.

    Only if it ended before this one began.
    """
    at = pl.int_range(pl.len(), dtype=pl.Int64).alias("at")
    told = collectives.select(at, "start", "end", "rank", "group", "group_ranks")
    before = pl.struct("at", "end").shift(1).over("rank", "group", "group_ranks").alias("before")
    told = told.select("start", before).unnest("before")
    over = pl.when(pl.col("end") <= pl.col("start")).then("at").fill_null(NO_ROW)
    return told.select(over).to_series().to_numpy().astype(np.int64)


def _places_of_nodes(node: Ints, start: Ints, dependencies: tuple[Ints, ...]) -> Ints:
    """Returns a sort time per node: its last rank's begin, moved after nodes it depends on.

    A rank may end its part of a collective, such as a broadcast, before another rank begins: what
    it does next may have begun before the last rank of that collective.
    """
    place = np.full(int(node.max()) + 1, start.min())
    np.maximum.at(place, node, start)
    for _ in range(_MAX_ORDER_CORRECTIONS):
        earlier = place.copy()
        for rows in dependencies:
            known = rows != NO_ROW
            np.maximum.at(place, node[known], place[node[rows[known]]] + 1)
        if (earlier == place).all():
            break
    return place


def _earlier_rows(rows: Ints, turn: Ints) -> Ints:
    """Drops dependencies on nodes that do not come earlier in the order.

    Collectives of different ranks that are taken for one by mistake may depend on each other.
    """
    return np.where((rows != NO_ROW) & (turn[rows] < turn), rows, NO_ROW)
