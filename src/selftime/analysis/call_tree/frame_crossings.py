"""Clips operators and annotations where they cross Python frames.

The recorder writes the two separately: an annotation begins within the frame of its `__enter__` and
ends within that of its `__exit__`.
"""

import numpy as np

from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import is_on_track_kind
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, innermost_slice_at
from selftime.trace import Trace


def clip_slices_at_python_frames(
    trace: Trace, slice_ids: Ints, thread: Ints, start: Ints, end: Ints
) -> None:
    """Clips, in place, host slices that cross Python frames of their thread.

    Args:
        trace: The trace.
        slice_ids: The slices in the tree, frames and others, shape (m,).
        thread: The thread of each slice of the trace, shape (n,).
        start: Begin of each slice of the trace in ns, shape (n,); modified.
        end: End of each slice in ns, shape (n,); modified.
    """
    is_frame = is_on_track_kind(trace, "python")[slice_ids]
    framed = slice_ids[is_frame]
    others = slice_ids[~is_frame]
    others = others[end[others] > start[others]]
    above = parent_of_every_slice(trace)
    for number in np.unique(thread[framed]):
        lane = _PythonFramesOfThread(framed[thread[framed] == number], start, end, above)
        mine = others[thread[others] == number]
        _clip_slices_to_larger_part(lane, mine, start, end)
        _clip_slices_before_crossing_frames(lane, mine, start, end)


class _PythonFramesOfThread:
    """The Python frames of one thread, in order of their start."""

    def __init__(self, frames: Ints, start: Ints, end: Ints, parent: Ints) -> None:
        order = np.argsort(start[frames], kind="stable")
        frames = frames[order]
        self.start, self.end = start[frames], end[frames]
        place = np.full(start.size, NO_SLICE, np.int64)
        place[frames] = np.arange(frames.size)
        above = parent[frames]
        self.parent = np.where(above == NO_SLICE, NO_SLICE, place[above])
        self.root = np.where(self.parent == NO_SLICE, np.arange(frames.size), self.parent)
        while not np.array_equal(above := self.root[self.root], self.root):
            self.root = above  # the distance doubles each time

    def innermost_frame_at(self, instants: Ints) -> Ints:
        """Returns the index of the innermost open frame at each instant (ns), or -1 for none."""
        return innermost_slice_at(self.start, self.end, self.parent, instants)


def _clip_slices_to_larger_part(
    frames: _PythonFramesOfThread, slice_ids: Ints, start: Ints, end: Ints
) -> None:
    """Cuts slices, in place, where the Python frame they began in ends; keeps the longer part.

    The clipped part must lie in some frame, or its time would be lost. So a slice that outlasts
    every frame is not clipped.
    """
    frame = frames.innermost_frame_at(start[slice_ids])
    at, frame = slice_ids[frame != NO_SLICE], frame[frame != NO_SLICE]
    while at.size:
        crossing = end[at] > frames.end[frame]
        at, frame = at[crossing], frame[crossing]
        edge = frames.end[frame]
        inside = edge - start[at] >= end[at] - edge
        cut = inside & (end[at] <= frames.end[frames.root[frame]])
        end[at[cut]] = edge[cut]
        at, frame, edge = at[~inside], frame[~inside], edge[~inside]
        start[at] = edge
        frame = frames.parent[frame]
        at, frame = at[frame != NO_SLICE], frame[frame != NO_SLICE]


def _clip_slices_before_crossing_frames(
    frames: _PythonFramesOfThread, slice_ids: Ints, start: Ints, end: Ints
) -> None:
    """Clips slices, in place, at the start of the outermost Python frame that outlasts them."""
    frame = frames.innermost_frame_at(end[slice_ids] - 1)
    at, frame = slice_ids[frame != NO_SLICE], frame[frame != NO_SLICE]
    while at.size:
        inner = frames.start[frame] > start[at]
        at, frame = at[inner], frame[inner]
        outlasting = frames.end[frame] > end[at]
        end[at[outlasting]] = frames.start[frame[outlasting]]
        frame = frames.parent[frame]
        at, frame = at[frame != NO_SLICE], frame[frame != NO_SLICE]
