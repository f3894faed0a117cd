"""Divides operators that call Python: autograd functions, hooks of backward passes, checkpoints.

An operator of which Python frames run operators of their own is, in the account, these operators,
the frames between them, and what is left of itself. So a hook of a backward pass counts at its own
line, and not at that of the layer whose backward pass called it.
"""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.account.segment_pieces import (
    cut_segments,
    slices_of_thread,
    thread_of_slices,
    with_slices,
)
from selftime.analysis.graph.serial_threads import (
    DisjointHostSlices,
    cut_to_outermost_slices,
    host_states,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import (
    enclosing_frame_of_every_slice,
    parent_of_every_slice,
)
from selftime.analysis.slice_filters import with_known_end
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, subtract, union
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace


@cached_per_trace
def is_called_by_python_within_operator(trace: Trace) -> Flags:
    """Flags each operator that Python called within another one, such as in a backward hook.

    That is an operator whose innermost Python frame is another one than that of the operator around
    it.
    """
    frame, parent = enclosing_frame_of_every_slice(trace), parent_of_every_slice(trace)
    is_operator = np.append(
        trace.slices["category"].is_in(list(names.OPERATOR_CATEGORIES)).to_numpy(), False
    )
    outer = np.append(frame, NO_SLICE)[parent]
    is_inner = is_operator[:-1] & is_operator[parent]
    return np.asarray(is_inner & (outer != NO_SLICE) & (frame != NO_SLICE) & (frame != outer))


def segments_split_at_inner_python(trace: Trace, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns segments of the critical path, those of operators that call Python in pieces.

    A piece has the operator that Python called, or the frame that ran, as its slice, or else the
    operator that called Python.
    """
    is_inner = is_called_by_python_within_operator(trace)
    parent = parent_of_every_slice(trace)
    ids = segments["slice"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    has_segment, is_caller = (np.zeros(parent.size + 1, np.bool_) for _ in range(2))
    has_segment[ids] = True  # the last entry is that of segments without a slice
    is_caller[nearest_ancestor(parent, has_segment[:-1], parent[is_inner])] = True
    is_caller[NO_SLICE] = False
    calls_python = pl.Series(is_caller[ids])
    if not calls_python.any():
        return segments
    pieces, own = [segments.filter(~calls_python)], segments.filter(calls_python)
    inner = pl.Series(np.flatnonzero(is_inner))
    thread, inner_thread = (thread_of_slices(trace, of) for of in (own["slice"], inner))
    for number in np.unique(thread).tolist():
        of_thread = own.filter(thread == number)
        pieces.append(_in_pieces(trace, number, of_thread, inner.filter(inner_thread == number)))
    return pl.concat(pieces).sort("start")


def _in_pieces(trace: Trace, thread: int, own: pl.DataFrame, inner: pl.Series) -> pl.DataFrame:
    """Returns the segments of a thread, cut where an inner operator or frame begins or ends."""
    called = _outermost(trace, inner)
    between = subtract(_frames_within(trace, thread, own), called.times)
    edges = [called.start, called.end, between.starts, between.ends]
    pieces = cut_segments(own, np.unique(np.concatenate(edges)))
    middle = (pieces["start"] + pieces["end"]).to_numpy() // 2
    frame = host_states(trace).open_frame_or_annotation(thread, middle)
    chosen = pieces["slice"].cast(pl.Int64).to_numpy()
    chosen = np.where(_interval_at(between, middle) == NO_SLICE, chosen, frame)
    at = _interval_at(called.times, middle)
    chosen = np.where(at == NO_SLICE, chosen, np.append(called.id, NO_SLICE)[at])
    return with_slices(trace, pieces, chosen)


def _interval_at(intervals: Intervals, instants: Ints) -> Ints:
    """Returns the index of the interval around each instant; -1 if there is none."""
    at = np.searchsorted(intervals.starts, instants, side="right") - 1
    return np.where(instants < np.append(intervals.ends, 0)[at], at, NO_SLICE)


def _outermost(trace: Trace, ids: pl.Series) -> DisjointHostSlices:
    slices = with_known_end(trace.slices[ids])
    start = slices["start"].to_numpy()
    end = start + slices["duration"].to_numpy()
    return cut_to_outermost_slices(start, end, slices["id"].cast(pl.Int64).to_numpy())


def _frames_within(trace: Trace, thread: int, own: pl.DataFrame) -> Intervals:
    """Returns when Python frames run that began within the operators of some segments."""
    frames = slices_of_thread(trace, thread, names.FRAME_CATEGORIES)
    around = with_known_end(trace.slices[own["slice"].unique().sort()]).sort("start")
    opened = around["start"].to_numpy()
    operators = Intervals(opened, opened + around["duration"].to_numpy())
    start, end = frames["start"].to_numpy(), frames["end"].to_numpy()
    at = _interval_at(operators, start)
    is_within = (at != NO_SLICE) & (end <= np.append(operators.ends, 0)[at])
    return union(start[is_within], end[is_within])
