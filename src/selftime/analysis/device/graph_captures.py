"""Finds when CUDA graphs are captured: what is launched meanwhile becomes part of one, unrun."""

import numpy as np

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import runtime_calls_by_name, with_known_end
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, union
from selftime.names.runtime_calls import is_graph_instantiation
from selftime.trace import Trace


@cached_per_trace
def graph_capture_times(trace: Trace) -> Intervals:
    """Returns when CUDA graphs are captured, in ns.

    An end without a begin closes a capture that began before the recording.
    """
    begins = np.sort(runtime_calls_by_name(trace, names.is_capture_begin)["start"].to_numpy())
    ends = np.sort(runtime_calls_by_name(trace, names.is_capture_end)["start"].to_numpy())
    if ends.size and (not begins.size or ends[0] < begins[0]):
        begins = np.append(np.iinfo(np.int64).min, begins)
    place = np.searchsorted(ends, begins)
    closed = place < ends.size
    return union(begins[closed], ends[place[closed]])


@cached_per_trace
def graph_making_times(trace: Trace) -> Intervals:
    """Returns when CUDA graphs are captured, and made ready to be launched, in ns."""
    captures = graph_capture_times(trace)
    calls = with_known_end(runtime_calls_by_name(trace, _ends_making_of_graph))
    begin = calls["start"].to_numpy()
    return union(
        np.append(captures.starts, begin),
        np.append(captures.ends, begin + calls["duration"].to_numpy()),
    )


def _ends_making_of_graph(call_name: str) -> bool:
    return names.is_capture_end(call_name) or is_graph_instantiation(call_name)


def is_within_times(times: Intervals, instants: Ints) -> Flags:
    """Flags instants (ns) that lie within disjoint intervals."""
    if not times.starts.size:
        return np.zeros(instants.size, np.bool_)
    at = np.searchsorted(times.starts, instants, side="right") - 1
    return np.asarray((at >= 0) & (instants < times.ends[at]))
