"""Divides the calls of a graph into stretches that can be run at once, and others that cannot.

Within a stretch that can, every wait is for what was launched or done before it, save that of its
last call, and so is every wait of work. What is not known yet when it begins are then only running
maxima.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.analysis.graph.graph import DependencyGraph
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE

_WORTH_ARRAYS: Final = 48
"""Calls and work from which on arrays are faster than a loop: their calls cost as much."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some acting calls, by their place among those."""

    begin: int
    end: int
    at_once: bool
    """Whether nothing but the last call's wait depends on what is launched or done within."""


def waiting(graph: DependencyGraph) -> Flags:
    """Which calls wait for more than the call before on their thread."""
    calls = graph.calls
    found = (calls.waits_for != NONE) | (calls.waits_stream != NONE) | (calls.waits_call != NONE)
    return np.asarray(found)


def acting(graph: DependencyGraph) -> Ints:
    """The calls that launch work, wait, or are waited for; others only pass the host's time."""
    calls = graph.calls
    acts = waiting(graph) | (calls.last_work > calls.first_work)
    acts[calls.waits_call[calls.waits_call != NONE]] = True
    return np.flatnonzero(acts)


def stretches(graph: DependencyGraph, acts: Ints) -> list[Stretch]:
    """The acting calls in order, as few stretches as there can be."""
    calls = graph.calls
    first, last = calls.first_work[acts], calls.last_work[acts]
    waited = np.maximum.accumulate(calls.waits_for[acts]).tolist()
    met = np.maximum.accumulate(calls.waits_call[acts]).tolist()
    needed = np.maximum.accumulate(_latest_need(graph, first, last)).tolist()
    of_streams = np.flatnonzero(calls.waits_stream[acts] != NONE).tolist()
    firsts, numbers = first.tolist(), acts.tolist()
    found: list[Stretch] = []
    begin, size = 0, np.append(0, np.cumsum(1 + last - first)).tolist()
    while begin < acts.size:
        work = firsts[begin]
        stream = bisect_left(of_streams, begin)
        end = min(
            bisect_left(waited, work) + 1,
            bisect_left(met, numbers[begin]) + 1,
            bisect_left(needed, work),
            of_streams[stream] + 1 if stream < len(of_streams) else acts.size,
            acts.size,
        )
        at_once = end > begin and size[end] - size[begin] >= _WORTH_ARRAYS
        end = max(end, begin + 1)
        if not at_once and found and not found[-1].at_once:
            found[-1] = Stretch(found[-1].begin, end, at_once=False)
        else:
            found.append(Stretch(begin, end, at_once))
        begin = end
    return found


def _latest_need(graph: DependencyGraph, first: Ints, last: Ints) -> Ints:
    """For each call the latest work that any of its own waits for on other streams, else NONE."""
    needs = np.full(graph.work.id.size + 1, NONE)
    np.maximum.at(needs, graph.waits.work, graph.waits.needs)
    if not first.size:
        return first
    # A part of `reduceat` that is empty gives the element at its begin.
    latest = np.maximum.reduceat(needs, np.column_stack([first, last]).ravel())[::2]
    return np.where(last > first, latest, NONE)
