"""Splits recorded host calls into ranges, which are simulated with arrays or one by one.

Within a range for arrays every wait, but that of its last call, is for what was launched or done
before the range. Then all times in it are running maxima.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.analysis.graph.dependency_graphs import DependencyGraph
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE

_MIN_CALLS_AND_WORK_TO_VECTORISE: Final = 48
"""Smallest number of calls and launched device work for which arrays are faster than a Python
loop."""


@dataclass(frozen=True, slots=True)
class CallRange:
    """A range of successive host calls that are simulated together, with arrays or in a loop."""

    begin: int
    """Index of the first call."""
    end: int
    """Index after the last call."""
    is_vectorised: bool
    """Whether arrays can simulate the range: no call but the last waits for something in the
    range."""


@dataclass(frozen=True, slots=True, eq=False)
class ActingCalls:
    """The host calls that a simulation looks at; they are the same whatever calls and work take."""

    indices: Ints
    """Indices of the calls in the graph, ascending; see `indices_of_acting_calls`."""
    ranges: list[CallRange]
    """Ranges of `indices`."""


def acting_calls(graph: DependencyGraph) -> ActingCalls:
    """Returns the calls of a graph that a simulation looks at, divided into ranges."""
    indices = indices_of_acting_calls(graph)
    return ActingCalls(indices, call_ranges(graph, indices))


def waiting_calls(graph: DependencyGraph) -> Flags:
    """Returns for each call whether it waits for device work or for a call of another thread."""
    calls = graph.calls
    found = (
        (calls.awaited_work != NO_SLICE)
        | (calls.awaited_stream != NO_SLICE)
        | (calls.awaited_call != NO_SLICE)
    )
    return np.asarray(found)


def indices_of_acting_calls(graph: DependencyGraph) -> Ints:
    """Returns the indices of host calls that launch device work, wait, or are waited for.

    Other calls only take time.
    """
    calls = graph.calls
    acts = waiting_calls(graph) | (calls.last_work > calls.first_work)
    acts[calls.awaited_call[calls.awaited_call != NO_SLICE]] = True
    return np.flatnonzero(acts)


def call_ranges(graph: DependencyGraph, acting_indices: Ints) -> list[CallRange]:
    """Returns the calls at `acting_indices` divided into ranges, each as long as possible."""
    calls = graph.calls
    first, last = calls.first_work[acting_indices], calls.last_work[acting_indices]
    waited = np.maximum.accumulate(calls.awaited_work[acting_indices]).tolist()
    met = np.maximum.accumulate(calls.awaited_call[acting_indices]).tolist()
    needed = np.maximum.accumulate(_latest_needed_work_of_calls(graph, first, last)).tolist()
    of_streams = np.flatnonzero(calls.awaited_stream[acting_indices] != NO_SLICE).tolist()
    firsts, numbers = first.tolist(), acting_indices.tolist()
    found: list[CallRange] = []
    begin, size = 0, np.append(0, np.cumsum(1 + last - first)).tolist()
    while begin < acting_indices.size:
        work = firsts[begin]
        stream = bisect_left(of_streams, begin)
        end = min(
            bisect_left(waited, work) + 1,
            bisect_left(met, numbers[begin]) + 1,
            bisect_left(needed, work),
            of_streams[stream] + 1 if stream < len(of_streams) else acting_indices.size,
            acting_indices.size,
        )
        is_vectorised = end > begin and size[end] - size[begin] >= _MIN_CALLS_AND_WORK_TO_VECTORISE
        end = max(end, begin + 1)
        if not is_vectorised and found and not found[-1].is_vectorised:
            found[-1] = CallRange(found[-1].begin, end, is_vectorised=False)
        else:
            found.append(CallRange(begin, end, is_vectorised))
        begin = end
    return found


def _latest_needed_work_of_calls(graph: DependencyGraph, first_work: Ints, last_work: Ints) -> Ints:
    """Returns for each call the last work, on another stream, that its launched work waits for."""
    needs = np.full(graph.work.id.size + 1, NO_SLICE)
    np.maximum.at(needs, graph.stream_waits.work, graph.stream_waits.awaited_work)
    if not first_work.size:
        return first_work
    # A part of `reduceat` that is empty gives the element at its begin.
    latest = np.maximum.reduceat(needs, np.column_stack([first_work, last_work]).ravel())[::2]
    return np.where(last_work > first_work, latest, NO_SLICE)
