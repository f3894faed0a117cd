"""Whether work is part of the forward pass, the backward pass, or recomputed within that.

A backward operator belongs to the forward operator whose gradient it computes: in the tree of this
account it hangs under that, wherever and on whichever thread it ran. The nodes that add to the
gradients of parameters belong to none: whole buckets of gradients are reduced from within them.
They hang under the Python frame that called `backward`, where that is known: see `line_owners`.

Work that is recomputed in the backward pass (activation checkpointing) is told by what only forward
work has: an operator that autograd numbers, or a module's frame, within a backward operator. Second
derivatives look alike.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.call_tree.call_tree import CallTree, call_tree
from selftime.analysis.call_tree.forest import by_depth, levels, totals
from selftime.analysis.line_owners import line_owners
from selftime.analysis.slice_filters import filter_by_name
from selftime.arrays import Flags, Ints
from selftime.intervals import union
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

FORWARD: Final = 0
"""Everything that is neither of the others: also data loading, optimizers, what needs no grad."""
BACKWARD: Final = 1
RECOMPUTE: Final = 2


@dataclass(frozen=True, slots=True)
class Passes:
    """The call tree with backward operators moved under their forward operators.

    Arrays have one entry for each entry of the call tree, in its order. They are shared by all who
    ask and may only be read.
    """

    entries: CallTree
    """The call tree as it ran."""
    parent: Ints
    """The place of the entry that each belongs to, or NONE."""
    running: NDArray[np.int8]
    """FORWARD, BACKWARD or RECOMPUTE."""
    levels: tuple[Ints, ...]
    """The places by their distance from the roots of this tree, nearest first."""

    def total(self, own: Ints) -> Ints:
        """Own amounts with those of all that belongs to each entry."""
        return totals(self.parent, self.levels, own)


@cached_per_trace
def passes_of(trace: Trace) -> Passes:
    """Say of every host slice and frame in which pass it ran and what it belongs to."""
    entries = call_tree(trace)
    backward = _backward(trace, entries)
    parent, found = entries.parent, by_depth(entries.depth)
    running = np.zeros(entries.id.size, np.int8)
    if backward.any():
        parent = _hung(trace, entries, backward)
        running = _running(trace, entries, backward)
        if (parent != entries.parent).any():
            found = levels(parent)
    running.flags.writeable = False
    for array in (parent, *found):
        array.flags.writeable = False
    return Passes(entries, parent, running, tuple(found))


def may_recompute(trace: Trace) -> bool:
    """Whether anything can be recomputed: what only forward work has, while a backward one ran.

    Where this is false `passes_of` finds nothing that is, and need not be asked.
    """
    thread = trace.tracks["thread"].gather(trace.slices["track"]).to_numpy()
    start = trace.slices["start"].to_numpy()
    end = start + trace.slices["duration"].fill_null(0).to_numpy()
    forward, backward = _forward_ids(trace).to_numpy(), _backward_ids(trace).to_numpy()
    for number in np.unique(thread[backward]):
        around = backward[thread[backward] == number]
        times = union(start[around], np.maximum(end[around], start[around] + 1))
        mine = forward[thread[forward] == number]
        at = np.searchsorted(times.starts, end[mine], side="right") - 1
        if ((at >= 0) & (times.ends[at] >= start[mine])).any():
            return True
    return False


def _backward(trace: Trace, entries: CallTree) -> Flags:
    """Entries that are operators of the backward pass themselves."""
    return _marked(entries, _backward_ids(trace))


def _backward_ids(trace: Trace) -> pl.Series:
    told = (pl.col("forward_thread") > 0) | pl.col("forward").is_not_null()
    named = (names.is_backward_node, names.accumulates_gradient)
    ids = [filter_by_name(trace.slices, means)["id"] for means in named]
    return pl.concat([trace.op_args.select(pl.col("id").filter(told))["id"], *ids])


def _forward_ids(trace: Trace) -> pl.Series:
    """What only forward work has: operators that autograd numbers, frames of modules."""
    numbered = (pl.col("sequence") >= 0) & (pl.col("forward_thread") == 0)
    modules = trace.frame_args.select("id", "module_id").drop_nulls()["id"]
    return pl.concat([trace.op_args.select(pl.col("id").filter(numbered))["id"], modules])


def _marked(entries: CallTree, ids: pl.Series) -> Flags:
    found = np.zeros(entries.id.size, bool)
    place = entries.place[ids.to_numpy()]
    found[place[place != NONE]] = True
    return found


def _hung(trace: Trace, entries: CallTree, backward: Flags) -> Ints:
    """Parents, with each backward operator that is in no other of its node under its forward one.

    What did not begin after its forward operator is not hung: its number can only be wrong.
    """
    told = trace.op_args.select("id", "forward").drop_nulls()
    at = entries.place[told["id"].to_numpy()]
    to = entries.place[told["forward"].to_numpy()]
    known = (at != NONE) & (to != NONE)
    forward = np.full(entries.id.size, NONE, np.int64)
    forward[at[known]] = to[known]
    start = trace.slices["start"].to_numpy()[entries.id]
    adds = _marked(entries, filter_by_name(trace.slices, names.accumulates_gradient)["id"])
    at = np.flatnonzero(backward & (forward != NONE) & ~adds)
    at = at[start[forward[at]] < start[at]]
    above = entries.parent[at]
    of_same_node = (above != NONE) & (forward[above] == forward[at])
    at = at[~of_same_node]
    parent = entries.parent.copy()
    parent[at] = forward[at]
    alone = np.flatnonzero(backward & (parent == NONE))
    parent[alone] = _calls(trace, entries, alone)
    return parent


def _calls(trace: Trace, entries: CallTree, alone: Ints) -> Ints:
    """The places of the frames that called `backward` for these roots, or NONE."""
    owner = line_owners(trace)[entries.id[alone]]
    is_frame = np.zeros(trace.slices.height, bool)
    is_frame[trace.frame_args["id"].to_numpy()] = True
    called = (owner != NONE) & is_frame[owner] if is_frame.size else owner != NONE
    return np.where(called, entries.place[owner], NONE)


def _running(trace: Trace, entries: CallTree, backward: Flags) -> NDArray[np.int8]:
    """The pass of each entry: that of the nearest entry around it that shows one."""
    again = _marked(entries, _forward_ids(trace))
    asked = np.flatnonzero(again & ~backward)
    again[:] = False
    again[asked[nearest(entries.parent, backward, asked) != NONE]] = True
    shown = np.full(entries.id.size, FORWARD, np.int8)
    shown[backward], shown[again] = BACKWARD, RECOMPUTE
    for level in by_depth(entries.depth)[1:]:
        plain = level[shown[level] == FORWARD]
        shown[plain] = shown[entries.parent[plain]]
    return shown
