"""Lists tracks in drawing order: host threads, then streams, then all other tracks."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.timeline.counter_curves import counter_curves
from selftime.analysis.timeline.lanes import LATEST_TIMELINE_TIME_NS
from selftime.analysis.timeline.visible_slices import (
    SliceLanes,
    instant_mark_lanes,
    slice_lanes,
    slice_lanes_by_name,
)
from selftime.errors import UsageError
from selftime.schema import TRACK_KINDS
from selftime.trace import Trace

_COUNTERS_SELECTION_KEYWORD: Final = "counters"

_TRACK_KIND_ORDER: Final = (
    ("python", "host"),
    ("device annotation", "device", "device sync"),
    ("profiler", "other"),
)
"""Groups of track kinds that the timeline draws together, from the top; in a group, enclosing kinds
come first.
"""


@cached_per_trace
def trace_time_extent(trace: Trace) -> tuple[int, int]:
    """Returns when the first event of a trace begins and the last ends, in ns; (0, 0) if none."""
    lanes = [
        lanes
        for lanes in (
            slice_lanes(trace).lanes,
            instant_mark_lanes(trace),
            counter_curves(trace).lanes,
        )
        if lanes.start.size
    ]
    begin = min((int(one.start[one.bounds[:-1]].min()) for one in lanes), default=0)
    end = max((int(one.interval_ends(one.bounds[1:] - 1).max()) for one in lanes), default=0)
    return begin, end


def select_tracks(trace: Trace, selection: str) -> tuple[NDArray[np.uint32], bool]:
    """Returns the selected track numbers, and whether counters without a track are selected.

    `selection` are numbers and kinds of tracks and `counters`, joined by commas; empty for all.
    """
    if not selection:
        return trace.tracks["id"].to_numpy(), True
    asked = {word.strip() for word in selection.split(",")}
    known = {_COUNTERS_SELECTION_KEYWORD, *TRACK_KINDS, *map(str, trace.tracks["id"].to_list())}
    if unknown := asked - known:
        kinds = ", ".join(TRACK_KINDS)
        raise UsageError(
            f"`tracks` has `{min(unknown)}`, which is no track of the trace; write a track's "
            f"number, {_COUNTERS_SELECTION_KEYWORD}, or one of the kinds {kinds}"
        )
    chosen = trace.tracks.filter(
        pl.col("id").cast(pl.String).is_in(asked) | pl.col("kind").cast(pl.String).is_in(asked)
    )
    return chosen["id"].to_numpy(), _COUNTERS_SELECTION_KEYWORD in asked


def require_end_after_start(start: int, end: int) -> None:
    """Raises UsageError if a time range does not end after it starts."""
    if end <= start:
        raise UsageError(
            f"`end` is `{end}`, which is not after `start`, {start}; write a later `end`"
        )


def select_time_window(trace: Trace, start: int, end: int) -> tuple[int, int]:
    """Returns the requested time range in ns; without an end, up to the trace's last instant."""
    first, last = trace_time_extent(trace)
    begin = min(start, first) if not end and not start else start
    until = end or min(max(last, begin), LATEST_TIMELINE_TIME_NS) + 1
    require_end_after_start(begin, until)
    if max(-begin, until - 1) > LATEST_TIMELINE_TIME_NS:
        raise UsageError(
            f"from `{begin}` to `{until}` is not a time range of a trace; "
            "write `start` and `end` in ns from the trace's origin"
        )
    return begin, until


assert {kind for kinds in _TRACK_KIND_ORDER for kind in kinds} == set(TRACK_KINDS)  # noqa: S101 - true at import


def list_timeline_tracks(trace: Trace, index: SliceLanes) -> pl.DataFrame:
    """Returns every track in drawing order, from the top; tracks without slices are last.

    Columns: track, category (its kind), name, process, device (of a stream), start, duration (to
    the end of its last slice), rows (the depth of its slices), count (of slices).
    """
    kind = pl.col("kind").cast(pl.String)
    kinds = [kind for together in _TRACK_KIND_ORDER for kind in together]
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
    tracks = trace.tracks.join(_contents_of_tracks(index), on="id", how="left").with_columns(
        on_thread.min().over("thread").name.prefix("thread_"),
        group=kind.replace_strict(
            {k: n for n, together in enumerate(_TRACK_KIND_ORDER) for k in together}
        ),
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
        device="thread_device",
        duration=pl.col("end") - pl.col("start"),
        rows=pl.col("rows").fill_null(0),
        count=pl.col("count").fill_null(0),
    )


def list_rows_by_name(trace: Trace) -> pl.DataFrame:
    """Returns one row per lane of device work by name: track, row, name, start, duration, count.

    The duration is the sum of those of its slices.
    """
    lanes = slice_lanes_by_name(trace).lanes
    first, last = lanes.bounds[:-1], lanes.bounds[1:]
    on_device = trace.tracks.filter(pl.col("kind").cast(pl.String) == "device")["id"]
    return pl.DataFrame(
        {
            "track": pl.Series(lanes.track, dtype=pl.UInt32),
            "row": lanes.row,
            "name": trace.slices["name"].gather(lanes.place[first]),
            "start": lanes.start[first],
            "duration": lanes.total_length(first, last),
            "count": last - first,
        }
    ).filter(pl.col("track").is_in(on_device.implode()))


def _contents_of_tracks(index: SliceLanes) -> pl.DataFrame:
    """Returns for each track with slices its depth, slice count, begin and end (ns)."""
    lanes = index.lanes
    each = pl.DataFrame(
        {
            "id": pl.Series(lanes.track, dtype=pl.UInt32),
            "start": lanes.start[lanes.bounds[:-1]],
            "end": lanes.interval_ends(lanes.bounds[1:] - 1),
            "count": np.diff(lanes.bounds),
        }
    )
    return each.group_by("id").agg(
        pl.col("start").min(), pl.col("end").max(), pl.col("count").sum(), rows=pl.len()
    )
