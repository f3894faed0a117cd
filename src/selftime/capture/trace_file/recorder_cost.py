"""Computes what recording the times of events costs, from the steps that it makes longer.

Each event costs about the same at its begin and at its end, and together they cost the difference
between a step recorded so and an unrecorded one. Between two events the program works as well, so
that some of the time there stays: what else made the step longer, such as other programs on the
cores, is not what recording costs.
"""

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

import numpy as np

from selftime.array_types import Flags, Floats, Ints
from selftime.capture.facts.step_overhead import lower_quartile_ns
from selftime.capture.trace_file.event_columns import EventColumns

MIN_SHARE_OF_ONE_THREAD: Final = 0.95
"""Smallest share of the events in one thread from which it alone is taken to do the host's work."""


MAX_COST_NS: Final = 1_000
"""Most time in ns that recording the begin or the end of an event may cost; measured: 320 to 710.
If a step is longer by more than this explains, something else made it so."""

MAX_COST_SHARE_OF_GAP: Final = 2 / 3
"""Most of the time between the begins and ends of two events that recording them may cost, so that
none loses all of it. A tenth of the gaps were below 39 to 358 ns, by their kind, on a busy machine.
The share itself is not measured."""

_BISECTION_ROUNDS: Final = 40
"""Rounds in which the cost of an event is found: 1,000 ns are then known to less than 1e-9 ns."""


@dataclass(frozen=True, slots=True)
class RecorderCost:
    """What recording times costs at each begin and each end of an event in a step.

    The profiler works before it reads the time of a begin, and after it reads that of an end: so
    what it costs lies between events and not in those that have no others within.
    """

    edges_ns: Ints
    """The begins and ends of all events, in order."""
    summed_ns: Ints
    """The cost of all edges before each, in ns, shape (edges + 1,)."""
    step_starts_ns: Ints

    def remove(self, instants_ns: Ints, side: Literal["left", "right"]) -> Ints:
        """Returns instants without the cost since their step began, which stays where it is.

        `side` is `right` for begins, whose own cost comes before them, and `left` for ends.
        """
        if not self.summed_ns[-1]:
            return instants_ns
        step = np.searchsorted(self.step_starts_ns, instants_ns, side="right") - 1
        began = self.step_starts_ns[np.maximum(step, 0)]
        before = np.searchsorted(self.edges_ns, began)
        count = np.searchsorted(self.edges_ns, instants_ns, side=side)
        spent = self.summed_ns[np.maximum(count, before)] - self.summed_ns[before]
        return np.where(step < 0, instants_ns, np.maximum(instants_ns - spent, began))


def recorder_cost(
    timed: EventColumns, steps_ns: Ints, unrecorded_step_ns: float | None
) -> RecorderCost:
    """Returns what recording times costs where the host alone works in one thread, else 0.

    Args:
        timed: The events of the recording of times alone.
        steps_ns: The begin and the end of each of its steps.
        unrecorded_step_ns: How long a step takes that is not recorded; None if unknown.
    """
    # `np.quantile` and `np.median` would import a module in the thread that writes the trace: a
    # process that is forked meanwhile waits for the lock of that import for ever.
    usual_ns = lower_quartile_ns((steps_ns[:, 1] - steps_ns[:, 0]).tolist()) or 0.0
    excess_ns = 0.0 if unrecorded_step_ns is None else usual_ns - unrecorded_step_ns
    edges = np.concatenate([timed.start_ns, timed.end_ns])
    order = np.argsort(edges, kind="stable")
    edges, is_begin = edges[order], order < timed.start_ns.size
    costs = np.zeros(edges.size)
    if excess_ns > 0 and timed.is_on_host.all() and _is_in_one_thread(timed):
        most = _most_cost_of_edges(edges, is_begin, steps_ns)
        inside = np.searchsorted(edges, steps_ns)
        costs = np.minimum(most, _cost_of_one_edge(most, inside, excess_ns))
    summed = np.concatenate([[0], np.rint(np.cumsum(costs))]).astype(np.int64)
    return RecorderCost(edges, summed, steps_ns[:, 0])


def _most_cost_of_edges(edges_ns: Ints, is_begin: Flags, steps_ns: Ints) -> Floats:
    """Returns the most that recording each begin and end may cost, in ns, by the gaps beside them.

    The gap before a begin has its cost, and the gap after an end: that from an end to a begin has
    both.
    """
    bounds = np.sort(steps_ns.ravel())
    last_bound = bounds[np.maximum(np.searchsorted(bounds, edges_ns, side="right") - 1, 0)]
    next_bound = bounds[np.minimum(np.searchsorted(bounds, edges_ns), bounds.size - 1)]
    before = edges_ns - np.maximum(np.concatenate([bounds[:1], edges_ns[:-1]]), last_bound)
    after = np.minimum(np.concatenate([edges_ns[1:], bounds[-1:]]), next_bound) - edges_ns
    follows_end = np.concatenate([[False], ~is_begin[:-1]])
    precedes_begin = np.concatenate([is_begin[1:], [False]])
    gap = np.where(is_begin, before, after)
    shared = np.where(is_begin, follows_end, precedes_begin)
    most: Floats = MAX_COST_SHARE_OF_GAP * np.maximum(gap, 0) / np.where(shared, 2, 1)
    return np.minimum(most, float(MAX_COST_NS))


def _cost_of_one_edge(most_ns: Floats, inside: Ints, excess_ns: float) -> float:
    """Returns the cost of an edge, in ns, with which the median step costs `excess_ns`.

    Args:
        most_ns: The most that each edge may cost, in ns.
        inside: The first edge of each step, and the first one after it, shape (steps, 2).
        excess_ns: By how much the usual step is longer than an unrecorded one, in ns.
    """
    low, high = 0.0, float(MAX_COST_NS)
    for _ in range(_BISECTION_ROUNDS):
        cost = (low + high) / 2
        summed = np.concatenate([[0.0], np.cumsum(np.minimum(most_ns, cost))])
        of_step = (summed[inside[:, 1]] - summed[inside[:, 0]]).tolist()
        low, high = (cost, high) if median(of_step) < excess_ns else (low, cost)
    return high


def _is_in_one_thread(events: EventColumns) -> bool:
    """Returns whether nearly all events are in one thread, which their recording then delays."""
    counts = Counter(events.thread.tolist()).values()
    return bool(counts) and max(counts) >= MIN_SHARE_OF_ONE_THREAD * sum(counts)
