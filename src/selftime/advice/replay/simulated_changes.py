"""Defines changes to a simulated program: less host time, fewer waits, shorter device work."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from selftime.advice.replay.graph_simulation import GraphCosts
from selftime.analysis.graph.dependency_graphs import DependencyGraph
from selftime.array_types import Flags, Floats, Ints
from selftime.intervals import Intervals
from selftime.nesting import NO_SLICE


@dataclass(frozen=True, slots=True)
class CutHostTime:
    """A change, for simulation, that shortens host time in some intervals to a share of it."""

    intervals: Intervals
    """Intervals of host time to shorten."""
    kept_share: float = 0.0
    """Share of the host time that remains, 0 to 1."""


@dataclass(frozen=True, slots=True)
class RemoveWaits:
    """A change, for simulation: host calls no longer wait for the device but keep other time."""

    calls: Ints
    """Slice ids of the calls that no longer wait."""


@dataclass(frozen=True, slots=True)
class ScaleDeviceWork:
    """A change, for simulation, that shortens device work to a share of its time; 0 removes it."""

    work: Ints
    """Slice ids of the kernels, copies and memsets to shorten."""
    kept_share: float | Floats = 0.0
    """Share of the duration that remains, 0 to 1: one for all, or one value per slice."""


Change: TypeAlias = CutHostTime | RemoveWaits | ScaleDeviceWork
"""A change of a program that the replay can simulate."""


def apply_changes(graph: DependencyGraph, costs: GraphCosts, changes: list[Change]) -> GraphCosts:
    """Returns new durations after all changes; kept shares of overlapping changes multiply."""
    cuts = [change for change in changes if isinstance(change, CutHostTime)]
    if cuts:
        costs = _costs_after_host_time_cuts(graph, costs, cuts)
    for change in changes:
        match change:
            case RemoveWaits():
                freed = np.isin(graph.calls.wait_slice, change.calls) & (
                    graph.calls.wait_slice != NO_SLICE
                )
                costs = replace(costs, still_waits=costs.still_waits & ~freed)
            case ScaleDeviceWork():
                costs = _costs_after_device_work_scaling(graph, costs, change)
    return costs


def _costs_after_host_time_cuts(
    graph: DependencyGraph, costs: GraphCosts, cuts: list[CutHostTime]
) -> GraphCosts:
    """Returns the durations with host time cut before and within calls; waits are unchanged."""
    calls = graph.calls
    removed = _RemovedHostTime(cuts)
    left, held = _previous_call_ends_and_wait_flags(graph)
    before = removed.reduced_times(costs.before, left, left + calls.host_time_before)
    return replace(
        costs,
        before=np.where((calls.host_time_before < 0) & held, costs.before, before),
        own_time=removed.reduced_times(costs.own_time, calls.start, calls.end),
    )


def _previous_call_ends_and_wait_flags(graph: DependencyGraph) -> tuple[Ints, Flags]:
    """Returns for each call the end (ns) of the thread's previous call, and if that one waited."""
    calls = graph.calls
    left, held = np.full(calls.id.size, graph.begin), np.zeros(calls.id.size, bool)
    for thread in range(graph.thread_count):
        own = np.flatnonzero(calls.thread == thread)
        left[own[1:]], held[own[1:]] = calls.end[own[:-1]], calls.released_by[own[:-1]] != NO_SLICE
    return left, held


class _RemovedHostTime:
    """Host time in ns that changes remove, cumulated over the time of the trace."""

    def __init__(self, cuts: list[CutHostTime]) -> None:
        ends = [edge for cut in cuts for edge in (cut.intervals.starts, cut.intervals.ends)]
        self.edges = np.unique(np.concatenate(ends))
        keep = np.ones(max(self.edges.size - 1, 0))
        for cut in cuts:
            at = np.searchsorted(cut.intervals.starts, self.edges[:-1], side="right") - 1
            known = at >= 0
            known[known] = self.edges[:-1][known] < cut.intervals.ends[at[known]]
            keep[known] *= cut.kept_share
        self.until = np.concatenate([[0.0], np.cumsum(np.diff(self.edges) * (1.0 - keep))])

    def reduced_times(self, times: Ints, begins: Ints, ends: Ints) -> Ints:
        """Returns `times` (ns), each reduced by the share removed between its begin and end.

        Where a call begins before the one before it ended, the time is negative, and so is what is
        removed: of time in which two calls overlap each loses its own.
        """
        if not self.edges.size:
            return times
        inside = np.interp(ends, self.edges, self.until) - np.interp(begins, self.edges, self.until)
        share = inside / np.where(ends == begins, 1, ends - begins)
        return np.asarray(np.rint(times * (1.0 - share)), np.int64)


def _costs_after_device_work_scaling(
    graph: DependencyGraph, costs: GraphCosts, change: ScaleDeviceWork
) -> GraphCosts:
    """Returns the durations, with the device work of one change shortened to its kept share."""
    order = np.argsort(graph.work.id, kind="stable")
    asked = np.asarray(change.work, np.int64)
    at = np.searchsorted(graph.work.id[order], asked)
    known = at < order.size
    known[known] = graph.work.id[order[at[known]]] == asked[known]
    keep = np.broadcast_to(np.asarray(change.kept_share, np.float64), asked.shape)[known]
    place = order[at[known]]
    duration, still_runs = costs.duration.copy(), costs.still_runs.copy()
    duration[place] = np.rint(duration[place] * keep).astype(np.int64)
    still_runs[place[keep == 0]] = False
    return replace(costs, duration=duration, still_runs=still_runs)
