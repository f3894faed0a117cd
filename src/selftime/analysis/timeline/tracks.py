"""Tracks in the order in which they are drawn: threads of the host, streams, the rest."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.timeline.counters import curves
from selftime.analysis.timeline.lanes import FOREVER
from selftime.analysis.timeline.slices import mark_lanes, slice_lanes
from selftime.errors import UsageError
from selftime.schema import TRACK_KINDS
from selftime.trace import Trace

_COUNTERS: Final = "counters"

_ORDER: Final = (
    ("python", "host"),
    ("device annotation", "device", "device sync"),
    ("profiler", "other"),
)
"""Kinds that are drawn together, and from the top: what is around stands above."""


@cached_per_trace
def extent(trace: Trace) -> tuple[int, int]:
    """Begin of the first and end of the last slice, mark or sample, in ns; 0 and 0 if none is."""
    lanes = [
        lanes
        for lanes in (slice_lanes(trace).lanes, mark_lanes(trace), curves(trace).lanes)
        if lanes.start.size
    ]
    begin = min((int(one.start[one.bounds[:-1]].min()) for one in lanes), default=0)
    end = max((int(one.end(one.bounds[1:] - 1).max()) for one in lanes), default=0)
    return begin, end


def chosen_tracks(trace: Trace, words: str) -> tuple[NDArray[np.uint32], bool]:
    """The numbers of the tracks asked for, and whether counters are that belong to none of them.

    `words` are numbers and kinds of tracks and `counters`, joined by commas; empty for all.
    """
    if not words:
        return trace.tracks["id"].to_numpy(), True
    asked = {word.strip() for word in words.split(",")}
    known = {_COUNTERS, *TRACK_KINDS, *map(str, trace.tracks["id"].to_list())}
    if unknown := asked - known:
        raise UsageError(
            f"`tracks` has `{min(unknown)}`; write a track's number, {_COUNTERS}, or a kind of"
            f" {', '.join(TRACK_KINDS)}"
        )
    chosen = trace.tracks.filter(
        pl.col("id").cast(pl.String).is_in(asked) | pl.col("kind").cast(pl.String).is_in(asked)
    )
    return chosen["id"].to_numpy(), _COUNTERS in asked


def check_order(start: int, end: int) -> None:
    """Refuse a time that ends before it begins."""
    if end <= start:
        raise UsageError(
            f"`end` is `{end}`, which is not after `start`, {start}; write a later one"
        )


def chosen_time(trace: Trace, start: int, end: int) -> tuple[int, int]:
    """From when to when; without an end to that of the trace, its last instant included."""
    first, last = extent(trace)
    begin = min(start, first) if not end and not start else start
    until = end or min(max(last, begin), FOREVER) + 1
    check_order(begin, until)
    if max(-begin, until - 1) > FOREVER:
        raise UsageError(
            f"from `{begin}` to `{until}` is no time; write ns from the trace's origin"
        )
    return begin, until


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
