"""Finds for each host slice the slice whose source line its costs are charged to, usually itself.

One rule for every view and every advice rule:

- An operator of the backward pass counts to the line of the forward operator whose gradient it
  computes, on whichever thread it runs.
- The user's own Python code that runs within the backward pass, and what it calls, counts to its
  own line. So does forward work that is recomputed there.
- Operators that accumulate the gradients of parameters count to no forward operator, because whole
  buckets of gradients are reduced inside them. They count to the line that called `backward`. On
  the thread of that call the recording has this line. On autograd's own threads it is the line of
  the Python frame that was in that call at the time. Where there is neither, the line is unknown.
- A profiler step has no line: it only began on the line that ended the previous step.
"""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_ancestors import (
    nearest_ancestor_of_every_slice,
    outermost_ancestor_of_every_slice,
)
from selftime.analysis.slice_arguments import (
    caller_of_every_frame,
    enclosing_frame_of_every_slice,
)
from selftime.analysis.slice_filters import filter_by_name, matches_name
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace


@cached_per_trace
def line_owner_of_every_slice(trace: Trace) -> Ints:
    """Returns for each slice the slice whose source line it is charged to, mostly itself, or -1.

    The array is cached and read-only.
    """
    owner = np.arange(trace.slices.height)
    backward = _is_backward_operator_slice(trace)
    if backward.any():
        inside = _slices_in_backward_pass(trace, backward)
        owner[inside] = _line_owners_in_backward(trace, backward, inside)
    owner[profiler_step_ids(trace)] = NO_SLICE
    owner.flags.writeable = False
    return owner


@cached_per_trace
def profiler_step_ids(trace: Trace) -> Ints:
    """Returns the ids of the slices that mark the profiler's steps (`ProfilerStep#N`)."""
    return filter_by_name(trace.slices, lambda name: names.profiler_step_number(name) is not None)[
        "id"
    ].to_numpy()


def _is_backward_operator_slice(trace: Trace) -> Flags:
    """Flags slices that are operators of the backward pass."""
    told = (pl.col("forward_thread") > 0) | pl.col("forward").is_not_null()
    found = np.zeros(trace.slices.height, bool)
    found[trace.op_args.select(pl.col("id").filter(told))["id"].to_numpy()] = True
    found |= matches_name(trace.slices, names.is_backward_node)
    return found | _is_gradient_accumulation_slice(trace)


def _is_gradient_accumulation_slice(trace: Trace) -> Flags:
    """Flags slices that accumulate the gradients of parameters."""
    return matches_name(trace.slices, names.accumulates_gradient)


def _slices_in_backward_pass(trace: Trace, is_backward: Flags) -> Ints:
    """Returns ids of slices in the backward pass, without user code and recomputed forward work."""
    numbered = (pl.col("sequence") >= 0) & (pl.col("forward_thread") == 0)
    shows = is_backward.copy()
    shows[trace.op_args.select(pl.col("id").filter(numbered))["id"].to_numpy()] = True
    node = nearest_ancestor_of_every_slice(trace, shows)
    inside = np.flatnonzero((node != NO_SLICE) & is_backward[node])
    frame = enclosing_frame_of_every_slice(trace)[inside]
    framed = np.flatnonzero(frame != NO_SLICE)
    if not framed.size:
        return inside
    start = trace.slices["start"].to_numpy()
    outermost = outermost_ancestor_of_every_slice(trace, is_backward)[inside[framed]]
    within = framed[start[frame[framed]] >= start[outermost]]
    return np.delete(inside, within)


def _line_owners_in_backward(trace: Trace, is_backward: Flags, slice_ids: Ints) -> Ints:
    """Returns each backward slice's forward operator, or else the slice that called `backward`."""
    start = trace.slices["start"].to_numpy()
    forward = np.full(start.size, NO_SLICE, np.int64)
    told = trace.op_args.select("id", "forward").drop_nulls()
    at, to = told["id"].to_numpy(), told["forward"].cast(pl.Int64).to_numpy()
    earlier = start[to] < start[at]  # a forward operator that starts later must be wrong
    forward[at[earlier]] = to[earlier]
    adds = _is_gradient_accumulation_slice(trace)
    forward[adds] = NO_SLICE
    node = nearest_ancestor_of_every_slice(trace, (forward != NO_SLICE) | adds)[slice_ids]
    owner = np.where(node == NO_SLICE, NO_SLICE, forward[node])
    alone = np.flatnonzero(owner == NO_SLICE)
    owner[alone] = _line_owners_calling_backward(trace, is_backward, slice_ids[alone])
    return _follow_line_owner_chains(start.size, slice_ids, owner)


def _follow_line_owner_chains(slice_count: int, slice_ids: Ints, owner_of_slice: Ints) -> Ints:
    """Replaces each slice's owner by the owner of that owner, until no owner changes."""
    every = np.arange(slice_count)
    every[slice_ids] = owner_of_slice
    while True:
        further = np.where(owner_of_slice == NO_SLICE, NO_SLICE, every[owner_of_slice])
        if np.array_equal(further, owner_of_slice):
            return owner_of_slice
        owner_of_slice = further


def _line_owners_calling_backward(trace: Trace, is_backward: Flags, slice_ids: Ints) -> Ints:
    """Returns for each slice the slice on whose line `backward` was called, or -1 if unknown.

    The slices asked for have no forward operator. A slice is returned itself if its own thread
    gives that line.
    """
    told = np.zeros(trace.slices.height, bool)
    told[trace.lines["id"].to_numpy()] = True
    is_told = nearest_ancestor_of_every_slice(trace, told) != NO_SLICE
    is_framed = enclosing_frame_of_every_slice(trace) != NO_SLICE
    known = (is_told | is_framed)[slice_ids]
    frames = filter_by_name(trace.slices, names.calls_backward)
    frames = frames.filter(pl.col("id").is_in(trace.frame_args["id"].implode()))
    threads = trace.tracks["thread"].gather(frames["track"])
    if threads.n_unique() != 1:
        return np.where(known, slice_ids, NO_SLICE)
    outermost = outermost_ancestor_of_every_slice(trace, is_backward)
    when = trace.slices["start"].to_numpy()[outermost[slice_ids]]
    return np.where(known, slice_ids, _innermost_open_frame_at(trace, frames, when))


def _innermost_open_frame_at(trace: Trace, frames: pl.DataFrame, instants: Ints) -> Ints:
    """Returns the innermost of a thread's frames open at each instant (ns), or -1 for none."""
    ids, start = frames["id"].to_numpy().astype(np.int64), frames["start"].to_numpy()
    end = trace.slices["start"] + trace.slices["duration"].fill_null(0)
    place = np.searchsorted(start, instants, side="right") - 1  # slices are in order of their start
    at = np.where(place < 0, NO_SLICE, ids[place])
    ends, caller = end.to_numpy(), caller_of_every_frame(trace)
    wanted = np.zeros(caller.size, bool)
    wanted[ids] = True
    while (over := (at != NO_SLICE) & (ends[at] <= instants)).any():
        at[over] = nearest_ancestor(caller, wanted, caller[at[over]])
    return at
