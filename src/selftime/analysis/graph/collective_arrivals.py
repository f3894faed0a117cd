"""Finds how each rank spent the time between two collectives, from its critical path between them.

A critical path that is followed back from an instant first reaches the end of some collective.
Between the two the rank does not depend on others: when it comes to a collective follows from when
it was done with the previous one, and how long its own work then took.
"""

from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.graph.binding_edges import (
    CriticalPathEdges,
    concatenate_edges,
    dependency_edges_into_nodes,
    dependency_edges_into_step_ends,
    select_edges,
)
from selftime.analysis.graph.building import CriticalPathNodes, critical_path_nodes
from selftime.analysis.graph.critical_path import segments_of_edges, segments_of_nodes
from selftime.analysis.graph.dependency_graphs import CODE_OF_SEGMENT_KIND, PATH_SEGMENT_KINDS
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.analysis.steps.step_boundaries import recording_window
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

OWN_WORK_KINDS: Final = tuple(kind for kind in PATH_SEGMENT_KINDS if kind != "communication")
"""The kinds of critical path segments that are a rank's own work: all but communication."""
COLLECTIVE_ARRIVALS_SCHEMA: Final = {
    "before": pl.UInt32,
    "work": pl.Int64,
    **dict.fromkeys(OWN_WORK_KINDS, pl.Int64),
    **{f"{kind}_slice": pl.UInt32 for kind in OWN_WORK_KINDS},
}
"""Columns of `work_before_collectives`; times in ns."""
STEP_TAILS_SCHEMA: Final = {
    "step": pl.Int64,
    "counted": pl.Boolean,
    "done": pl.Int64,
    **COLLECTIVE_ARRIVALS_SCHEMA,
}
"""Columns of `work_after_collectives`; times in ns."""


@cached_per_trace
def work_before_collectives(trace: Trace) -> pl.DataFrame:
    """Returns for each collective how its rank spent the time since the previous collective.

    Columns: before, the row of the collective whose end the path back from the start of this one
    reaches first, null if it reaches the begin of the recording; work, the time between both, in
    ns; of that each of `OWN_WORK_KINDS`, in ns, which add up to it; and for each kind the slice of
    its longest segment, null if there is none or it has no slice. Where clocks differ, or work of
    one stream overlaps, a path may enter a collective before its end: work is then the time since
    that instant.
    """
    found = collectives_of_trace(trace)
    at = _graph_nodes_of_collectives(trace, found)
    return _own_work_rows_of_edges(
        trace, found, select_edges(dependency_edges_into_nodes(trace), at), at
    )


@cached_per_trace
def work_after_collectives(trace: Trace) -> pl.DataFrame:
    """Returns for each step how the rank spent the time from its last collective to the step's end.

    Columns: step, its number; counted, whether it is typical; done, in ns; and those of
    `work_before_collectives`, for the path back from `done`.
    """
    steps = steps_with_counted_flags(trace)
    end, done = steps["end"].to_numpy(), steps["done"].to_numpy()
    into = dependency_edges_into_step_ends(trace, end, done)
    found = _own_work_rows_of_edges(
        trace, collectives_of_trace(trace), into, np.full(done.size, NO_SLICE)
    )
    return steps.select(step="number", counted="counted", done="done").hstack(found)


def _graph_nodes_of_collectives(trace: Trace, collective_rows: pl.DataFrame) -> Ints:
    """Returns the node index of each collective in the dependency graph; -1 if it has no node."""
    number = np.full(trace.slices.height, NO_SLICE)
    nodes = critical_path_nodes(trace)
    number[nodes.id] = np.arange(nodes.id.size)
    return np.asarray(number[collective_rows["id"].to_numpy()], np.int64)


def _own_work_rows_of_edges(
    trace: Trace, collective_rows: pl.DataFrame, edges: CriticalPathEdges, origin_nodes: Ints
) -> pl.DataFrame:
    """Returns for each edge the time (ns), by kind, on the path back to the previous collective."""
    nodes = critical_path_nodes(trace)
    passed, walks = _nodes_visited_before_collectives(
        nodes, dependency_edges_into_nodes(trace).previous_node, edges.previous_node
    )
    every = concatenate_edges(edges, select_edges(dependency_edges_into_nodes(trace), passed))
    origin_nodes = np.append(origin_nodes, passed)
    edge = np.full(nodes.id.size + 1, NO_SLICE)
    edge[passed] = edges.begin.size + np.arange(passed.size)
    sums = _PathSegmentTotals(
        _segment_sums_by_edge(trace, every, origin_nodes, edge), edge[every.previous_node]
    )
    sums.extend_to_path_ends(edges.begin.size, edges.begin.size + walks)
    row = np.full(nodes.id.size + 1, NO_SLICE)
    row[_graph_nodes_of_collectives(trace, collective_rows)] = np.arange(collective_rows.height)
    own = slice(edges.begin.size)
    before = row[every.previous_node[sums.last[own]]]
    columns = {
        "before": _slice_ids_or_null(before),
        "work": pl.Series(sums.time[own].sum(axis=1)),
        **{kind: pl.Series(sums.time[own, CODE_OF_SEGMENT_KIND[kind]]) for kind in OWN_WORK_KINDS},
        **{
            f"{kind}_slice": _slice_ids_or_null(sums.slice[own, CODE_OF_SEGMENT_KIND[kind]])
            for kind in OWN_WORK_KINDS
        },
    }
    return pl.DataFrame(columns, schema=COLLECTIVE_ARRIVALS_SCHEMA)


def _slice_ids_or_null(numbers: Ints) -> pl.Series:
    """Returns the numbers as a series of slice ids, with null in place of -1."""
    found = pl.Series(numbers, dtype=pl.Int64)
    return found.set(found == NO_SLICE, None).cast(pl.UInt32)


def _nodes_visited_before_collectives(
    nodes: CriticalPathNodes, next_node: Ints, first_nodes: Ints
) -> tuple[Ints, Ints]:
    """Returns the distinct nodes that critical paths visit on their way back to a collective.

    They are in the order of the paths: each path is walked to its end, or to a node that one
    before it has visited. The second array has where each walk begins in the first, and its size.
    """
    onward = np.where(
        nodes.kind == CODE_OF_SEGMENT_KIND["communication"], NO_SLICE, np.arange(nodes.kind.size)
    )
    onward = np.append(onward, NO_SLICE)
    begin, after = onward[first_nodes].tolist(), onward[next_node].tolist()
    seen = bytearray(len(after))
    passed: list[int] = []
    walks: list[int] = []
    for first_at in begin:
        at = first_at
        if at != NO_SLICE and not seen[at]:
            walks.append(len(passed))
        while at != NO_SLICE and not seen[at]:
            seen[at] = 1
            passed.append(at)
            at = after[at]
    return np.array(passed, np.int64), np.array([*walks, len(passed)], np.int64)


def _segment_sums_by_edge(
    trace: Trace, edges: CriticalPathEdges, origin_nodes: Ints, edge_of_node: Ints
) -> pl.DataFrame:
    """Returns each edge's time (ns) by segment kind, including the time in the node it leads to."""
    every = np.arange(edges.begin.size)
    low = np.full(every.size, recording_window(trace)[0])
    tables = [
        _time_and_longest_segment(table)
        for table in segments_of_edges(trace, edges, every, origin_nodes, low)
    ]
    into = np.flatnonzero(edge_of_node[edges.previous_node] != NO_SLICE)
    node = edges.previous_node[into]
    there = segments_of_nodes(
        trace, into, node, low[into], edges.previous_node_reached_at[into], edges.link_code[into]
    )
    return pl.concat([*tables, _time_and_longest_segment(there)])


def _time_and_longest_segment(segments: pl.DataFrame) -> pl.DataFrame:
    """Returns, by edge and kind, the total segment time (ns) and the longest segment's slice."""
    length = (pl.col("end") - pl.col("start")).alias("length")
    ordered = segments.select("edge", "kind", "slice", length).sort("length", descending=True)
    parts = ordered.group_by("edge", "kind", maintain_order=True)
    return parts.agg(
        time=pl.col("length").sum(),
        longest=pl.col("length").first(),
        slice=pl.col("slice").first(),
    )


class _PathSegmentTotals:
    """Time (ns) and longest slice of each path by segment kind, and the last edge of each path."""

    def __init__(self, segment_sums: pl.DataFrame, next_edge: Ints) -> None:
        shape = (next_edge.size, len(PATH_SEGMENT_KINDS))
        self._next_edge = next_edge
        self.last = np.arange(next_edge.size)
        self.time = np.zeros(shape, np.int64)
        self.longest = np.zeros(shape, np.int64)
        self.slice = np.full(shape, NO_SLICE, np.int64)
        at = segment_sums["edge"].to_numpy(), segment_sums["kind"].to_numpy()
        np.add.at(self.time, at, segment_sums["time"].to_numpy())
        order = np.argsort(
            segment_sums["longest"].to_numpy(), kind="stable"
        )  # the longest is assigned last
        at = at[0][order], at[1][order]
        self.longest[at] = segment_sums["longest"].to_numpy()[order]
        self.slice[at] = segment_sums["slice"].to_numpy()[order]

    def extend_to_path_ends(self, first_edge_of_walks: int, walks: Ints) -> None:
        """Adds up the sums of single edges along each whole path.

        Args:
            first_edge_of_walks: The edges before it begin paths, and follow no other edge.
            walks: Where each stretch of edges that follow each other begins, and the end of all.
                What follows a stretch belongs to an earlier one.
        """
        for low, high in pairwise(walks.tolist()):
            self._append_following_paths(np.arange(high - 1, high))
            self._extend_along(slice(low, high))
        self._append_following_paths(np.arange(first_edge_of_walks))

    def _append_following_paths(self, edges: Ints) -> None:
        """Adds to edges the whole path from the edge that follows each."""
        edges = edges[self._next_edge[edges] != NO_SLICE]
        onward = self._next_edge[edges]
        self.time[edges] += self.time[onward]
        longer = self.longest[onward] > self.longest[edges]
        for column in (self.slice, self.longest):
            column[edges] = np.where(longer, column[onward], column[edges])
        self.last[edges] = self.last[onward]

    def _extend_along(self, walk: slice) -> None:
        """Adds up edges that follow each other, from the last, whose path is known."""
        backward = slice(walk.stop - 1, walk.start - 1 if walk.start else None, -1)
        self.time[backward] = np.cumsum(self.time[backward], axis=0)
        own = self.longest[backward]
        longest = np.maximum.accumulate(own, axis=0)
        place = np.arange(own.shape[0])[:, None]
        holder = np.maximum.accumulate(np.where(own == longest, place, 0), axis=0)
        self.slice[backward] = np.take_along_axis(self.slice[backward], holder, axis=0)
        self.longest[backward] = longest
        self.last[walk] = self.last[walk.stop - 1]
