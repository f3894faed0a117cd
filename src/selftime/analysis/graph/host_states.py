"""What a serial thread of the host did at each moment: one slice of one kind.

A moment counts to garbage collection, else to a wait for data, else to the operator or call that
lies in no other; between these to the innermost Python frame or annotation in the middle.
"""

from dataclasses import dataclass
from functools import cache
from weakref import ref

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.graph.segment_kinds import CODE, NEVER
from selftime.analysis.graph.serial_threads import DisjointSlices, outermost, serial_threads_of
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import filter_by_name, slices_on, with_known_end
from selftime.arrays import Ints
from selftime.intervals import Intervals, intersect, subtract
from selftime.nesting import NONE, innermost_at
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class States:
    """All time, divided; `edge` has one more than the others, in ns."""

    edge: Ints
    kind: Ints
    """As in `CODE`."""
    slice: Ints
    """NONE between operators."""


class HostStates:
    """What the serial threads of a host did."""

    def __init__(self, trace: Trace) -> None:
        self._of = ref(trace)  # what is cached for a trace must not keep it alive
        self._threads = serial_threads_of(trace)
        self._thread = trace.tracks["thread"].cast(pl.Int64).to_numpy()
        self.states = cache(self._states)
        self._lane = cache(self._read_lane)

    @property
    def _trace(self) -> Trace:
        trace = self._of()
        if trace is None:
            raise RuntimeError("the trace that this was derived from is gone")
        return trace

    def _states(self, thread: int) -> States:
        left = Intervals(np.array([NEVER]), np.array([-NEVER]))
        taken, kinds, slices = [], [], []
        for kind, found in self._layers(thread):
            own = intersect(left, found.times)
            at = np.searchsorted(found.start, own.starts, side="right") - 1
            taken.append(own.starts)
            kinds.append(np.full(at.size, CODE[kind]))
            slices.append(found.id[at] if at.size else at)
            left = subtract(left, found.times)
        start = np.concatenate([*taken, left.starts])
        order = np.argsort(start, kind="stable")
        code = np.concatenate([*kinds, np.full(left.starts.size, CODE["host"])])
        number = np.concatenate([*slices, np.full(left.starts.size, NONE)])
        return States(np.append(start[order], -NEVER), code[order], number[order])

    def _layers(self, thread: int) -> list[tuple[str, DisjointSlices]]:
        """Slices of each kind that are apart; what is further up is what the moment counts to."""
        host = slices_on(self._trace, "host", ended=True)
        paused = filter_by_name(with_known_end(self._trace.slices), names.is_garbage_collection)
        loading = self._on(filter_by_name(host, names.is_data_loading), thread)
        if not loading.height:
            python = slices_on(self._trace, "python", ended=True)
            loading = self._on(filter_by_name(python, names.is_loading_frame), thread)
        work = self._threads.work.get(thread)
        found = [("gc", _apart(paused)), ("data", _apart(loading))]
        return found if work is None else [*found, ("host", work)]

    def _on(self, slices: pl.DataFrame, thread: int) -> pl.DataFrame:
        of = self._threads.number[self._thread[slices["track"].to_numpy()]]
        return slices.filter(pl.Series(of == thread, dtype=pl.Boolean))

    def between(self, thread: int, when: Ints) -> Ints:
        """The frame or annotation of a serial thread that began last of those open, or NONE."""
        found, begun = np.full(when.size, NONE, np.int64), np.full(when.size, NEVER)
        kinds = is_track_of(self._trace)
        for track in np.flatnonzero(
            kinds & (self._threads.number[self._thread] == thread)
        ).tolist():
            own, start, end, parent = self._lane(track)
            at = innermost_at(start, end, parent, when)
            known = np.flatnonzero(at != NONE)
            later = known[start[at[known]] >= begun[known]]
            found[later], begun[later] = own[at[later]], start[at[later]]
        return found

    def _read_lane(self, track: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Slices of a track, their begins and ends, and the places of their parents.

        Marks of steps, which say nothing of what is done in them, are left out.
        """
        slices = self._trace.slices.filter(pl.col("track") == track)
        slices = with_known_end(slices).sort("start", "depth")
        slices = filter_by_name(slices, lambda name: names.step_number(name) is None)
        own = slices["id"].cast(pl.Int64).to_numpy()
        start = slices["start"].to_numpy()
        place = np.full(self._trace.slices.height + 1, NONE)
        place[own] = np.arange(own.size)
        return own, start, start + slices["duration"].to_numpy(), place[parents(self._trace)[own]]


def is_track_of(trace: Trace) -> NDArray[np.bool_]:
    """Which tracks hold what a host's thread did."""
    return trace.tracks["kind"].is_in(["host", "python"]).to_numpy()


def _apart(slices: pl.DataFrame) -> DisjointSlices:
    slices = slices.sort("start", "id")
    start = slices["start"].to_numpy()
    end = start + slices["duration"].to_numpy()
    return outermost(start, end, slices["id"].cast(pl.Int64).to_numpy())


@cached_per_trace
def host_states_of(trace: Trace) -> HostStates:
    """What the serial threads of a trace's host did."""
    return HostStates(trace)
