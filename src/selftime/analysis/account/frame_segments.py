"""Divides the time between operators on the critical path among the Python frames that it is of."""

from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.graph.serial_threads import host_states, is_host_track, serial_threads
from selftime.analysis.slice_filters import with_known_end
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

_BETWEEN_OPERATORS: Final = (*names.FRAME_CATEGORIES, *names.ANNOTATION_CATEGORIES)
"""Categories of the slices that a segment between operators has on the critical path."""


def segments_split_at_frames(trace: Trace, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns segments of the critical path, those between operators split where frames change.

    A segment of `critical_path_segments` between two operators is one piece, with the frame that
    was open at its middle. Here it is a piece for each frame or annotation that was the innermost.
    """
    category = trace.slices["category"].gather(segments["slice"])
    is_between = (segments["kind"] == "host") & category.is_in(list(_BETWEEN_OPERATORS))
    between = segments.filter(is_between.fill_null(value=False))
    if not between.height:
        return segments
    own_thread = _thread_numbers(trace, between["slice"])
    pieces = [segments.filter(~is_between.fill_null(value=False))]
    pieces += [
        _split_at_frames_of_thread(trace, thread, between.filter(own_thread == thread))
        for thread in np.unique(own_thread).tolist()
    ]
    return pl.concat(pieces).sort("start")


def _thread_numbers(trace: Trace, slice_ids: pl.Series) -> Ints:
    """Returns the number of each slice's thread; threads that take turns have the same number."""
    thread = trace.tracks["thread"].gather(trace.slices["track"].gather(slice_ids))
    return np.asarray(serial_threads(trace).number[thread.cast(pl.Int64).to_numpy()])


def _split_at_frames_of_thread(trace: Trace, thread: int, own: pl.DataFrame) -> pl.DataFrame:
    """Returns the segments of one thread between operators, cut where a frame begins or ends."""
    start, end = own["start"].to_numpy(), own["end"].to_numpy()
    cuts = _frame_boundaries_of_thread(trace, thread)
    first = np.searchsorted(cuts, start, side="right")
    many = np.searchsorted(cuts, end, side="left") - first + 1
    of_segment = np.repeat(np.arange(own.height), many)
    within = np.arange(of_segment.size) - np.repeat(np.cumsum(many) - many, many)
    cut = np.append(cuts, 0)[first[of_segment] + within - 1]
    begin = np.where(within == 0, start[of_segment], cut)
    until = np.append(begin[1:], 0)
    is_last = within == many[of_segment] - 1
    until[is_last] = end[of_segment[is_last]]
    frame = host_states(trace).open_frame_or_annotation(thread, (begin + until) // 2)
    ids = pl.Series(frame)
    slice_ids = ids.set(ids == NO_SLICE, None).cast(pl.UInt32)
    link = pl.Series(own["link"]).gather(of_segment)
    return own.select(pl.all().gather(of_segment)).with_columns(
        slice=slice_ids,
        name=trace.slices["name"].gather(slice_ids),
        start=pl.Series(begin),
        end=pl.Series(until),
        link=pl.select(
            pl.when(pl.Series(within == 0)).then(link).otherwise(pl.lit("host", link.dtype))
        ).to_series(),
    )


def _frame_boundaries_of_thread(trace: Trace, thread: int) -> Ints:
    """Returns the instants (ns), ascending, at which a frame or annotation begins or ends."""
    number = serial_threads(trace).number[trace.tracks["thread"].cast(pl.Int64).to_numpy()]
    tracks = np.flatnonzero(is_host_track(trace) & (number == thread))
    slices = trace.slices.filter(
        pl.col("category").is_in(list(_BETWEEN_OPERATORS)) & pl.col("track").is_in(tracks.tolist())
    )
    known = with_known_end(slices)
    start = known["start"].to_numpy()
    return np.unique(np.concatenate([start, start + known["duration"].to_numpy()]))
