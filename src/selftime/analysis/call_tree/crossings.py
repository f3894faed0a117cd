"""Where operators and annotations cross Python frames: what is cut off them.

The recorder writes both apart. An annotation begins within the frame of its `__enter__`, and ends
within that of its `__exit__`.
"""

import numpy as np

from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import is_on
from selftime.arrays import Ints
from selftime.nesting import NONE, innermost_at
from selftime.trace import Trace


def cut_crossings(trace: Trace, chosen: Ints, thread: Ints, start: Ints, end: Ints) -> None:
    """Cut off host slices what crosses frames of their thread, in place.

    Args:
        trace: What was recorded.
        chosen: The slices that take part, frames and others, shape (m,).
        thread: The thread of each slice of the trace, shape (n,).
        start: Begin of each slice of the trace in ns, shape (n,); written to.
        end: End of each, likewise.
    """
    is_frame = is_on(trace, "python")[chosen]
    framed = chosen[is_frame]
    others = chosen[~is_frame]
    others = others[end[others] > start[others]]
    above = parents(trace)
    for number in np.unique(thread[framed]):
        lane = _Lane(framed[thread[framed] == number], start, end, above)
        mine = others[thread[others] == number]
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
