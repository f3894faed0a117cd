"""Finds what a closure takes of an optimizer's step: forward and backward passes that it calls.

`step(closure)` calls the passes itself: first of all, and LBFGS again between its own operators.
A pass lasts until its last backward node ends. A further one begins with the first operator after
it that autograd records, as it does not record those of an optimizer.
"""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, union
from selftime.trace import Trace


@cached_per_trace
def closure_times(trace: Trace) -> Intervals:
    """Returns when closures run forward and backward passes within optimizer steps."""
    host = slices_on(trace, "host", ended=True)
    steps = filter_by_name(host, names.is_optimizer_step)
    backward = covered_time(filter_by_name(host, names.is_backward_node))
    forward = _starts_of_recorded_forward_operators(trace, backward)
    passes = [
        found
        for start, duration in steps.select("start", "duration").iter_rows()
        for found in _passes_within(start, start + duration, backward, forward)
    ]
    begins, ends = zip(*passes, strict=True) if passes else ((), ())
    return union(np.array(begins, np.int64), np.array(ends, np.int64))


def is_within(times: Intervals, instants: Ints) -> Flags:
    """Flags the instants at which one of the intervals lasts."""
    at = np.searchsorted(times.starts, instants, side="right") - 1
    return np.asarray((at >= 0) & (instants < np.append(times.ends, 0)[at]))


def _starts_of_recorded_forward_operators(trace: Trace, backward: Intervals) -> Ints:
    """Returns when forward operators that autograd records start, outside of backward nodes."""
    recorded = (pl.col("sequence") >= 0) & (pl.col("forward_thread").fill_null(0) == 0)
    ids = trace.op_args.filter(recorded)["id"]
    starts = np.sort(trace.slices["start"].gather(ids).to_numpy())
    return np.asarray(starts[~is_within(backward, starts)])


def _passes_within(
    begin: int, end: int, backward: Intervals, forward: Ints
) -> list[tuple[int, int]]:
    """Returns begin and end of each pass between two instants that has a backward node."""
    inside = (backward.starts >= begin) & (backward.ends <= end)
    node_starts, node_ends = backward.starts[inside], backward.ends[inside]
    passes: list[tuple[int, int]] = []
    for at, node_end in enumerate(node_ends.tolist()):
        next_node = node_starts[at + 1] if at + 1 < node_starts.size else None
        following = forward[np.searchsorted(forward, node_end) :][:1]
        if next_node is None or (following.size and following[0] < next_node):
            passes.append((begin, node_end))
            begin = int(following[0]) if following.size else end
    return passes
