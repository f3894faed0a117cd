"""From each collective back to the collective before it on the path, and the rank's work between.

The critical path back from an instant comes to the end of some collective first. Between both the
rank is on its own: who comes to a collective, and when, follows from when the rank was done with
the one before and how long its work then took.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.binding_edges import (
    Edges,
    edges_into_nodes,
    edges_into_step_ends,
    joined,
    picked,
)
from selftime.analysis.graph.nodes import Nodes, nodes_of
from selftime.analysis.graph.segment_kinds import CODE, KINDS
from selftime.analysis.graph.segments import segments_of_edges, segments_of_nodes
from selftime.analysis.ranks.collectives import collectives
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.analysis.steps.step_boundaries import window
from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace

WORK: Final = tuple(kind for kind in KINDS if kind != "communication")
"""Kinds of a rank's own work."""
ARRIVALS: Final = {
    "before": pl.UInt32,
    "work": pl.Int64,
    **dict.fromkeys(WORK, pl.Int64),
    **{f"{kind}_slice": pl.UInt32 for kind in WORK},
}
TAILS: Final = {"step": pl.Int64, "counted": pl.Boolean, "done": pl.Int64, **ARRIVALS}


@cached_per_trace
def arrivals(trace: Trace) -> pl.DataFrame:
    """How the rank came to each of `collectives`, in order.

    Columns: before, the row of the collective at whose end the path back from the start of this one
    arrives first, null if it comes to the begin of the recording; work, the time in between, in ns;
    of that each kind of `WORK`, in ns, which add up to it; and for each kind the slice of its
    longest segment, null if there is none or it has no slice. Where clocks differ, or work of one
    stream overlaps, a path may come into a collective before its end: work is the time since then.
    """
    found = collectives(trace)
    at = _places(trace, found)
    return _answered(trace, found, picked(edges_into_nodes(trace), at), at)


@cached_per_trace
def tails(trace: Trace) -> pl.DataFrame:
    """How each judged step comes to its end after its last collective, in order of time.

    Columns: step, its number; counted, whether it is typical; done, in ns; and those of `arrivals`,
    of the path back from `done`.
    """
    steps = assessed_steps(trace)
    end, done = steps["end"].to_numpy(), steps["done"].to_numpy()
    into = edges_into_step_ends(trace, end, done)
    found = _answered(trace, collectives(trace), into, np.full(done.size, NONE))
    return steps.select(step="number", counted="counted", done="done").hstack(found)


def _places(trace: Trace, found: pl.DataFrame) -> Ints:
    """The node of each collective."""
    number = np.full(trace.slices.height, NONE)
    nodes = nodes_of(trace)
    number[nodes.id] = np.arange(nodes.id.size)
    return np.asarray(number[found["id"].to_numpy()], np.int64)


def _answered(trace: Trace, found: pl.DataFrame, asked: Edges, origin: Ints) -> pl.DataFrame:
    """The answer for some edges, each of which leads back from a node of `origin` or from none."""
    nodes = nodes_of(trace)
    passed = _passed(nodes, edges_into_nodes(trace).next, asked.next)
    every = joined(asked, picked(edges_into_nodes(trace), passed))
    origin = np.append(origin, passed)
    edge = np.full(nodes.id.size + 1, NONE)
    edge[passed] = asked.begin.size + np.arange(passed.size)
    sums = _Sums(_segments(trace, every, origin, edge), edge[every.next])
    sums.follow()
    row = np.full(nodes.id.size + 1, NONE)
    row[_places(trace, found)] = np.arange(found.height)
    own = slice(asked.begin.size)
    before = row[every.next[sums.last[own]]]
    columns = {
        "before": _ids(before),
        "work": pl.Series(sums.time[own].sum(axis=1)),
        **{kind: pl.Series(sums.time[own, CODE[kind]]) for kind in WORK},
        **{f"{kind}_slice": _ids(sums.slice[own, CODE[kind]]) for kind in WORK},
    }
    return pl.DataFrame(columns, schema=ARRIVALS)


def _ids(numbers: Ints) -> pl.Series:
    found = pl.Series(numbers, dtype=pl.Int64)
    return found.set(found == NONE, None).cast(pl.UInt32)


def _passed(nodes: Nodes, following: Ints, first: Ints) -> Ints:
    """The nodes that paths pass through until they come to a collective; each once."""
    onward = np.where(nodes.kind == CODE["communication"], NONE, np.arange(nodes.kind.size))
    onward = np.append(onward, NONE)
    begin, after = onward[first].tolist(), onward[following].tolist()
    seen = bytearray(len(after))
    passed: list[int] = []
    for first_at in begin:
        at = first_at
        while at != NONE and not seen[at]:
            seen[at] = 1
            passed.append(at)
            at = after[at]
    return np.array(passed, np.int64)


def _segments(trace: Trace, edges: Edges, origin: Ints, place: Ints) -> pl.DataFrame:
    """What each edge adds to a path: its own segments, and the node that it leads to and into."""
    every = np.arange(edges.begin.size)
    low = np.full(every.size, window(trace)[0])
    tables = [_largest(table) for table in segments_of_edges(trace, edges, every, origin, low)]
    into = np.flatnonzero(place[edges.next] != NONE)
    node = edges.next[into]
    there = segments_of_nodes(trace, into, node, low[into], edges.enter[into], edges.link[into])
    return pl.concat([*tables, _largest(there)])


def _largest(table: pl.DataFrame) -> pl.DataFrame:
    """By edge and kind: time, and the longest segment's time and slice."""
    length = (pl.col("end") - pl.col("start")).alias("length")
    ordered = table.select("edge", "kind", "slice", length).sort("length", descending=True)
    parts = ordered.group_by("edge", "kind", maintain_order=True)
    return parts.agg(
        time=pl.col("length").sum(),
        longest=pl.col("length").first(),
        slice=pl.col("slice").first(),
    )


class _Sums:
    """What paths add up to, edge by edge: times and longest slices by kind, and the last edges."""

    def __init__(self, parts: pl.DataFrame, following: Ints) -> None:
        shape = (following.size, len(KINDS))
        self._following = following
        self.last = np.arange(following.size)
        self.time = np.zeros(shape, np.int64)
        self.longest = np.zeros(shape, np.int64)
        self.slice = np.full(shape, NONE, np.int64)
        at = parts["edge"].to_numpy(), parts["kind"].to_numpy()
        np.add.at(self.time, at, parts["time"].to_numpy())
        order = np.argsort(parts["longest"].to_numpy(), kind="stable")  # the longest is set last
        at = at[0][order], at[1][order]
        self.longest[at] = parts["longest"].to_numpy()[order]
        self.slice[at] = parts["slice"].to_numpy()[order]

    def follow(self) -> None:
        """Go on to the edges that follow: with each turn twice as far."""
        jump = self._following.copy()
        while (open_ := np.flatnonzero(jump != NONE)).size:
            onward = jump[open_]
            self.time[open_] += self.time[onward]
            longer = self.longest[onward] > self.longest[open_]
            for column in (self.slice, self.longest):
                column[open_] = np.where(longer, column[onward], column[open_])
            self.last[open_], jump[open_] = self.last[onward], jump[onward]
