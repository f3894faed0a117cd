"""Cuts segments of the critical path into pieces, and finds the host thread that they are of."""

import numpy as np
import polars as pl

from selftime.analysis.graph.serial_threads import is_host_track, serial_threads
from selftime.analysis.slice_filters import with_known_end
from selftime.array_types import Ints
from selftime.intervals import cut_intervals
from selftime.nesting import NO_SLICE
from selftime.trace import Trace


def cut_segments(segments: pl.DataFrame, cuts: Ints) -> pl.DataFrame:
    """Returns segments of a thread, cut at instants (ns, ascending).

    Why a segment began is known of its first piece. The others go on with the thread's own work.
    """
    pieces = cut_intervals(segments["start"].to_numpy(), segments["end"].to_numpy(), cuts)
    own_work = pl.lit("host", segments["link"].dtype)
    return segments.select(pl.all().gather(pieces.of)).with_columns(
        start=pl.Series(pieces.starts),
        end=pl.Series(pieces.ends),
        link=pl.when(pl.Series(pieces.is_first)).then("link").otherwise(own_work),
    )


def with_slices(trace: Trace, segments: pl.DataFrame, slice_ids: Ints) -> pl.DataFrame:
    """Returns segments with other slices on the critical path; -1 stands for none."""
    ids = pl.Series(slice_ids)
    ids = ids.set(ids == NO_SLICE, None).cast(pl.UInt32)
    return segments.with_columns(slice=ids, name=trace.slices["name"].gather(ids))


def thread_of_slices(trace: Trace, slice_ids: pl.Series) -> Ints:
    """Returns the number of each slice's thread; threads that take turns have the same number."""
    tracks = trace.slices["track"].gather(slice_ids).to_numpy()
    return np.asarray(_thread_of_tracks(trace)[tracks])


def slices_of_thread(trace: Trace, thread: int, categories: tuple[str, ...]) -> pl.DataFrame:
    """Returns the slices of some categories on the host tracks of a thread, with `end` in ns."""
    tracks = np.flatnonzero(is_host_track(trace) & (_thread_of_tracks(trace) == thread))
    slices = trace.slices.filter(
        pl.col("category").is_in(list(categories)) & pl.col("track").is_in(tracks.tolist())
    )
    return with_known_end(slices).with_columns(end=pl.col("start") + pl.col("duration"))


def _thread_of_tracks(trace: Trace) -> Ints:
    threads = trace.tracks["thread"].cast(pl.Int64).to_numpy()
    return np.asarray(serial_threads(trace).number_by_thread[threads])
