"""Finds out what limits the speed of a step after simulated changes: device, launches or gaps."""

import numpy as np

from selftime.advice.replay.graph_simulation import (
    GraphCosts,
    SimulatedTimes,
    recorded_costs,
    simulate,
)
from selftime.advice.replay.simulated_changes import Change, apply_changes
from selftime.advice.replay.trace_replay import Replay
from selftime.analysis.steps.bound_by import BoundBy, bound_by_of_shares
from selftime.array_types import Flags
from selftime.intervals import Intervals, clip, intersect, length, union


def bound_by_after(replay: Replay, *changes: Change) -> BoundBy | None:
    """Returns what bounds the recorded steps after the changes; None if that cannot be known.

    It is decided as for recorded steps: by the share of the steps in which the device works, and by
    the share of launches onto an idle stream.
    """
    graph = replay.graph
    costs = apply_changes(graph, recorded_costs(graph), list(changes))
    times = simulate(graph, costs)
    is_running = costs.still_runs & (costs.duration > 0)
    if not is_running.any():
        return "host-only"
    end = times.work_end[is_running]
    busy = union(end - costs.duration[is_running], end)
    spans = _spans_of_measured_steps(replay, times)
    reach = clip(spans, int(busy.starts[0]), int(busy.ends[-1]))
    shares = [length(intersect(busy, one)) / length(one) for one in (spans, reach) if length(one)]
    if not shares:
        return None
    return bound_by_of_shares(min(shares), _starved_share(replay, costs, times, is_running))


def _spans_of_measured_steps(replay: Replay, times: SimulatedTimes) -> Intervals:
    done = np.array([replay.begin, *(times.done[step] for step in sorted(times.done))], np.int64)
    counted = list(replay.counted)
    return union(done[:-1][counted], done[1:][counted])


def _starved_share(
    replay: Replay, costs: GraphCosts, times: SimulatedTimes, is_running: Flags
) -> float | None:
    """Returns the share of launches onto a stream that has no work left; None if unknown."""
    calls, work = replay.graph.calls, replay.graph.work
    launched = np.repeat(
        times.call_end - costs.own_time, np.maximum(calls.last_work - calls.first_work, 0)
    )
    if launched.size != work.id.size:
        return None
    starved = []
    for stream in range(replay.graph.stream_count):
        own = np.flatnonzero(is_running & (work.stream == stream))
        free = np.maximum.accumulate(times.work_end[own])
        starved.append(free[:-1] <= launched[own[1:]])
    every = np.concatenate(starved)
    return float(every.mean()) if every.size else None
