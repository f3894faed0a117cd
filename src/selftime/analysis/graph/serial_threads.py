"""Groups host threads that take turns into serial threads, and finds what each did at any time.

At each moment a serial thread has one state: garbage collection; else a wait for data; else the
outermost operator or call; else, between those, the innermost Python frame or annotation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final
from weakref import ref

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.graph.dependency_graphs import (
    CODE_OF_SEGMENT_KIND,
    MAX_REACTION_AFTER_WAIT_NS,
    TIME_BEFORE_RECORDING_NS,
)
from selftime.analysis.main_thread import is_work_of_host_thread, main_thread
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import filter_by_name, slices_on, with_known_end
from selftime.analysis.source_line_owners import profiler_step_ids
from selftime.array_types import Flags, Ints
from selftime.intervals import (
    Intervals,
    intersect,
    length,
    order_by_start_and_end,
    subtract,
    union,
)
from selftime.nesting import NO_SLICE, innermost_slice_at
from selftime.trace import Trace

_MAX_OVERLAP_SHARE_OF_SERIAL_THREADS: Final = 0.1
"""Largest share (0 to 1) of the less busy thread's working time in which two threads that take
turns both work.

Autograd's thread works while the thread that called `backward` waits for it.
"""


def group_alternating_threads(busy_times: Mapping[int, Intervals]) -> dict[int, int]:
    """Returns the group number of each thread (0 is busiest); threads that take turns share one.

    Args:
        busy_times: When each thread works. A thread that never works belongs to the busiest.
    """
    joint: list[Intervals] = []
    found: dict[int, int] = {}
    for thread in sorted(busy_times, key=lambda t: (-length(busy_times[t]), t)):
        own = busy_times[thread]
        for number, others in enumerate(joint):
            if length(intersect(own, others)) <= _MAX_OVERLAP_SHARE_OF_SERIAL_THREADS * min(
                length(own), length(others)
            ):
                starts = np.concatenate([others.starts, own.starts])
                joint[number] = union(starts, np.concatenate([others.ends, own.ends]))
                found[thread] = number
                break
        else:
            found[thread] = len(joint)
            joint.append(own)
    return found


@dataclass(frozen=True, slots=True)
class DisjointHostSlices:
    """Host slices in order of time, clipped so that none overlap; shape (n,), times in ns."""

    start: Ints
    end: Ints
    id: Ints

    @property
    def times(self) -> Intervals:
        return Intervals(self.start, self.end)


@dataclass(frozen=True, slots=True)
class SerialThreads:
    """The serial threads of a host: each is one thread, or several that take turns."""

    number_by_thread: Ints
    """For each host thread, by number: the number of its serial thread; -1 for other threads."""
    main_thread: int
    """The number of the serial thread that contains the main thread, or -1 if there is none."""
    slices_by_thread: dict[int, DisjointHostSlices]
    """Maps the number of each serial thread to its outermost operators and calls."""

    def busy_since_times(self, thread_number: int, instants: Ints) -> Ints:
        """Returns for each instant when (ns) the thread's work then in progress began.

        Operators that follow each other closely count as one work, because the program runs between
        them. Outside work it is the instant itself.
        """
        work = self.slices_by_thread.get(thread_number)
        if work is None or not work.id.size:
            return instants
        opens = np.append(True, work.start[1:] > work.end[:-1] + MAX_REACTION_AFTER_WAIT_NS)
        begin, end = work.start[opens], work.end[np.append(opens[1:], True)]
        at = np.searchsorted(begin, instants, side="left") - 1
        inside = (at >= 0) & (instants <= end[np.maximum(at, 0)] + MAX_REACTION_AFTER_WAIT_NS)
        return np.where(inside, begin[np.maximum(at, 0)], instants)


@cached_per_trace
def serial_threads(trace: Trace) -> SerialThreads:
    """Returns the host threads of a trace, busiest first; threads that take turns count as one."""
    host = slices_on(trace, "host", ended=True)
    host = host.filter(pl.Series(_is_work_outside_other_work(trace, host)))
    thread = trace.tracks["thread"].gather(host["track"]).cast(pl.Int64).to_numpy()
    start = host["start"].to_numpy()
    end, number = start + host["duration"].to_numpy(), host["id"].cast(pl.Int64).to_numpy()
    on_host = trace.tracks.filter(pl.col("kind").is_in(["host", "python"]))["thread"]
    rows = {t: np.flatnonzero(thread == t) for t in on_host.unique().sort().to_list()}
    busy = {t: union(start[own], end[own]) for t, own in rows.items()}
    found = group_alternating_threads(busy)
    threads = trace.tracks["thread"].to_numpy()
    serial = np.full(int(threads.max(initial=0)) + 1, NO_SLICE)
    serial[list(found)] = list(found.values())
    work = {}
    for joint in set(found.values()):
        own = np.sort(np.concatenate([rows[t] for t in found if found[t] == joint]))
        work[joint] = cut_to_outermost_slices(start[own], end[own], number[own])
    main = main_thread(trace)
    return SerialThreads(serial, NO_SLICE if main is None else int(serial[main]), work)


def _is_work_outside_other_work(trace: Trace, host: pl.DataFrame) -> Flags:
    """Flags the work of host threads that does not lie within its parent, if that is work too."""
    is_work = is_work_of_host_thread(host)
    ids, end = host["id"].to_numpy(), (host["start"] + host["duration"]).to_numpy()
    end_of_work = np.full(trace.slices.height + 1, TIME_BEFORE_RECORDING_NS, np.int64)
    end_of_work[ids[is_work]] = end[is_work]  # the last one is for -1: no parent
    return np.asarray(is_work & (end > end_of_work[parent_of_every_slice(trace)[ids]]))


def cut_to_outermost_slices(start: Ints, end: Ints, slice_id: Ints) -> DisjointHostSlices:
    """Clips each slice to the time in which no earlier slice is still open; drops empty slices.

    Args:
        start: Begin of each slice, ascending, shape (n,).
        end: End of each slice.
        slice_id: The id of each slice.
    """
    order = order_by_start_and_end(start, -end, np.arange(start.size))
    start, end, slice_id = start[order], end[order], slice_id[order]
    reach = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(end))[:-1]
    begin = np.maximum(start, reach)
    open_ = end > begin
    return DisjointHostSlices(begin[open_], end[open_], slice_id[open_])


@dataclass(frozen=True, slots=True)
class SingleThreadStates:
    """What a host thread did: state i lasts from `edge[i]` to `edge[i + 1]`, in ns."""

    state_bounds: Ints
    kind: Ints
    """The code of the state's kind, as in `CODE_OF_SEGMENT_KIND`."""
    slice_id: Ints
    """The id of the slice that the thread was in; -1 between operators."""


class HostThreadStates:
    """What each host thread of a trace did at any time; threads that take turns count as one."""

    def __init__(self, trace: Trace) -> None:
        self._trace_reference = ref(
            trace
        )  # a weak reference: cached data must not keep its trace alive
        self._threads = serial_threads(trace)
        self._thread = trace.tracks["thread"].cast(pl.Int64).to_numpy()
        self.states = cache(self._thread_states)
        self._track_slices = cache(self._ids_times_and_parents_on_track)

    @property
    def _trace(self) -> Trace:
        trace = self._trace_reference()
        if trace is None:
            raise RuntimeError("the trace was deleted before its host thread states were read")
        return trace

    def _thread_states(self, thread_number: int) -> SingleThreadStates:
        """Returns the states of a host thread over the whole trace."""
        left = Intervals(
            np.array([TIME_BEFORE_RECORDING_NS]), np.array([-TIME_BEFORE_RECORDING_NS])
        )
        taken, kinds, slices = [], [], []
        for kind, found in self._slices_by_state_precedence(thread_number):
            own = intersect(left, found.times)
            at = np.searchsorted(found.start, own.starts, side="right") - 1
            taken.append(own.starts)
            kinds.append(np.full(at.size, CODE_OF_SEGMENT_KIND[kind]))
            slices.append(found.id[at] if at.size else at)
            left = subtract(left, found.times)
        start = np.concatenate([*taken, left.starts])
        order = np.argsort(start, kind="stable")
        code = np.concatenate([*kinds, np.full(left.starts.size, CODE_OF_SEGMENT_KIND["host"])])
        number = np.concatenate([*slices, np.full(left.starts.size, NO_SLICE)])
        return SingleThreadStates(
            np.append(start[order], -TIME_BEFORE_RECORDING_NS), code[order], number[order]
        )

    def _slices_by_state_precedence(
        self, thread_number: int
    ) -> list[tuple[str, DisjointHostSlices]]:
        """Returns each state's disjoint slices on a thread; where two overlap, the first counts."""
        host = slices_on(self._trace, "host", ended=True)
        paused = filter_by_name(with_known_end(self._trace.slices), names.is_garbage_collection)
        loading = self._slices_on_thread(filter_by_name(host, names.is_data_loading), thread_number)
        if not loading.height:
            python = slices_on(self._trace, "python", ended=True)
            loading = self._slices_on_thread(
                filter_by_name(python, names.is_next_batch_frame), thread_number
            )
        work = self._threads.slices_by_thread.get(thread_number)
        found = [("gc", _disjoint_host_slices(paused)), ("data", _disjoint_host_slices(loading))]
        return found if work is None else [*found, ("host", work)]

    def _slices_on_thread(self, slices: pl.DataFrame, thread_number: int) -> pl.DataFrame:
        of = self._threads.number_by_thread[self._thread[slices["track"].to_numpy()]]
        return slices.filter(pl.Series(of == thread_number, dtype=pl.Boolean))

    def open_frame_or_annotation(self, thread_number: int, instants: Ints) -> Ints:
        """Returns the innermost Python frame or annotation open at each instant; -1 for none."""
        found, begun = (
            np.full(instants.size, NO_SLICE, np.int64),
            np.full(instants.size, TIME_BEFORE_RECORDING_NS),
        )
        kinds = is_host_track(self._trace)
        for track in np.flatnonzero(
            kinds & (self._threads.number_by_thread[self._thread] == thread_number)
        ).tolist():
            own, start, end, parent = self._track_slices(track)
            at = innermost_slice_at(start, end, parent, instants)
            known = np.flatnonzero(at != NO_SLICE)
            later = known[start[at[known]] >= begun[known]]
            found[later], begun[later] = own[at[later]], start[at[later]]
        return found

    def _ids_times_and_parents_on_track(self, track: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Returns ids, starts (ns), ends (ns) and parent indexes of the slices on a track.

        Step marks are left out, because they do not show what is done in a step.
        """
        slices = self._trace.slices
        is_on_track = slices["track"].to_numpy() == track
        is_on_track[profiler_step_ids(self._trace)] = False
        for column in ("name", "duration"):
            if slices[column].null_count():
                is_on_track &= slices[column].is_not_null().to_numpy()
        own = np.flatnonzero(is_on_track)
        start, depth = slices["start"].to_numpy()[own], slices["depth"].to_numpy()[own]
        later, deeper = start[1:] > start[:-1], depth[1:] >= depth[:-1]
        if not (later | ((start[1:] == start[:-1]) & deeper)).all():
            order = np.lexsort((depth, start))
            own, start = own[order], start[order]
        place = np.full(slices.height + 1, NO_SLICE, np.int32)
        place[own] = np.arange(own.size, dtype=np.int32)
        parent = place[parent_of_every_slice(self._trace)[own]].astype(np.int64)
        return own, start, start + slices["duration"].to_numpy()[own], parent


def is_host_track(trace: Trace) -> NDArray[np.bool_]:
    """Flags the tracks that have slices of host threads."""
    return trace.tracks["kind"].is_in(["host", "python"]).to_numpy()


def _disjoint_host_slices(slices: pl.DataFrame) -> DisjointHostSlices:
    slices = slices.sort("start", "id")
    start = slices["start"].to_numpy()
    end = start + slices["duration"].to_numpy()
    return cut_to_outermost_slices(start, end, slices["id"].cast(pl.Int64).to_numpy())


@cached_per_trace
def host_states(trace: Trace) -> HostThreadStates:
    """Returns what each host thread of a trace did at any time."""
    return HostThreadStates(trace)
