"""Tracks in the order in which they are drawn: threads of the host, streams, the rest."""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.timeline.slices import slice_lanes
from selftime.schema import TRACK_KINDS
from selftime.trace import Trace

_ORDER: Final = (
    ("python", "host"),
    ("device annotation", "device", "device sync"),
    ("profiler", "other"),
)
"""Kinds that are drawn together, and from the top: what is around stands above."""

assert {kind for kinds in _ORDER for kind in kinds} == set(TRACK_KINDS)  # noqa: S101 - true at import


def listed_tracks(trace: Trace) -> pl.DataFrame:
    """Every track from the top, those without slices last.

    Columns: track, category (its kind), name, process, start, duration (to the end of its last
    slice), rows (how many slices may lie below one another), count (of slices).
    """
    kind = pl.col("kind").cast(pl.String)
    kinds = [kind for together in _ORDER for kind in together]
    on_stream = pl.col("thread_stream").is_not_null()
    number = pl.col("tid").str.to_integer(strict=False)
    label = (
        pl.when(on_stream)
        .then(pl.format("stream {}", "thread_stream"))
        .when(number.is_not_null())
        .then(pl.format("thread {}", number))
        .when(pl.col("tid").str.len_chars() > 0)
        .then("tid")
    )
    on_thread = pl.col("device", "stream", "start")
    tracks = trace.tracks.join(_held(trace), on="id", how="left").with_columns(
        on_thread.min().over("thread").name.prefix("thread_"),
        group=kind.replace_strict({k: n for n, together in enumerate(_ORDER) for k in together}),
        place=kind.replace_strict({k: n for n, k in enumerate(kinds)}),
        process_start=pl.col("start").min().over("process"),
    )
    empty = pl.col("count").is_null()
    thread = ("thread_device", "thread_stream", "process_start", "thread_start", "thread")
    return tracks.sort(empty, "group", *thread, "place", "id", nulls_last=True).select(
        "start",
        track="id",
        category=kind,
        name=pl.coalesce("name", label),
        process=pl.coalesce("process_name", pl.col("process").replace("", None)),
        duration=pl.col("end") - pl.col("start"),
        rows=pl.col("rows").fill_null(0),
        count=pl.col("count").fill_null(0),
    )


def _held(trace: Trace) -> pl.DataFrame:
    """Rows, count, begin and end of the slices of each track that has any."""
    lanes = slice_lanes(trace).lanes
    each = pl.DataFrame(
        {
            "id": pl.Series(lanes.track, dtype=pl.UInt32),
            "start": lanes.start[lanes.bounds[:-1]],
            "end": lanes.end(lanes.bounds[1:] - 1),
            "count": np.diff(lanes.bounds),
        }
    )
    return each.group_by("id").agg(
        pl.col("start").min(), pl.col("end").max(), pl.col("count").sum(), rows=pl.len()
    )
