"""Finds operators that were recorded but never computed, because activation checkpointing stopped.

`torch.utils.checkpoint` recomputes a forward pass until the last tensor that the backward pass
needs is saved, then raises an exception out of the operator that saves it. If that operator saves
its inputs, which it does before it computes, the trace holds a call of it with all of its shapes
that computed nothing. (`torch.utils.checkpoint.set_checkpoint_early_stop`, on by default.)
"""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.self_times import SelfTimes
from selftime.analysis.call_tree.training_passes import (
    BACKWARD_PASS,
    RECOMPUTE_PASS,
    find_training_passes,
    may_recompute_forward_work,
)
from selftime.analysis.slice_filters import matches_name
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

_MAX_SHARE_OF_SHORTEST_CALL: Final = 0.25
"""Largest share of the shortest call with the same arguments that a stopped call can take."""


def calls_stopped_by_checkpointing(
    trace: Trace, host_times: SelfTimes, calls: Ints, arguments: Ints
) -> Flags:
    """Flags calls at which recomputation stopped before they computed.

    Such a call is the last one of a recomputation, calls nothing but `detach`, with which its
    inputs are saved, and takes less than a quarter of the time of any call with the same arguments
    elsewhere: of device time if the trace has any, else of CPU time. The forward pass has such a
    call unless it was not recorded; without one nothing is flagged.

    Args:
        trace: The trace.
        host_times: Its host slices.
        calls: Indexes in `host_times` of operator calls.
        arguments: For each of them a number that tells apart operators and their arguments.
    """
    if not calls.size or not may_recompute_forward_work(trace):
        return np.zeros(calls.size, bool)
    is_last = _ends_recomputation(trace)[host_times.id[calls]]
    is_last &= ~_calls_more_than_detach(host_times)[calls]
    time = (host_times.device if trace.device_args.height else host_times.cpu)[calls]
    shortest = np.full(int(arguments.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, arguments[~is_last], time[~is_last])
    has_other = np.bincount(arguments[~is_last], minlength=shortest.size) > 0
    too_short = time < _MAX_SHARE_OF_SHORTEST_CALL * shortest[arguments]
    return is_last & has_other[arguments] & too_short


def _calls_more_than_detach(host_times: SelfTimes) -> Flags:
    """Flags host slices that call anything but `detach`."""
    is_detach = matches_name(pl.DataFrame({"name": host_times.name}), _is_detach)
    calls_more = np.zeros(host_times.id.size, bool)
    parents = host_times.parent[~is_detach]
    calls_more[parents[parents != NO_SLICE]] = True
    return calls_more


def _is_detach(name: str) -> bool:
    return name in {"aten::detach", "detach"}


def _ends_recomputation(trace: Trace) -> Flags:
    """Flags by id the recomputed operators of a backward node after which none began in it."""
    found = find_training_passes(trace)
    entries = found.entries
    is_operator = trace.slices["category"].is_in(names.OPERATOR_CATEGORIES).to_numpy()
    recomputed = np.flatnonzero((found.pass_code == RECOMPUTE_PASS) & is_operator[entries.id])
    node = nearest_ancestor(entries.parent, found.pass_code == BACKWARD_PASS, recomputed)
    last_start = np.full(entries.id.size, np.iinfo(np.int64).min)
    np.maximum.at(last_start, node, entries.start[recomputed])
    ends = np.zeros(trace.slices.height, bool)
    ends[entries.id[recomputed]] = entries.end[recomputed] >= last_start[node]
    return ends
