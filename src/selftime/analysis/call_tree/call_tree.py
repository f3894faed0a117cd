"""Host slices and Python frames of a thread as one tree.

The recorder writes operators and frames apart. Most lie within each other, but an annotation
begins within the frame of its `__enter__` and ends within that of its `__exit__`: such crossings
are cut off the operator or annotation, so that every moment of a thread has one innermost slice.
Profiler steps cross whole programs: they take no part where there are frames, and stand around
operators where there are none. The recorder's own operators take no part.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.as_read import as_read
from selftime.analysis.call_tree.forest import outer_first
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import filter_by_name, is_on
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE, innermost_at, nest
from selftime.trace import Trace

_RANKS: Final = {"python_function": -1, "user_annotation": 0, "cpu_op": 1}
"""Of slices with equal times frames lie around annotations, those around operators."""
_LAST: Final = 2
"""And those around calls."""


@dataclass(frozen=True, slots=True)
class CallTree:
    """One entry for each slice that takes part; arrays of shape (n,), parents before children."""

    id: Ints
    """The slice."""
    parent: Ints
    """The place of the innermost entry around it, or NONE."""
    depth: Ints
    self_time: Ints
    """Time in ns in which it was the innermost of its thread."""
    place: Ints
    """For each slice of the trace: its place here, or NONE."""


def call_tree(trace: Trace) -> CallTree:
    """Weave every thread's host slices and Python frames into one tree.

    What ended on another thread has no parent and no children; what never ended has no length.
    """
    slices = trace.slices
    thread = trace.tracks["thread"].cast(pl.Int64).to_numpy()[slices["track"].to_numpy()]
    kept = _kept(trace, thread)
    apart = np.zeros(slices.height, bool)
    apart[trace.op_args["id"].filter(trace.op_args["asynchronous"]).to_numpy()] = True
    lonely = np.flatnonzero(kept & apart)
    tree = _nested(trace, kept, apart, thread)
    at = np.flatnonzero(kept & ~apart)
    ids = np.append(at[outer_first(tree.depth[at])], lonely)
    back = np.full(slices.height, NONE, np.int64)
    back[ids] = np.arange(ids.size)
    above = tree.parent[ids]
    return CallTree(
        id=ids,
        parent=np.where(above == NONE, NONE, back[above]),
        depth=tree.depth[ids],
        self_time=tree.self_time[ids],
        place=back,
    )


class _Tree(NamedTuple):
    """How slices lie within each other; arrays over all slices of the trace."""

    parent: Ints
    """The slice around each, or NONE."""
    depth: Ints
    self_time: Ints


def _nested(trace: Trace, kept: Flags, apart: Flags, thread: Ints) -> _Tree:
    """The tree of each thread: as read where all is of one track, else woven anew."""
    slices = trace.slices
    tree = _Tree(
        parents(trace).copy(),
        slices["depth"].to_numpy().astype(np.int64),
        slices["self"].fill_null(0).to_numpy().copy(),
    )
    lonely = kept & apart
    tree.parent[lonely], tree.depth[lonely] = NONE, 0
    tree.self_time[lonely] = slices["duration"].fill_null(0).to_numpy()[lonely]
    anew = np.flatnonzero(kept & ~apart & ~as_read(trace, kept, apart)[thread])
    if anew.size:
        start = slices["start"].to_numpy().copy()
        end = start + slices["duration"].fill_null(0).to_numpy()
        _trim(trace, kept, thread, start, end)
        found = nest(thread[anew], start[anew], end[anew], _ranks(slices)[anew], bleed=0)
        tree.parent[anew] = np.where(found.parent == NONE, NONE, anew[found.parent])
        tree.depth[anew], tree.self_time[anew] = found.depth, found.self_time
    return tree


def _ranks(slices: pl.DataFrame) -> Ints:
    unique = slices["category"].unique()
    rank = [_RANKS.get(name, _LAST) for name in unique.cast(pl.String).to_list()]
    codes = unique.to_physical().to_numpy()
    table = np.full(int(codes.max(initial=0)) + 1, _LAST, np.int64)
    table[codes] = rank
    return np.asarray(table[slices["category"].to_physical().to_numpy()])


def _kept(trace: Trace, thread: Ints) -> Flags:
    """Host slices and frames, less the recorder's own, less steps where there are frames."""
    slices, tracks = trace.slices, trace.tracks
    kept = is_on(trace, "host", "python")
    kept[filter_by_name(slices, names.is_recorder_operator)["id"].to_numpy()] = False
    framed = tracks.filter(pl.col("kind") == "python")["thread"].cast(pl.Int64).to_numpy()
    steps = filter_by_name(slices, lambda name: names.step_number(name) is not None)[
        "id"
    ].to_numpy()
    kept[steps[np.isin(thread[steps], framed)]] = False
    return kept


def _trim(trace: Trace, kept: Flags, thread: Ints, start: Ints, end: Ints) -> None:
    """Cut off host slices what crosses frames, in place."""
    kinds = trace.tracks["kind"]
    if not (kinds == "python").any():
        return
    track = trace.slices["track"].to_numpy()
    is_frame = (kinds == "python").to_numpy()[track]
    is_host = (kinds == "host").to_numpy()[track]
    parent = parents(trace)
    host = np.flatnonzero(kept & is_host & (end > start))
    for number in np.unique(thread[is_frame]):
        frames = np.flatnonzero(is_frame & (thread == number))
        mine = host[thread[host] == number]
        lane = _Lane(frames, start, end, parent)
        _trim_starts(lane, mine, start, end)
        _trim_ends(lane, mine, start, end)


class _Lane:
    """The frames of one thread, in order of their start."""

    def __init__(self, frames: Ints, start: Ints, end: Ints, parent: Ints) -> None:
        order = np.argsort(start[frames], kind="stable")
        frames = frames[order]
        self.start, self.end = start[frames], end[frames]
        place = np.full(start.size, NONE, np.int64)
        place[frames] = np.arange(frames.size)
        above = parent[frames]
        self.parent = np.where(above == NONE, NONE, place[above])
        self.root = np.where(self.parent == NONE, np.arange(frames.size), self.parent)
        while not np.array_equal(above := self.root[self.root], self.root):
            self.root = above  # twice as far with each turn

    def innermost(self, when: Ints) -> Ints:
        return innermost_at(self.start, self.end, self.parent, when)


def _trim_starts(lane: _Lane, mine: Ints, start: Ints, end: Ints) -> None:
    """A slice that outlasts the frame it began in keeps the larger part.

    What is cut off must lie in some frame, lest it be lost: what outlasts all stays as it is.
    """
    frame = lane.innermost(start[mine])
    at, frame = mine[frame != NONE], frame[frame != NONE]
    while at.size:
        crossing = end[at] > lane.end[frame]
        at, frame = at[crossing], frame[crossing]
        edge = lane.end[frame]
        inside = edge - start[at] >= end[at] - edge
        cut = inside & (end[at] <= lane.end[lane.root[frame]])
        end[at[cut]] = edge[cut]
        at, frame, edge = at[~inside], frame[~inside], edge[~inside]
        start[at] = edge
        frame = lane.parent[frame]
        at, frame = at[frame != NONE], frame[frame != NONE]


def _trim_ends(lane: _Lane, mine: Ints, start: Ints, end: Ints) -> None:
    """A slice ends where the outermost of the frames begins that outlast it."""
    frame = lane.innermost(end[mine] - 1)
    at, frame = mine[frame != NONE], frame[frame != NONE]
    while at.size:
        inner = lane.start[frame] > start[at]
        at, frame = at[inner], frame[inner]
        outlasting = lane.end[frame] > end[at]
        end[at[outlasting]] = lane.start[frame[outlasting]]
        frame = lane.parent[frame]
        at, frame = at[frame != NONE], frame[frame != NONE]
