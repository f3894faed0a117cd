"""The graph of a job: the collectives of all its ranks, and the paths between them on each rank.

A collective is one meeting of its ranks: it begins when the last of them arrives, and ends after
its transfer. A send and its receive are a meeting too. Ends of steps and joints
(`graph.paths_between_collectives`) are meetings of one rank.
arrival[n] = max over its paths of (end[before] + lag)
end[n] = max over the nodes of its meeting of arrival + transfer[meeting]
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime.analysis.graph.paths_between_collectives import FROM_BEGIN
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.clocks import RankClock
from selftime.analysis.ranks.job_levels import levels_of_meetings
from selftime.analysis.ranks.job_ranks import RankOfJob, Ranks, collectives_on_one_clock
from selftime.array_types import Floats, Ints

NO_COLLECTIVE: Final = -1
"""Stands for the collective of a node that is none."""
NO_STEP: Final = -1
"""Stands for the step of a node that ends none."""


class JobLevel(NamedTuple):
    """Meetings that do not follow each other, and all paths that lead to them."""

    paths: slice
    """The paths, in order of meeting."""
    first_path: Ints
    """The first of these paths of each meeting, counted from that of the level."""
    meetings: Ints
    nodes: Ints
    """The nodes of these meetings."""
    place: Ints
    """The index in `meetings` of the meeting of each node."""


@dataclass(frozen=True, slots=True, eq=False)
class JobGraph:
    """The nodes of all ranks of a job, their paths and meetings; times in ns from `origin`.

    There are n nodes, in order of rank, m meetings, and p paths, in order of level and meeting.
    """

    origin: int
    """When the first collective began, in ns by the common clock."""
    rank: Ints
    """The rank of each node, a key of `Ranks.ranks_by_key`; shape (n,)."""
    collective: Ints
    """The row of each node in `collectives_on_one_clock`, or `NO_COLLECTIVE`; shape (n,)."""
    step: Ints
    """The row of the step of its rank that each node ends, or `NO_STEP`; shape (n,)."""
    meeting: Ints
    """The meeting of each node; shape (n,)."""
    transfer: Ints
    """How long each meeting takes from the arrival of its last rank on, in ns; shape (m,)."""
    node: Ints
    """The node that each path leads to; shape (p,)."""
    before: Ints
    """The node that each path comes from, or n for the begin of the recording; shape (p,)."""
    lag: Ints
    """The time from the end of that node to the arrival at this one, in ns; shape (p,)."""
    device_time: Ints
    """How long the device work on each path takes, in ns; shape (p,)."""
    usual_device_time: Ints
    """What it would take if each took the mean of all of its rank with its name; shape (p,)."""
    host_time: Ints
    """How long the host works on each path, in ns; shape (p,)."""
    work: Ints
    """The hash of the names of the device work on each path; shape (p,)."""
    levels: tuple[JobLevel, ...]
    """All meetings, so that each level follows from those before it."""

    def ends(self, lag: Floats | None = None, transfer: Floats | None = None) -> Floats:
        """Computes when each node ends, in ns, with the recorded lags and transfers or others.

        Args:
            lag: The lag of each path, in ns, shape (..., p).
            transfer: The transfer of each meeting, in ns, shape (..., m).

        Returns:
            Shape (..., n + 1): the last one is the begin of the recording.
        """
        lags = self.lag.astype(np.float64) if lag is None else lag
        moved = self.transfer.astype(np.float64) if transfer is None else transfer
        shape = np.broadcast_shapes(lags.shape[:-1], moved.shape[:-1])
        end = np.zeros((*shape, self.rank.size + 1))
        for level in self.levels:
            reached = end[..., self.before[level.paths]] + lags[..., level.paths]
            last = np.maximum.reduceat(reached, level.first_path, axis=-1)
            end[..., level.nodes] = (last + moved[..., level.meetings])[..., level.place]
        return end


@cached_per_trace
def job_graph(ranks: Ranks) -> JobGraph:
    """Returns the graph of a job."""
    aligned = collectives_on_one_clock(ranks)
    origin = int(aligned.rows["start"].min() or 0) if aligned.rows.height else 0  # type: ignore[arg-type]  # an integer
    nodes, paths = [], []
    first_node = first_row = 0
    for key, rank in ranks.ranks_by_key().items():
        clock = aligned.clocks.clock_by_rank.get(key, RankClock())
        nodes.append(_nodes_of_rank(key, rank, clock, first_row))
        paths.append(_paths_of_rank(rank, clock, first_node, origin))
        first_node += nodes[-1].height
        first_row += rank.summary.collectives.height
    return _joined_graph(pl.concat(nodes), pl.concat(paths), aligned.rows, origin)


def _nodes_of_rank(key: int, rank: RankOfJob, clock: RankClock, first_row: int) -> pl.DataFrame:
    nodes = rank.summary.path_nodes
    reached = clock.to_reference_times(nodes["time"].to_numpy() + rank.summary.origin)
    return nodes.select(
        pl.lit(key, pl.Int64).alias("rank"),
        (pl.col("collective").cast(pl.Int64) + first_row).fill_null(NO_COLLECTIVE),
        pl.col("step").fill_null(NO_STEP),
    ).with_columns(time=pl.Series(reached, dtype=pl.Int64))


def _paths_of_rank(rank: RankOfJob, clock: RankClock, first_node: int, origin: int) -> pl.DataFrame:
    begin = np.array([rank.summary.origin], np.int64)
    shift = int(clock.to_reference_times(begin)[0]) - origin
    is_first = pl.col("before") == FROM_BEGIN
    return rank.summary.paths.select(
        pl.col("node").cast(pl.Int64) + first_node,
        pl.when(is_first).then("before").otherwise(pl.col("before") + first_node).alias("before"),
        pl.when(is_first).then(pl.col("lag") + shift).otherwise("lag").alias("lag"),
        "device_time",
        "usual_device_time",
        "host_time",
        "work",
    )


def _joined_graph(
    nodes: pl.DataFrame, paths: pl.DataFrame, rows: pl.DataFrame, origin: int
) -> JobGraph:
    collective = nodes["collective"].to_numpy()
    meeting, transfer = _meetings_and_transfers(collective, rows)
    before = pl.when(pl.col("before") == FROM_BEGIN).then(collective.size).otherwise("before")
    paths = paths.with_columns(before.alias("before"))
    reached = np.full(transfer.size, np.iinfo(np.int64).min)
    np.maximum.at(reached, meeting, nodes["time"].to_numpy())
    level, kept = levels_of_meetings(
        meeting, paths["node"].to_numpy(), paths["before"].to_numpy(), reached
    )
    paths = _with_a_path_to_each(paths[kept], meeting, reached - origin)
    of_path = meeting[paths["node"].to_numpy()]
    paths = paths[np.lexsort((paths["node"].to_numpy(), of_path, level[of_path]))]
    columns = {name: paths[name].to_numpy() for name in paths.columns}
    return JobGraph(
        origin,
        nodes["rank"].to_numpy(),
        collective,
        nodes["step"].to_numpy(),
        meeting,
        transfer,
        **columns,
        levels=_levels(meeting, level, columns["node"]),
    )


def _with_a_path_to_each(paths: pl.DataFrame, meeting: Ints, reached: Ints) -> pl.DataFrame:
    """Returns paths with one from the begin to each meeting that has none: it is when it was.

    Such meetings are of a circle, from which all paths to them were left out.
    """
    has_path = np.zeros(reached.size, bool)
    has_path[meeting[paths["node"].to_numpy()]] = True
    alone, node = np.unique(meeting, return_index=True)
    node = node[~has_path[alone]]
    return pl.concat(
        [
            paths,
            pl.DataFrame({"node": node, "lag": reached[meeting[node]]}).select(
                pl.col("node").cast(pl.Int64),
                pl.lit(meeting.size, pl.Int64).alias("before"),
                pl.col("lag").cast(pl.Int64),
                *(pl.lit(0, paths.schema[name]).alias(name) for name in paths.columns[3:]),
            ),
        ]
    )


def _meetings_and_transfers(collective: Ints, rows: pl.DataFrame) -> tuple[Ints, Ints]:
    """Returns the meeting of each node, and how long each meeting takes from its last arrival on.

    That is the shortest of the durations of a collective, that of a rank that did not wait; where
    it is unknown who came last, each rank has a meeting of its own, with its whole duration.
    """
    is_shared = pl.col("match").is_not_null() & pl.col("wait").is_not_null()
    told = rows.select(
        number=pl.when(is_shared).then("match").otherwise(-1 - pl.int_range(pl.len())),
        transfer=pl.when(is_shared).then("transfer").otherwise(pl.col("end") - pl.col("start")),
    )
    number = told["number"].to_numpy()
    is_one = collective != NO_COLLECTIVE
    key = np.arange(collective.size) + int(number.max(initial=0)) + 1
    key[is_one] = number[collective[is_one]]
    _, meeting = np.unique(key, return_inverse=True)
    transfer = np.zeros(int(meeting.max(initial=-1)) + 1, np.int64)
    transfer[meeting[is_one]] = told["transfer"].to_numpy()[collective[is_one]]
    return meeting, transfer


def _levels(meeting: Ints, level: Ints, node_of_path: Ints) -> tuple[JobLevel, ...]:
    """Returns the levels of meetings; paths are in order of level and meeting."""
    of_path = meeting[node_of_path]
    level_of_node = level[meeting]
    order = np.argsort(level_of_node, kind="stable")
    count = int(level.max(initial=-1)) + 1
    path_bounds = np.searchsorted(level[of_path], np.arange(count + 1))
    node_bounds = np.searchsorted(level_of_node[order], np.arange(count + 1))
    found = []
    for paths, nodes in zip(pairwise(path_bounds.tolist()), pairwise(node_bounds), strict=True):
        own, held = of_path[slice(*paths)], order[slice(*nodes)]
        first = np.flatnonzero(np.diff(own, prepend=-1))
        place = np.searchsorted(own[first], meeting[held])
        found.append(JobLevel(slice(*paths), first, own[first], held, place))
    return tuple(found)
