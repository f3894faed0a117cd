"""What a what-if changes: host time, waits, device work."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from selftime.advice.replay.simulate import Costs
from selftime.analysis.graph.graph import DependencyGraph
from selftime.arrays import Flags, Floats, Ints
from selftime.intervals import Intervals
from selftime.nesting import NONE


@dataclass(frozen=True, slots=True)
class Cut:
    """Host time within some intervals takes `keep` of what it took: 0 removes it."""

    where: Intervals
    keep: float = 0.0


@dataclass(frozen=True, slots=True)
class Unwait:
    """These calls no longer wait for the device; their own host time stays."""

    calls: Ints
    """Slices of the calls."""


@dataclass(frozen=True, slots=True)
class Scale:
    """This work takes `keep` of its device time; 0 removes it."""

    work: Ints
    """Slices of the work."""
    keep: float | Floats = 0.0
    """One share for all, or one for each."""


Change: TypeAlias = Cut | Unwait | Scale


def apply(graph: DependencyGraph, costs: Costs, changes: list[Change]) -> Costs:
    """The costs after all of the changes; what two of them keep of the same time multiplies."""
    cuts = [change for change in changes if isinstance(change, Cut)]
    if cuts:
        costs = _cut(graph, costs, cuts)
    for change in changes:
        match change:
            case Unwait():
                freed = np.isin(graph.calls.wait, change.calls) & (graph.calls.wait != NONE)
                costs = replace(costs, waits=costs.waits & ~freed)
            case Scale():
                costs = _scaled(graph, costs, change)
    return costs


def _cut(graph: DependencyGraph, costs: Costs, cuts: list[Cut]) -> Costs:
    """Less host time before calls and in them; the wait of a call is not its time."""
    calls = graph.calls
    removed = _Removed(cuts)
    left, held = _left_before(graph)
    before = removed.less(costs.before, left, left + calls.before)
    return replace(
        costs,
        before=np.where((calls.before < 0) & held, costs.before, before),
        own=removed.less(costs.own, calls.start, calls.end),
    )


def _left_before(graph: DependencyGraph) -> tuple[Ints, Flags]:
    """When the call before each on its thread ended, and whether it waited until then."""
    calls = graph.calls
    left, held = np.full(calls.id.size, graph.begin), np.zeros(calls.id.size, bool)
    for thread in range(graph.threads):
        own = np.flatnonzero(calls.thread == thread)
        left[own[1:]], held[own[1:]] = calls.end[own[:-1]], calls.held_by[own[:-1]] != NONE
    return left, held


class _Removed:
    """How much of the time until each instant some cuts remove."""

    def __init__(self, cuts: list[Cut]) -> None:
        ends = [edge for cut in cuts for edge in (cut.where.starts, cut.where.ends)]
        self.edges = np.unique(np.concatenate(ends))
        keep = np.ones(max(self.edges.size - 1, 0))
        for cut in cuts:
            at = np.searchsorted(cut.where.starts, self.edges[:-1], side="right") - 1
            known = at >= 0
            known[known] = self.edges[:-1][known] < cut.where.ends[at[known]]
            keep[known] *= cut.keep
        self.until = np.concatenate([[0.0], np.cumsum(np.diff(self.edges) * (1.0 - keep))])

    def less(self, time: Ints, begin: Ints, end: Ints) -> Ints:
        """Times between these instants without what is removed there.

        Where a call begins before the one before it ended, the time is negative, and so is what is
        removed: of time in which two calls overlap each loses its own.
        """
        if not self.edges.size:
            return time
        inside = np.interp(end, self.edges, self.until) - np.interp(begin, self.edges, self.until)
        share = inside / np.where(end == begin, 1, end - begin)
        return np.asarray(np.rint(time * (1.0 - share)), np.int64)


def _scaled(graph: DependencyGraph, costs: Costs, change: Scale) -> Costs:
    order = np.argsort(graph.work.id, kind="stable")
    asked = np.asarray(change.work, np.int64)
    at = np.searchsorted(graph.work.id[order], asked)
    known = at < order.size
    known[known] = graph.work.id[order[at[known]]] == asked[known]
    keep = np.broadcast_to(np.asarray(change.keep, np.float64), asked.shape)[known]
    place = order[at[known]]
    duration, runs = costs.duration.copy(), costs.runs.copy()
    duration[place] = np.rint(duration[place] * keep).astype(np.int64)
    runs[place[keep == 0]] = False
    return replace(costs, duration=duration, runs=runs)
