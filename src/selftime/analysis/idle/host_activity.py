"""What the host did at any moment: the most specific of the things that keep it from launching.

A thread may be in many slices at once: a kernel's launch lies in an operator, that in an optimizer,
that in Python frames. A moment counts to the first of `ACTIVITIES` that holds of it.
"""

from functools import cache
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.grouping import by_kind
from selftime.analysis.idle.host_waits import copies_waited_for
from selftime.analysis.parents import parents
from selftime.arrays import Ints
from selftime.intervals import Intervals, union
from selftime.nesting import NONE, innermost_at
from selftime.trace import Trace

ACTIVITIES: Final = (
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
"""From the most specific to the least: what is further down is where it is for what is above."""

_CODE: Final = {activity: code for code, activity in enumerate(ACTIVITIES)}
_NO_CODE: Final = len(ACTIVITIES)
_COPIES: Final = {"copy_to_host": "sync", "copy_to_device": "pageable_copy"}
_SHARED: Final = ("profiler", "garbage_collection", "kernel_loading", "compilation")
"""What the recorder writes beside the threads holds every thread up."""


class Lane(NamedTuple):
    """The slices of one track, parents before children; `parent` holds places in the lane."""

    id: Ints
    start: Ints
    end: Ints
    parent: Ints


class Host:
    """What each host slice says that the program did; arrays over all slices of the trace.

    `code` is the place in `ACTIVITIES`, or one beyond; `start` and `end` are in ns; `thread` and
    `parent` are as in the tables of the trace.
    """

    def __init__(self, trace: Trace) -> None:
        slices, tracks = trace.slices, trace.tracks
        self.code = _codes(trace)
        self.track = slices["track"].to_numpy()
        self.thread = tracks["thread"].gather(slices["track"]).cast(pl.Int64).to_numpy()
        self.start = slices["start"].to_numpy()
        self.end = self.start + slices["duration"].fill_null(0).to_numpy()
        self.parent = parents(trace)
        self.shared = tracks.filter(pl.col("kind") == "profiler")["id"].to_list()
        self._place = np.zeros(self.code.size, np.int32)  # of each slice in the lane that has it
        self._depth = slices["depth"].to_numpy()
        self._tracks = tracks
        self._outer = np.flatnonzero((self.code != _NO_CODE) & ~self._within_its_own())
        self.times = cache(self._times)
        self._lane = cache(self._read_lane)

    def _within_its_own(self) -> NDArray[np.bool_]:
        """Slices within one of their activity: they add nothing to its time."""
        own = self.code[np.maximum(self.parent, 0)] == self.code
        return np.asarray(own & (self.parent != NONE))

    def _times(self, thread: int, activity: str) -> Intervals:
        """When a thread was in slices of an activity."""
        at = self._outer[self.code[self._outer] == _CODE[activity]]
        mine = self.thread[at] == thread
        if activity in _SHARED:
            mine |= np.isin(self.track[at], self.shared)
        return union(self.start[at[mine]], self.end[at[mine]])

    def doing(self, thread: int, code: Ints, when: Ints) -> Ints:
        """The innermost slice that is of the activity of that code, at each instant, or NONE."""
        found = np.full(when.size, NONE, np.int64)
        for track in (
            *self._tracks_of(thread, "host"),
            *self._tracks_of(thread, "python"),
            *self.shared,
        ):
            left = np.flatnonzero(found == NONE)
            at = self._innermost(track, when[left])
            while (wrong := (at != NONE) & (self.code[at] != code[left])).any():
                at[wrong] = self.parent[at[wrong]]
            found[left] = at
        return found

    def frame(self, thread: int, when: Ints) -> Ints:
        """The innermost Python frame of a thread at each instant, or NONE."""
        found = np.full(when.size, NONE, np.int64)
        for track in self._tracks_of(thread, "python"):
            found = np.where(found == NONE, self._innermost(track, when), found)
        return found

    def _tracks_of(self, thread: int, kind: str) -> list[int]:
        own = self._tracks.filter((pl.col("thread") == thread) & (pl.col("kind") == kind))
        return own["id"].to_list()

    def _innermost(self, track: int, when: Ints) -> Ints:
        lane = self._lane(track)
        found = innermost_at(lane.start, lane.end, lane.parent, when)
        return np.where(found == NONE, NONE, lane.id[found] if lane.id.size else NONE)

    def _read_lane(self, track: int) -> Lane:
        own = np.flatnonzero(self.track == track)
        start, depth = self.start[own], self._depth[own]
        if ((start[1:] == start[:-1]) & (depth[1:] < depth[:-1])).any():
            own = own[np.lexsort((depth, start))]
        self._place[own] = np.arange(own.size, dtype=np.int32)
        above = self.parent[own]
        parent = np.where(above == NONE, NONE, self._place[above])
        return Lane(own, self.start[own], self.end[own], parent)


def _codes(trace: Trace) -> NDArray[np.int8]:
    """The activity of each slice, by its category and name; of calls also by what they copied."""
    code = by_kind(trace.slices, lambda *pair: _CODE.get(_activity(*pair) or "", _NO_CODE))
    held = copies_waited_for(trace).filter("waited")
    for copy, activity in _COPIES.items():
        code[held.filter(pl.col("copy") == copy)["id"].to_numpy()] = _CODE[activity]
    return code


def _activity(category: str, name: str) -> str | None:
    """What a slice of that category and name says that the program did."""
    if category in names.CALLS:
        return _of_call(name)
    if category == "overhead":
        return _of_overhead(name)
    if category in names.FRAMES:
        return _of_frame(name)
    if names.step_number(name) is not None:  # a step says nothing of what is done in it
        return None
    if category in names.OPERATORS:
        return _of_mark(name) or "dispatch"
    return _of_mark(name) or "python" if category in names.ANNOTATIONS else None


def _of_call(name: str) -> str:
    if names.is_blocking_call(name):
        return "sync"
    if names.is_device_allocation(name):
        return "allocation"
    return "kernel_loading" if names.is_kernel_loading(name) else "runtime"


def _of_overhead(name: str) -> str | None:
    if names.is_profiler_overhead(name):
        return "profiler"
    if names.is_compilation(name):
        return "compilation"
    return "kernel_loading" if names.is_kernel_loading(name) else None


def _of_frame(name: str) -> str:
    means = {
        "garbage_collection": names.is_garbage_collection,
        "compilation": names.is_compilation,
        "data_loading": names.is_loading_frame,
        "checkpoint": names.is_checkpoint,
        "logging": names.is_logging,
        "collective": names.is_collective_call,
    }
    return next((activity for activity, is_so in means.items() if is_so(name)), "python")


def _of_mark(name: str) -> str | None:
    means = {
        "compilation": names.is_compilation,
        "data_loading": names.is_data_loading,
        "collective": names.is_collective_call,
        "optimizer": names.is_optimizer,
    }
    return next((activity for activity, is_so in means.items() if is_so(name)), None)
