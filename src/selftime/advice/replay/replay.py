"""Asks what-if: the dependency graph of a trace, run again with changed costs.

The replay of the unchanged graph gives back the recorded times. What it predicts of a changed one
rests on the dependencies, those that critical paths are read from: work of a stream runs in order,
hosts go on when what they wait for is done, and all that is not changed takes as long as it took.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.advice.replay.changes import Change, Cut, Scale, Unwait, apply
from selftime.advice.replay.simulate import Outcome, costs_of, simulate
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.graph import DependencyGraph
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.intervals import Intervals, intersect, length, subtract, union
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Replay:
    """A dependency graph, the steps that count in it, and how long they took; times in ns."""

    graph: DependencyGraph
    counted: tuple[int, ...]
    """Which steps count, by their place."""
    begin: int
    """When the first step began."""
    recorded: Outcome
    spans: Intervals
    """The time of the steps that count, from done to done."""
    idle: Intervals
    """When no device worked in those."""

    def step_time(self, *changes: Change) -> float:
        """The mean time of a counted step after the changes, from done to done."""
        outcome = self._outcome(changes)
        done = [outcome.done[step] for step in sorted(outcome.done)]
        times = np.diff(np.array([self.begin, *done], np.int64))
        counted = [int(times[step]) for step in self.counted]
        return float(np.mean(counted)) if counted else 0.0

    def program_time(self, *changes: Change) -> int:
        """From the begin of the first step until the last is done."""
        return max(self._outcome(changes).done.values(), default=self.begin) - self.begin

    def saving(self, *changes: Change) -> float:
        """What a counted step takes less after the changes, at most what they can save."""
        less = self.step_time() - self.step_time(*changes)
        return max(0.0, min(less, self._limit(list(changes))))

    def _outcome(self, changes: tuple[Change, ...]) -> Outcome:
        if not changes:
            return self.recorded
        return simulate(self.graph, apply(self.graph, costs_of(self.graph), list(changes)))

    def _limit(self, changes: list[Change]) -> float:
        """Host causes save no more than the idle time of devices, device causes their own.

        Without a device the host's time is the step's.
        """
        steps = max(len(self.counted), 1)
        limit = self.exposed_time(*changes)
        if any(isinstance(change, Cut | Unwait) for change in changes):
            if not self.graph.work.id.size:
                return float("inf")
            limit += length(self.idle) / steps
        return limit

    def exposed_time(self, *changes: Change) -> float:
        """Time of a counted step in which nothing ran but the work that the changes scale."""
        exposed = [self._exposed(change) for change in changes if isinstance(change, Scale)]
        return sum(exposed) / max(len(self.counted), 1)

    def _exposed(self, change: Scale) -> float:
        """Time in which nothing but the work that is scaled ran."""
        work = self.graph.work
        chosen = np.isin(work.id, change.work)
        own = union(work.start[chosen], work.end[chosen])
        others = union(work.start[~chosen], work.end[~chosen])
        return float(length(intersect(subtract(own, others), self.spans)))


@cached_per_trace
def replay_of(trace: Trace) -> Replay:
    """The replay of a trace's steps."""
    graph = dependency_graph(trace)
    steps = assessed_steps(trace)
    recorded = simulate(graph, costs_of(graph))
    begin = int(steps["start"][0]) if steps.height else graph.begin
    counted = steps.with_row_index("place").filter(pl.col("counted"))["place"].to_list()
    done = np.array([begin, *(recorded.done[step] for step in sorted(recorded.done))], np.int64)
    spans = union(done[:-1][counted], done[1:][counted])
    busy = union(graph.work.start, graph.work.end)
    return Replay(graph, tuple(counted), begin, recorded, spans, subtract(spans, busy))
