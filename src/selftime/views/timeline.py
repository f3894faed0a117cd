"""What can be seen of a trace between two instants, at a number of pixels."""

from typing import Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.timeline import (
    Window,
    chosen_time,
    chosen_tracks,
    curves,
    flows_of,
    listed_curves,
    listed_tracks,
    mark_lanes,
    slice_lanes,
    visible_curves,
    visible_marks,
    visible_slices,
)
from selftime.errors import UsageError
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import view

_NONE: Final = -1
"""No slice."""


@view(
    Column("kind", pl.String, "name", "One of slice, merged, instant, counter, flow, track."),
    Column("track", pl.UInt32, "id", "The track it lies on.", True),
    Column("row", pl.Int64, "id", "The row of its track, from 0, the topmost.", True),
    Column("start", pl.Int64, "instant", "When it begins.", True),
    Column("duration", pl.Int64, "ns", "To its end; null if that is unknown.", True),
    Column("self", pl.Int64, "ns", "Of a slice: time in it and in none of its track within.", True),
    Column("name", Name, "name", "Its name; of several slices that of the longest.", True),
    Column("count", pl.Int64, "count", "Slices, marks or samples that it stands for.", True),
    Column(
        "category", Name, "name", "Of several slices that with most time; a track's kind.", True
    ),
    Column("busy", pl.Int64, "ns", "How much of the duration its slices cover.", True),
    Column("id", pl.UInt32, "id", "The slice, if it is one; where a flow comes from.", True),
    Column("value", pl.Float64, "count", "A counter's mean over that time.", True),
    Column("low", pl.Float64, "count", "A counter's lowest value in that time.", True),
    Column("high", pl.Float64, "count", "A counter's highest value in that time.", True),
    Column("to", pl.UInt32, "id", "The slice that a flow goes to.", True),
    Column("to_track", pl.UInt32, "id", "The track of that slice.", True),
    Column("to_row", pl.Int64, "id", "The row of that slice.", True),
    Column("to_time", pl.Int64, "instant", "When the flow arrives.", True),
    Column("rows", pl.Int64, "count", "How many rows a track has.", True),
    Column("process", pl.String, "text", "The process of a track.", True),
)
def timeline(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    start: int = 0,
    end: int = 0,
    pixels: int = 1000,
    tracks: str = "",
    depth: int = 0,
    selected: int = _NONE,
    what: Literal["visible", "tracks"] = "visible",
) -> pl.DataFrame:
    """What is visible between two instants, however many slices there are.

    `start` and `end` are ns from the trace's origin, an `end` of 0 is the trace's; they are widened
    to whole pixels. A slice at least a pixel wide is a row as it is. Narrower ones of a lane (a row
    of a track) that begin in one pixel are merged to one row: no lane has more than two rows for
    each pixel, and none is left out. Slices that overlap lie on lanes of their own. Marks are
    merged likewise, and counters, whose lowest and highest values are kept: those of the trace,
    memory and utilization by device, work queued by stream.

    `tracks` keeps numbers and kinds of tracks, each with its counters, and `counters` for all of
    those, joined by commas; `depth` the uppermost rows of each track. `selected` is the id of a
    slice whose flows are told, seen or not: from launch to device work, forward to backward, and
    what is waited for to the wait; -1 is none. With `what` as `tracks` the table lists all tracks
    instead, from the top, and counters.
    """
    _check(trace, pixels, depth, selected)
    if what == "tracks":
        return _declared(
            [_of_kind("track", listed_tracks(trace)), _of_kind("counter", listed_curves(trace))]
        )
    window = Window.of(*chosen_time(trace, start, end), pixels)
    ids, with_counters = chosen_tracks(trace, tracks)
    slices, marks = slice_lanes(trace).lanes, mark_lanes(trace)
    shown = np.isin(slices.track, ids) & ((slices.row < depth) | (depth == 0))
    parts = [
        visible_slices(trace, window, shown),
        _of_kind("instant", visible_marks(trace, window, np.isin(marks.track, ids))),
    ]
    counted = curves(trace).names["track"].is_in(ids.tolist()).fill_null(value=False).to_numpy()
    parts.append(_of_kind("counter", visible_curves(trace, window, counted | with_counters)))
    if selected != _NONE:
        parts.append(_flows(trace, selected, pixels))
    return _declared(parts)


def _check(trace: Trace, pixels: int, depth: int, selected: int) -> None:
    if pixels < 1:
        raise UsageError(f"`pixels` is `{pixels}`; write 1 or more")
    if depth < 0:
        raise UsageError(
            f"`depth` is `{depth}`; write how many rows of a track to show, or 0 for all"
        )
    if selected != _NONE and not 0 <= selected < trace.slices.height:
        raise UsageError(
            f"`selected` is `{selected}`, which is no slice; they are numbered from 0 to below"
            f" {trace.slices.height}"
        )


def _flows(trace: Trace, selected: int, limit: int) -> pl.DataFrame:
    """The flows of a slice, with the lanes of both ends."""
    flows = flows_of(trace, selected, limit)
    index = slice_lanes(trace)
    source, target = (index.lane[flows[end].to_numpy()] for end in ("id", "to"))
    return _of_kind("flow", flows).with_columns(
        track=pl.Series(index.lanes.track[source]),
        row=pl.Series(index.lanes.row[source]),
        to_track=pl.Series(index.lanes.track[target]),
        to_row=pl.Series(index.lanes.row[target]),
    )


def _of_kind(kind: str, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(kind=pl.lit(kind))


def _declared(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """The parts below one another, with every declared column."""
    return pl.concat(
        part.select(
            pl.col(c.name).cast(c.dtype)
            if c.name in part.columns
            else pl.lit(None, c.dtype).alias(c.name)
            for c in timeline.columns
        )
        for part in parts
    )
