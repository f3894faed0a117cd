"""What a what-if changes: host time, waits, device work."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from selftime.advice.replay.program import NOTHING, Program
from selftime.advice.replay.simulate import Costs
from selftime.arrays import Ints
from selftime.intervals import Intervals


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
    keep: float | NDArray[np.float64] = 0.0
    """One share for all, or one for each."""


Change: TypeAlias = Cut | Unwait | Scale


def apply(program: Program, costs: Costs, changes: list[Change]) -> Costs:
    """The costs after all of the changes; what two of them keep of the same time multiplies."""
    cuts = [change for change in changes if isinstance(change, Cut)]
    if cuts:
        costs = _cut(program, costs, cuts)
    for change in changes:
        match change:
            case Unwait():
                freed = np.isin(program.entries.id, change.calls) & (program.entries.id != NOTHING)
                costs = replace(costs, waits=costs.waits & ~freed)
            case Scale():
                costs = _scaled(program, costs, change)
    return costs


def _cut(program: Program, costs: Costs, cuts: list[Cut]) -> Costs:
    """Less host time before entries and in them; the wait of a call is not its time."""
    entries = program.entries
    gap_begin = entries.start - np.maximum(entries.before, 0)
    removed = _Removed(cuts)
    return replace(
        costs,
        before=removed.less(costs.before, gap_begin, entries.start),
        own=removed.less(costs.own, entries.start, entries.end),
    )


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
        """Times between these instants without what is removed there."""
        if not self.edges.size:
            return time
        inside = np.interp(end, self.edges, self.until) - np.interp(begin, self.edges, self.until)
        share = inside / np.maximum(end - begin, 1)
        return np.where(time > 0, np.rint(time * (1.0 - share)), time).astype(np.int64)


def _scaled(program: Program, costs: Costs, change: Scale) -> Costs:
    order = np.argsort(program.work.id, kind="stable")
    asked = np.asarray(change.work, np.int64)
    at = np.searchsorted(program.work.id[order], asked)
    known = at < order.size
    known[known] = program.work.id[order[at[known]]] == asked[known]
    keep = np.broadcast_to(np.asarray(change.keep, np.float64), asked.shape)[known]
    place = order[at[known]]
    duration, runs = costs.duration.copy(), costs.runs.copy()
    duration[place] = np.rint(duration[place] * keep).astype(np.int64)
    runs[place[keep == 0]] = False
    return replace(costs, duration=duration, runs=runs)
