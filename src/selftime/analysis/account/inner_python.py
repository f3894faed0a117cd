"""Divides operators that call Python: autograd functions, hooks of backward passes, checkpoints.

An operator of which Python frames run operators of their own is, in the account, these operators,
the frames between them, and what is left of itself. So a hook of a backward pass counts at its own
line, and not at that of the layer whose backward pass called it.
"""

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.graph.serial_threads import (
    DisjointHostSlices,
    cut_to_outermost_slices,
    host_states,
    is_host_track,
    serial_threads,
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
    around = np.unique(parent[is_inner])
    ids = segments["slice"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    outermost = nearest_ancestor(parent, np.isin(np.arange(parent.size), np.unique(ids)), around)
    calls_python = np.isin(ids, outermost[outermost != NO_SLICE])
    if not calls_python.any():
        return segments
    thread = serial_threads(trace).number_by_thread[
        trace.tracks["thread"].cast(pl.Int64).to_numpy()
    ][trace.slices["track"].to_numpy()]
    pieces = [segments.filter(pl.Series(~calls_python))]
    for number in np.unique(thread[ids[calls_python]]).tolist():
        own = segments.filter(
            pl.Series(calls_python & (np.append(thread, NO_SLICE)[ids] == number))
        )
        inner = np.flatnonzero(is_inner & (thread == number))
        pieces.append(_in_pieces(trace, number, own, inner))
    return pl.concat(pieces).sort("start")


def _in_pieces(trace: Trace, thread: int, own: pl.DataFrame, inner: Ints) -> pl.DataFrame:
    """Returns the segments of a thread, cut where an inner operator or frame begins or ends."""
    called = _outermost(trace, inner)
    between = subtract(_frames_within(trace, thread, own), called.times)
    cuts = np.unique(np.concatenate([called.start, called.end, between.starts, between.ends]))
    start, end = own["start"].to_numpy(), own["end"].to_numpy()
    first = np.searchsorted(cuts, start, side="right")
    many = np.searchsorted(cuts, end, side="left") - first + 1
    row = np.repeat(np.arange(own.height), many)
    within = np.arange(row.size) - np.repeat(np.cumsum(many) - many, many)
    begin = np.where(within == 0, start[row], np.append(cuts, 0)[first[row] + within - 1])
    until = np.append(begin[1:], 0)
    is_last = within == many[row] - 1
    until[is_last] = end[row[is_last]]
    middle = (begin + until) // 2
    chosen = own["slice"].cast(pl.Int64).to_numpy()[row]
    at = np.searchsorted(called.start, middle, side="right") - 1
    is_called = (at >= 0) & (middle < np.append(called.end, 0)[at])
    chosen = np.where(is_called, np.append(called.id, NO_SLICE)[at], chosen)
    at = np.searchsorted(between.starts, middle, side="right") - 1
    is_between = (at >= 0) & (middle < np.append(between.ends, 0)[at]) & ~is_called
    frame = host_states(trace).open_frame_or_annotation(thread, middle)
    chosen = np.where(is_between & (frame != NO_SLICE), frame, chosen)
    ids = pl.Series(chosen).cast(pl.UInt32)
    link = pl.Series(own["link"]).gather(row)
    return own.select(pl.all().gather(row)).with_columns(
        slice=ids,
        name=trace.slices["name"].gather(ids),
        start=pl.Series(begin),
        end=pl.Series(until),
        link=pl.select(
            pl.when(pl.Series(within == 0)).then(link).otherwise(pl.lit("host", link.dtype))
        ).to_series(),
    )


def _outermost(trace: Trace, ids: Ints) -> DisjointHostSlices:
    slices = with_known_end(trace.slices[pl.Series(ids)])
    start = slices["start"].to_numpy()
    end = start + slices["duration"].to_numpy()
    return cut_to_outermost_slices(start, end, slices["id"].cast(pl.Int64).to_numpy())


def _frames_within(trace: Trace, thread: int, own: pl.DataFrame) -> Intervals:
    """Returns when Python frames run that began within the operators of some segments."""
    number = serial_threads(trace).number_by_thread[
        trace.tracks["thread"].cast(pl.Int64).to_numpy()
    ]
    tracks = np.flatnonzero(is_host_track(trace) & (number == thread)).tolist()
    frames = with_known_end(
        trace.slices.filter(
            pl.col("category").is_in(list(names.FRAME_CATEGORIES)) & pl.col("track").is_in(tracks)
        )
    )
    around = with_known_end(trace.slices[own["slice"].unique().sort()]).sort("start")
    opened = around["start"].to_numpy()
    closed = opened + around["duration"].to_numpy()
    start = frames["start"].to_numpy()
    end = start + frames["duration"].to_numpy()
    at = np.searchsorted(opened, start, side="right") - 1
    is_within = (at >= 0) & (end <= closed[np.maximum(at, 0)])
    return union(start[is_within], end[is_within])
