"""The call tree of a trace: what each host slice lies in, and how long it is the innermost.

There is one, built once per trace; self times, costs, lines, modules, passes and flame graphs are
all computed from it. It takes every thread's operators, annotations and runtime calls, less the
recorder's own operators, and if asked for the Python frames.

Operators and frames are recorded apart. Most lie within each other, but an annotation begins within
the frame of its `__enter__` and ends within that of its `__exit__`. Such crossings are cut off the
operator or annotation, so that every moment of a thread has one innermost slice. A profiler step
begins in one frame and ends in another, and what it lasts is time of the frames: on a thread with
frames steps take no part.

An operator that ended on another thread than it began on stands alone: it has no parent, no
children, and no self time, as no one thread spent that time in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.call_tree.crossings import cut_crossings
from selftime.analysis.call_tree.forest import outer_first
from selftime.analysis.parents import parents
from selftime.analysis.slice_filters import filter_by_name, is_on
from selftime.arrays import Flags, Ints
from selftime.nesting import NONE, nest
from selftime.trace import Trace

_RANKS: Final = {"python_function": -1, "user_annotation": 0, "cpu_op": 1}
"""Of slices with equal times frames lie around annotations, those around operators."""
_LAST: Final = 2
"""And those around calls."""


@dataclass(frozen=True, slots=True)
class CallTree:
    """One entry for each slice that takes part; arrays of shape (n,), parents before children.

    They are shared by all who ask and may only be read.
    """

    id: Ints
    """The slice."""
    parent: Ints
    """The place of the innermost entry around it, or NONE."""
    depth: Ints
    self_time: Ints
    """Time in ns in which it was the innermost of its thread."""
    start: Ints
    """Begin in ns, without what was cut off."""
    end: Ints
    """End in ns, likewise; the start where it is not known."""
    alone: Flags
    """Whether it ended on another thread than it began on."""
    place: Ints
    """For each slice of the trace: its place here, or NONE."""


def call_tree(trace: Trace, *, frames: bool = True, cut: bool = True) -> CallTree:
    """The trace's tree, with Python frames or without.

    Args:
        trace: What was recorded.
        frames: Whether Python frames take part where they were recorded. Flame graphs, lines and
            modules need them. The tables of torch's profiler, which `operators` reproduces, do
            without: the time of a frame's own Python counts there to the operator or annotation
            around it. Where no frames were recorded both trees are one.
        cut: Whether what crosses a frame is cut, and steps take no part on a thread with frames.
            The tables of torch's profiler, which show frames among operators, do neither: of two
            slices that cross, the one that began later is the innermost.
    """
    if not frames or not (trace.tracks["kind"] == "python").any():
        return _without_frames(trace)
    return _with_frames(trace) if cut else _with_whole_frames(trace)


@cached_per_trace
def _with_frames(trace: Trace) -> CallTree:
    return _built(trace, "host", "python")


@cached_per_trace
def _with_whole_frames(trace: Trace) -> CallTree:
    return _built(trace, "host", "python", cut=False)


@cached_per_trace
def _without_frames(trace: Trace) -> CallTree:
    return _built(trace, "host")


def _built(trace: Trace, *kinds: str, cut: bool = True) -> CallTree:
    """The tree of the slices on tracks of these kinds."""
    lanes = _Lanes(trace, kinds, cut=cut)
    start, end, parent, depth, self_time = _nested(trace, lanes)
    ids = np.flatnonzero(lanes.taken)
    ids = ids[outer_first(depth[ids])]
    place = np.full(trace.slices.height, NONE, np.int64)
    place[ids] = np.arange(ids.size)
    above = parent[ids]
    found = CallTree(
        id=ids,
        parent=np.where(above == NONE, NONE, place[above]),
        depth=depth[ids],
        self_time=self_time[ids],
        start=start[ids],
        end=end[ids],
        alone=lanes.alone[ids],
        place=place,
    )
    for field in CallTree.__slots__:
        getattr(found, field).flags.writeable = False
    return found


class _Lanes:
    """Which slices take part, and on which thread; arrays over all slices of the trace."""

    def __init__(self, trace: Trace, kinds: tuple[str, ...], *, cut: bool) -> None:
        slices, tracks = trace.slices, trace.tracks
        self.cut = cut
        self.thread = tracks["thread"].cast(pl.Int64).to_numpy()[slices["track"].to_numpy()]
        self.taken = is_on(trace, *kinds)
        self.taken[_named(slices, names.is_recorder_operator)] = False
        if "python" in kinds and cut:
            framed = tracks.filter(tracks["kind"] == "python")["thread"].to_numpy()
            steps = _named(slices, lambda name: names.step_number(name) is not None)
            self.taken[steps[np.isin(self.thread[steps], framed)]] = False
        self.alone = np.zeros(slices.height, bool)
        self.alone[trace.op_args["id"].filter(trace.op_args["asynchronous"]).to_numpy()] = True
        self.alone &= self.taken

    def nested_anew(self, trace: Trace) -> Ints:
        """The slices of threads whose tree is not that of one track as the trace has it.

        It is where all slices of the thread that take part are of one track, and all slices of that
        track take part and have an end.
        """
        tracks = trace.tracks
        at = trace.slices["track"].to_numpy()
        whole = self.taken & ~self.alone & trace.slices["duration"].is_not_null().to_numpy()
        takes_part = np.bincount(at[self.taken], minlength=tracks.height) > 0
        differs = np.bincount(at[~whole], minlength=tracks.height) > 0
        thread = tracks["thread"].cast(pl.Int64).to_numpy()
        reasons = np.zeros(int(thread.max(initial=0)) + 1, np.int64)
        np.add.at(reasons, thread[takes_part], 1)
        np.add.at(reasons, thread[takes_part & differs], 1)
        return np.flatnonzero(self.taken & ~self.alone & (reasons[self.thread] > 1))


def _named(slices: pl.DataFrame, means: Callable[[str], bool]) -> Ints:
    return filter_by_name(slices, means)["id"].cast(pl.Int64).to_numpy()


def _nested(trace: Trace, lanes: _Lanes) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Start, end, parent, depth and self time of all slices: as read, or nested anew."""
    slices = trace.slices
    start = slices["start"].to_numpy().copy()
    end = start + slices["duration"].fill_null(0).to_numpy()
    parent, depth = parents(trace).copy(), slices["depth"].to_numpy().astype(np.int64)
    self_time = slices["self"].fill_null(0).to_numpy().copy()
    parent[lanes.alone], depth[lanes.alone], self_time[lanes.alone] = NONE, 0, 0
    anew = lanes.nested_anew(trace)
    if anew.size:
        if lanes.cut:
            cut_crossings(trace, anew, lanes.thread, start, end)
        found = nest(lanes.thread[anew], start[anew], end[anew], _ranks(slices)[anew], bleed=0)
        parent[anew] = np.where(found.parent == NONE, NONE, anew[found.parent])
        depth[anew], self_time[anew] = found.depth, found.self_time
    return start, end, parent, depth, self_time


def _ranks(slices: pl.DataFrame) -> Ints:
    unique = slices["category"].unique()
    rank = [_RANKS.get(name, _LAST) for name in unique.cast(pl.String).to_list()]
    codes = unique.to_physical().to_numpy()
    table = np.full(int(codes.max(initial=0)) + 1, _LAST, np.int64)
    table[codes] = rank
    return np.asarray(table[slices["category"].to_physical().to_numpy()])
