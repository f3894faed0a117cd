"""The call tree of a trace: the parent, depth and self time of each slice on a host thread.

One tree is built per trace; self times, costs, lines, modules, passes and flame graphs are computed
from it. It contains every thread's operators, annotations and runtime calls, except the recorder's
own operators, and on request the Python frames.

Operators and frames are recorded separately. Most nest, but an annotation begins within the frame
of its `__enter__` and ends within that of its `__exit__`. Where they cross, the operator or
annotation is clipped, so that every moment of a thread has one innermost slice. A profiler step
begins in one frame and ends in another, and its time belongs to the frames: on a thread with frames
steps are left out.

An operator that ended on another thread than it began on is isolated: it has no parent, no
children, and no self time, because no single thread spent that time in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.call_tree.parent_array_forests import node_order_by_depth
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name, is_on_track_kind
from selftime.array_types import Flags, Ints
from selftime.nesting import NO_SLICE, innermost_slice_at, nest_slices
from selftime.trace import Trace

_NESTING_RANK_BY_CATEGORY: Final = {"python_function": -1, "user_annotation": 0, "cpu_op": 1}
"""Order in which slices with equal start and end nest, by category; a lower number encloses a
higher one.
"""
_NESTING_RANK_OF_RUNTIME_CALLS: Final = 2
"""Nesting order of runtime calls among slices with equal start and end: operators enclose them."""


@dataclass(frozen=True, slots=True)
class CallTree:
    """The call tree of a trace: arrays with one element per slice, each parent before its children.

    The arrays are shared and read-only.
    """

    id: Ints
    """The slice id of each slice in the tree."""
    parent: Ints
    """The index in this tree of the slice that directly encloses each slice, or -1 if there is
    none.
    """
    depth: Ints
    self_time: Ints
    """Time in ns in which each slice was the innermost slice of its thread."""
    start: Ints
    """When each slice begins, in ns, after clipping at the Python frames that it crosses."""
    end: Ints
    """When each slice ends, in ns, after clipping at the Python frames that it crosses; its start
    if the end is unknown.
    """
    is_cross_thread: Flags
    """Whether each slice ended on another thread than it began on, and so has no parent and no
    children.
    """
    place: Ints
    """For each slice of the trace, by id: its index in this tree, or -1 if the tree does not
    contain it.
    """


def call_tree(trace: Trace, *, frames: bool = True, clip: bool = True) -> CallTree:
    """Returns the trace's call tree, with or without Python frames.

    Args:
        trace: The trace.
        frames: Whether Python frames are included where they were recorded. Flame graphs, lines and
            modules need them. The tables of torch's profiler, which `operators` reproduces, do not
            have them: there the time of a frame's own Python counts to the operator or annotation
            around it. Where no frames were recorded both trees are the same.
        clip: Whether slices that cross a frame are clipped, and steps are left out on a thread with
            frames. The tables of torch's profiler that list frames do neither: of two slices that
            cross, the one that began later is the innermost.
    """
    if not frames or not has_python_frames(trace):
        return _call_tree_without_python_frames(trace)
    return (
        _call_tree_with_python_frames(trace)
        if clip
        else _call_tree_without_clipping_at_frames(trace)
    )


def has_python_frames(trace: Trace) -> bool:
    """Returns whether the recording has tracks of Python frames."""
    return bool((trace.tracks["kind"] == "python").any())


@cached_per_trace
def _call_tree_with_python_frames(trace: Trace) -> CallTree:
    return _build_call_tree(trace, "host", "python")


@cached_per_trace
def _call_tree_without_clipping_at_frames(trace: Trace) -> CallTree:
    return _build_call_tree(trace, "host", "python", clip=False)


@cached_per_trace
def _call_tree_without_python_frames(trace: Trace) -> CallTree:
    return _build_call_tree(trace, "host")


def _build_call_tree(trace: Trace, *track_kinds: str, clip: bool = True) -> CallTree:
    """Returns the call tree of the slices on tracks of the given kinds."""
    lanes = _CallTreeSlices(trace, track_kinds, clip=clip)
    start, end, parent, depth, self_time = _start_end_parent_depth_self_time(trace, lanes)
    ids = np.flatnonzero(lanes.taken)
    ids = ids[node_order_by_depth(depth[ids])]
    place = np.full(trace.slices.height + 1, NO_SLICE, np.int64)  # the last is for -1: no slice
    place[ids] = np.arange(ids.size)
    found = CallTree(
        id=ids,
        parent=place[parent[ids]],
        depth=depth[ids].astype(np.int64),
        self_time=self_time[ids],
        start=start[ids],
        end=end[ids],
        is_cross_thread=lanes.is_cross_thread[ids],
        place=place[:-1],
    )
    for field in CallTree.__slots__:
        getattr(found, field).flags.writeable = False
    return found


class _CallTreeSlices:
    """Which slices of a trace the call tree contains, and the thread number of each slice."""

    def __init__(self, trace: Trace, track_kinds: tuple[str, ...], *, clip: bool) -> None:
        slices, tracks = trace.slices, trace.tracks
        self.clip = clip
        self.thread = tracks["thread"].cast(pl.Int64).to_numpy()[slices["track"].to_numpy()]
        self.taken = is_on_track_kind(trace, *track_kinds)
        self.taken[_slice_ids_by_name(slices, names.is_recorder_operator)] = False
        if "python" in track_kinds and clip:
            framed = tracks.filter(tracks["kind"] == "python")["thread"].to_numpy()
            steps = _slice_ids_by_name(
                slices, lambda name: names.profiler_step_number(name) is not None
            )
            self.taken[steps[np.isin(self.thread[steps], framed)]] = False
        self.is_cross_thread = np.zeros(slices.height, bool)
        self.is_cross_thread[
            trace.op_args["id"].filter(trace.op_args["asynchronous"]).to_numpy()
        ] = True
        self.is_cross_thread &= self.taken

    def slice_ids_to_nest_again(self, trace: Trace) -> Ints:
        """Returns the ids of slices whose parents in the trace are not valid in this call tree.

        The nesting in the trace is used where all included slices of a thread are on one track, and
        all slices of that track are included and have an end.
        """
        tracks = trace.tracks
        at = trace.slices["track"].to_numpy()
        whole = (
            self.taken & ~self.is_cross_thread & trace.slices["duration"].is_not_null().to_numpy()
        )
        takes_part = np.bincount(at[self.taken], minlength=tracks.height) > 0
        differs = np.bincount(at[~whole], minlength=tracks.height) > 0
        thread = tracks["thread"].cast(pl.Int64).to_numpy()
        reasons = np.zeros(int(thread.max(initial=0)) + 1, np.int64)
        np.add.at(reasons, thread[takes_part], 1)
        np.add.at(reasons, thread[takes_part & differs], 1)
        is_invalid = reasons[thread] > 1
        if not is_invalid.any():
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.taken & ~self.is_cross_thread & is_invalid[at])


def _slice_ids_by_name(slices: pl.DataFrame, is_name_wanted: Callable[[str], bool]) -> Ints:
    return filter_by_name(slices, is_name_wanted)["id"].cast(pl.Int64).to_numpy()


def _start_end_parent_depth_self_time(
    trace: Trace, included: _CallTreeSlices
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Returns start and end (ns), parent id, depth and self time (ns) of every slice."""
    slices = trace.slices
    start = slices["start"].to_numpy()
    end = start + slices["duration"].fill_null(0).to_numpy()
    parent, depth = parent_of_every_slice(trace), slices["depth"].to_numpy()
    self_time = slices["self"].fill_null(0).to_numpy()
    anew = included.slice_ids_to_nest_again(trace)
    alone = np.flatnonzero(included.is_cross_thread)
    if anew.size or alone.size:  # what the trace holds is read-only
        start, parent, self_time = start.copy(), parent.copy(), self_time.copy()
        depth = depth.astype(np.int64)
        parent[alone], depth[alone], self_time[alone] = NO_SLICE, 0, 0
    if anew.size:
        if included.clip:
            clip_slices_at_python_frames(trace, anew, included.thread, start, end)
        found = nest_slices(
            included.thread[anew],
            start[anew],
            end[anew],
            _nesting_rank_of_slices(slices)[anew],
            rounding_ns=0,
        )
        parent[anew] = np.where(found.parent == NO_SLICE, NO_SLICE, anew[found.parent])
        depth[anew], self_time[anew] = found.depth, found.self_time
    return start, end, parent, depth, self_time


def _nesting_rank_of_slices(slices: pl.DataFrame) -> Ints:
    unique = slices["category"].unique()
    rank = [
        _NESTING_RANK_BY_CATEGORY.get(name, _NESTING_RANK_OF_RUNTIME_CALLS)
        for name in unique.cast(pl.String).to_list()
    ]
    codes = unique.to_physical().to_numpy()
    table = np.full(int(codes.max(initial=0)) + 1, _NESTING_RANK_OF_RUNTIME_CALLS, np.int64)
    table[codes] = rank
    return np.asarray(table[slices["category"].to_physical().to_numpy()])


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
