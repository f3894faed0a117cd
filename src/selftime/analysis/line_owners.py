"""Whose source line each host slice counts to: mostly its own, in the backward pass another's.

One rule for every view and every rule of the advice:

- An operator of the backward pass counts to the line of the forward operator whose gradient it
  computes, on whichever thread it runs.
- Python code of the user's own that runs within the backward pass, and what it calls, counts to its
  own line. So does forward work that is recomputed there.
- What adds to the gradients of parameters counts to no forward operator, as whole buckets of
  gradients are reduced from within it: it counts to the line that called `backward`. On the thread
  of that call the recording tells this line; on autograd's own threads the Python frame does that
  was in the call at the time. Where there is neither, the line is unknown.
- A profiler step counts to no line: it only began on the line that ended the step before.
"""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.parents import callers, frames_around, parents
from selftime.analysis.slice_filters import filter_by_name, matches_name
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE, nearest
from selftime.trace import Trace


@cached_per_trace
def line_owners(trace: Trace) -> Ints:
    """For each slice the slice whose line it has, mostly itself; NONE if it has no line.

    To be read only.
    """
    owner = np.arange(trace.slices.height)
    backward = _backward(trace)
    if backward.any():
        inside = _inside(trace, backward)
        owner[inside] = _owners(trace, backward, inside)
    owner[step_slices(trace)] = NONE
    owner.flags.writeable = False
    return owner


@cached_per_trace
def step_slices(trace: Trace) -> Ints:
    """The ids of the profiler's steps."""
    return filter_by_name(trace.slices, lambda name: names.step_number(name) is not None)[
        "id"
    ].to_numpy()


def _backward(trace: Trace) -> Flags:
    """Slices that are operators of the backward pass themselves."""
    told = (pl.col("forward_thread") > 0) | pl.col("forward").is_not_null()
    found = np.zeros(trace.slices.height, bool)
    found[trace.op_args.select(pl.col("id").filter(told))["id"].to_numpy()] = True
    found |= matches_name(trace.slices, names.is_backward_node)
    return found | _accumulates(trace)


def _accumulates(trace: Trace) -> Flags:
    return matches_name(trace.slices, names.accumulates_gradient)


def _inside(trace: Trace, backward: Flags) -> Ints:
    """Slices in the backward pass, without the user's own code and what is recomputed in it."""
    parent = parents(trace)
    numbered = (pl.col("sequence") >= 0) & (pl.col("forward_thread") == 0)
    shows = backward.copy()
    shows[trace.op_args.select(pl.col("id").filter(numbered))["id"].to_numpy()] = True
    node = nearest(parent, shows, np.arange(parent.size))
    inside = np.flatnonzero((node != NONE) & backward[node])
    start = trace.slices["start"].to_numpy()
    frame = frames_around(trace)[inside]
    within = (frame != NONE) & (start[frame] >= start[_outermost(parent, backward, inside)])
    return np.asarray(inside[~within])


def _outermost(parent: Ints, backward: Flags, asked: Ints) -> Ints:
    """The outermost backward operator around each slice, each of which has one."""
    top = nearest(parent, backward, asked)
    above = top
    while (found := above != NONE).any():
        top = np.where(found, above, top)
        over = np.where(found, parent[above], NONE)
        above = nearest(parent, backward, over)
    return np.asarray(top)


def _owners(trace: Trace, backward: Flags, inside: Ints) -> Ints:
    """The forward operators of these slices; of those that have none, the call of `backward`."""
    parent, start = parents(trace), trace.slices["start"].to_numpy()
    forward = np.full(parent.size, NONE, np.int64)
    told = trace.op_args.select("id", "forward").drop_nulls()
    at, to = told["id"].to_numpy(), told["forward"].cast(pl.Int64).to_numpy()
    earlier = start[to] < start[at]  # a number that leads to later work can only be wrong
    forward[at[earlier]] = to[earlier]
    adds = _accumulates(trace)
    forward[adds] = NONE
    node = nearest(parent, (forward != NONE) | adds, inside)
    owner = np.where(node == NONE, NONE, forward[node])
    alone = np.flatnonzero(owner == NONE)
    owner[alone] = _calls(trace, backward, inside[alone])
    return _settled(parent.size, inside, owner)


def _settled(size: int, inside: Ints, owner: Ints) -> Ints:
    """The owners of the owners: a forward operator can be part of another backward pass."""
    every = np.arange(size)
    every[inside] = owner
    while True:
        further = np.where(owner == NONE, NONE, every[owner])
        if np.array_equal(further, owner):
            return owner
        owner = further


def _calls(trace: Trace, backward: Flags, alone: Ints) -> Ints:
    """Of slices without a forward operator: what tells the line that called `backward`.

    The slices themselves where their own thread tells their line.
    """
    parent = parents(trace)
    told = np.zeros(parent.size, bool)
    told[trace.lines["id"].to_numpy()] = True
    known = (nearest(parent, told, alone) != NONE) | (frames_around(trace)[alone] != NONE)
    frames = filter_by_name(trace.slices, names.calls_backward)
    frames = frames.filter(pl.col("id").is_in(trace.frame_args["id"].implode()))
    threads = trace.tracks["thread"].gather(frames["track"])
    if threads.n_unique() != 1:
        return np.where(known, alone, NONE)
    when = trace.slices["start"].to_numpy()[_outermost(parent, backward, alone)]
    return np.where(known, alone, _open_at(trace, frames, when))


def _open_at(trace: Trace, frames: pl.DataFrame, when: Ints) -> Ints:
    """The innermost of these frames of one thread that is open at each instant, or NONE."""
    ids, start = frames["id"].to_numpy().astype(np.int64), frames["start"].to_numpy()
    end = trace.slices["start"] + trace.slices["duration"].fill_null(0)
    place = np.searchsorted(start, when, side="right") - 1  # slices are in order of their start
    at = np.where(place < 0, NONE, ids[place])
    ends, caller = end.to_numpy(), callers(trace)
    wanted = np.zeros(caller.size, bool)
    wanted[ids] = True
    while (over := (at != NONE) & (ends[at] <= when)).any():
        at[over] = nearest(caller, wanted, caller[at[over]])
    return at
