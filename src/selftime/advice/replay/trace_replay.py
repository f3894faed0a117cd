"""Simulates a trace's host calls and device work after changes, to predict step times.

The replay of the unchanged graph gives back the recorded times. Predictions for a
changed one rest on the dependencies that critical paths use, too: work of a stream runs in order,
hosts go on when what they wait for is done, and all that is not changed takes as long as it took.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from selftime.advice.replay.call_range import ActingCalls, acting_calls
from selftime.advice.replay.graph_simulation import SimulatedTimes, recorded_costs, simulate
from selftime.advice.replay.simulated_changes import (
    Change,
    CutHostTime,
    RemoveWaits,
    ScaleDeviceWork,
    apply_changes,
)
from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.dependency_graphs import DependencyGraph
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.intervals import Intervals, intersect, length, subtract, union
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class Replay:
    """Simulates changes to a recorded program: its dependency graph and steps; times in ns."""

    graph: DependencyGraph
    """The dependency graph of the recorded calls and device work."""
    acting: ActingCalls
    """The calls that simulations look at."""
    counted: tuple[int, ...]
    """Indices of the measured steps (those without warm-up)."""
    begin: int
    """When the first step began, in ns."""
    unchanged_times: SimulatedTimes
    """The simulated end times without any change, which are the recorded ones."""
    spans: Intervals
    """Intervals of the measured steps, each from the previous step's end to this step's end."""
    idle: Intervals
    """Intervals of the measured steps in which no device worked."""

    def step_time(self, *changes: Change) -> float:
        """Returns the mean time of a measured step after the changes, in ns."""
        outcome = self._simulate_changes(changes)
        done = [outcome.done[step] for step in sorted(outcome.done)]
        times = np.diff(np.array([self.begin, *done], np.int64))
        counted = [int(times[step]) for step in self.counted]
        return float(np.mean(counted)) if counted else 0.0

    def program_time(self, *changes: Change) -> int:
        """Returns the ns from the first step's start to the last step's end, after the changes."""
        return max(self._simulate_changes(changes).done.values(), default=self.begin) - self.begin

    def saving(self, *changes: Change) -> float:
        """Returns by how many ns the changes shorten the mean measured step.

        Never more than `_largest_saving_ns`. The graph does not know all waits that were not
        recorded, nor that work on two streams slows each other down. This bound is one of the
        recorded program, which only the replay knows; `advice/savings` bounds all savings, also
        those that no replay computes, by a step without a profiler.
        """
        less = self.step_time() - self.step_time(*changes)
        return max(0.0, min(less, self._largest_saving_ns(list(changes))))

    def _simulate_changes(self, changes: tuple[Change, ...]) -> SimulatedTimes:
        """Returns the end times of calls, device work and steps after the changes."""
        if not changes:
            return self.unchanged_times
        costs = apply_changes(self.graph, recorded_costs(self.graph), list(changes))
        return simulate(self.graph, costs, self.acting)

    def _largest_saving_ns(self, changes: list[Change]) -> float:
        """Returns an upper bound of what the changes save per measured step, in ns.

        Changes on the host save at most the idle time of devices, changes of device work that
        work's exposed time. Without a device there is no limit.
        """
        steps = max(len(self.counted), 1)
        limit = self.exposed_time(*changes)
        if any(isinstance(change, CutHostTime | RemoveWaits) for change in changes):
            if not self.graph.work.id.size:
                return float("inf")
            limit += length(self.idle) / steps
        return limit

    def exposed_time(self, *changes: Change) -> float:
        """Returns the ns per measured step in which devices run only work that `changes` scale."""
        exposed = [
            self._exposed_device_work_ns(change)
            for change in changes
            if isinstance(change, ScaleDeviceWork)
        ]
        return sum(exposed) / max(len(self.counted), 1)

    def _exposed_device_work_ns(self, change: ScaleDeviceWork) -> float:
        """Returns the total ns of measured steps with only device work that `change` scales."""
        work = self.graph.work
        chosen = np.isin(work.id, change.work)
        own = union(work.start[chosen], work.end[chosen])
        others = union(work.start[~chosen], work.end[~chosen])
        return float(length(intersect(subtract(own, others), self.spans)))


@cached_per_trace
def replay_of(trace: Trace) -> Replay:
    """Returns a simulator of changes to a trace's steps, with the recorded durations."""
    graph = dependency_graph(trace)
    steps = steps_with_counted_flags(trace)
    acting = acting_calls(graph)
    recorded = simulate(graph, recorded_costs(graph), acting)
    begin = int(steps["start"][0]) if steps.height else graph.begin
    counted = steps.with_row_index("place").filter(pl.col("counted"))["place"].to_list()
    done = np.array([begin, *(recorded.done[step] for step in sorted(recorded.done))], np.int64)
    spans = union(done[:-1][counted], done[1:][counted])
    busy = union(graph.work.start, graph.work.end)
    return Replay(graph, acting, tuple(counted), begin, recorded, spans, subtract(spans, busy))
