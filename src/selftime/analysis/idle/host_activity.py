"""Finds what the host did at any moment: the most specific reason why it launched no device work.

A thread may be in many slices at once: a kernel's launch lies in an operator, that in an optimizer,
that in Python frames. A moment counts to the first of `HOST_ACTIVITIES` that applies.
"""

from functools import cache
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.idle.host_waits import copy_calls_with_wait_flag
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_grouping import slice_codes_by_category_and_name
from selftime.array_types import Ints
from selftime.intervals import Intervals, union
from selftime.nesting import NO_SLICE, innermost_of_slices_at
from selftime.trace import Trace

HOST_ACTIVITIES: Final = (
    "profiler",
    "garbage_collection",
    "compilation",
    "kernel_loading",
    "data_loading",
    "checkpoint",
    "logging",
    "allocation",
    "pageable_copy",
    "sync",
    "collective",
    "optimizer",
    "runtime",
    "dispatch",
    "python",
)
"""Activities of the host, the most specific first; where several apply at once, the first counts.
"""

_CODE_OF_HOST_ACTIVITY: Final = {activity: code for code, activity in enumerate(HOST_ACTIVITIES)}
_CODE_OF_NO_ACTIVITY: Final = len(HOST_ACTIVITIES)
_HOST_ACTIVITY_BY_COPY_KIND: Final = {"copy_to_host": "sync", "copy_to_device": "pageable_copy"}
_PROCESS_WIDE_HOST_ACTIVITIES: Final = (
    "profiler",
    "garbage_collection",
    "kernel_loading",
    "compilation",
)
"""Activities that the recorder writes outside the threads' tracks; they delay every thread."""


class TrackSlices(NamedTuple):
    """The slices of one track in order of their start, parents before children."""

    id: Ints
    start: Ints


class HostActivityBySlice:
    """The activity of each host slice, such as compilation; arrays by slice id.

    `code` is the index in `HOST_ACTIVITIES`, or its length for none; `start` and `end` are in ns;
    `thread` and `parent` are as in the tables of the trace.
    """

    def __init__(self, trace: Trace) -> None:
        slices, tracks = trace.slices, trace.tracks
        self.code = _activity_codes_of_slices(trace)
        self.track = slices["track"].to_numpy()
        self.thread = tracks["thread"].gather(slices["track"]).cast(pl.Int64).to_numpy()
        self.start = slices["start"].to_numpy()
        self.end = self.start + slices["duration"].fill_null(0).to_numpy()
        self.parent = parent_of_every_slice(trace)
        self.shared = tracks.filter(pl.col("kind") == "profiler")["id"].to_list()
        self._depth = slices["depth"].to_numpy()
        self._tracks = tracks
        self._outer = np.flatnonzero(
            (self.code != _CODE_OF_NO_ACTIVITY) & ~self._is_inside_same_activity()
        )
        self.times_in_activity = cache(self._compute_times_in_activity)
        self._slices_of_track = cache(self._slices_in_order_on_track)

    def _is_inside_same_activity(self) -> NDArray[np.bool_]:
        """Flags slices whose parent slice has the same activity, and already covers their time."""
        own = self.code[np.maximum(self.parent, 0)] == self.code
        return np.asarray(own & (self.parent != NO_SLICE))

    def _compute_times_in_activity(self, thread: int, activity: str) -> Intervals:
        """Returns as intervals (ns) the time that a thread spent in slices of one activity."""
        at = self._outer[self.code[self._outer] == _CODE_OF_HOST_ACTIVITY[activity]]
        mine = self.thread[at] == thread
        if activity in _PROCESS_WIDE_HOST_ACTIVITIES:
            mine |= np.isin(self.track[at], self.shared)
        return union(self.start[at[mine]], self.end[at[mine]])

    def innermost_slices_of_activity(
        self, thread: int, activity_code: Ints, instants: Ints
    ) -> Ints:
        """Returns the innermost slice of each given activity at each instant (ns); -1 for none."""
        found = np.full(instants.size, NO_SLICE, np.int64)
        for track in (
            *self._track_numbers_of_thread(thread, "host"),
            *self._track_numbers_of_thread(thread, "python"),
            *self.shared,
        ):
            left = np.flatnonzero(found == NO_SLICE)
            at = self._innermost_slices_of_track_at(track, instants[left])
            while (wrong := (at != NO_SLICE) & (self.code[at] != activity_code[left])).any():
                at[wrong] = self.parent[at[wrong]]
            found[left] = at
        return found

    def innermost_frames_at(self, thread: int, instants: Ints) -> Ints:
        """Returns a thread's innermost Python frame at each instant (ns); -1 if there is none."""
        found = np.full(instants.size, NO_SLICE, np.int64)
        for track in self._track_numbers_of_thread(thread, "python"):
            found = np.where(
                found == NO_SLICE, self._innermost_slices_of_track_at(track, instants), found
            )
        return found

    def _track_numbers_of_thread(self, thread: int, kind: str) -> list[int]:
        own = self._tracks.filter((pl.col("thread") == thread) & (pl.col("kind") == kind))
        return own["id"].to_list()

    def _innermost_slices_of_track_at(self, track: int, instants: Ints) -> Ints:
        lane = self._slices_of_track(track)
        return innermost_of_slices_at(lane.id, lane.start, self.end, self.parent, instants)

    def _slices_in_order_on_track(self, track: int) -> TrackSlices:
        own = np.flatnonzero(self.track == track)
        start, depth = self.start[own], self._depth[own]
        if ((start[1:] == start[:-1]) & (depth[1:] < depth[:-1])).any():
            own = own[np.lexsort((depth, start))]
            start = self.start[own]
        return TrackSlices(own, start)


def _activity_codes_of_slices(trace: Trace) -> NDArray[np.int8]:
    """Returns each slice's activity as an index in `HOST_ACTIVITIES`, or its length for none."""
    code = slice_codes_by_category_and_name(
        trace.slices,
        lambda *pair: _CODE_OF_HOST_ACTIVITY.get(
            _activity_of_slice(*pair) or "", _CODE_OF_NO_ACTIVITY
        ),
    )
    held = copy_calls_with_wait_flag(trace).filter("waited")
    for copy, activity in _HOST_ACTIVITY_BY_COPY_KIND.items():
        code[held.filter(pl.col("copy") == copy)["id"].to_numpy()] = _CODE_OF_HOST_ACTIVITY[
            activity
        ]
    return code


def _activity_of_slice(category: str, name: str) -> str | None:
    """Returns the host activity that a slice of this category and name is, or None."""
    if category in names.RUNTIME_CALL_CATEGORIES:
        return _activity_of_runtime_call(name)
    if category == "overhead":
        return _activity_of_profiler_overhead(name)
    if category in names.FRAME_CATEGORIES:
        return _activity_of_python_frame(name)
    if names.profiler_step_number(name) is not None:  # a step does not show what is done in it
        return None
    if category in names.OPERATOR_CATEGORIES:
        return _activity_of_operator(name) or "dispatch"
    return (
        _activity_of_operator(name) or "python" if category in names.ANNOTATION_CATEGORIES else None
    )


def _activity_of_runtime_call(name: str) -> str:
    if names.is_blocking_call(name):
        return "sync"
    if names.is_device_allocation(name):
        return "allocation"
    return "kernel_loading" if names.is_kernel_loading(name) else "runtime"


def _activity_of_profiler_overhead(name: str) -> str | None:
    if names.is_profiler_overhead(name):
        return "profiler"
    if names.is_compilation(name):
        return "compilation"
    return "kernel_loading" if names.is_kernel_loading(name) else None


def _activity_of_python_frame(name: str) -> str:
    means = {
        "garbage_collection": names.is_garbage_collection,
        "compilation": names.is_compilation,
        "data_loading": names.is_next_batch_frame,
        "checkpoint": names.is_checkpoint_frame,
        "logging": names.is_logging_frame,
        "collective": names.is_collective_call,
    }
    return next((activity for activity, is_so in means.items() if is_so(name)), "python")


def _activity_of_operator(name: str) -> str | None:
    means = {
        "compilation": names.is_compilation,
        "data_loading": names.is_data_loading,
        "collective": names.is_collective_call,
        "optimizer": names.is_optimizer_annotation,
    }
    return next((activity for activity, is_so in means.items() if is_so(name)), None)
