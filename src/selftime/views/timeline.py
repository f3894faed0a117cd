"""What is visible of a trace between two instants at a given number of pixels."""

import math
from typing import Annotated, Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.timeline import (
    SliceLanes,
    TimelineWindow,
    counter_curves,
    flow_arrows_of_slice,
    instant_mark_lanes,
    list_counter_curves,
    list_rows_by_name,
    list_timeline_tracks,
    select_time_window,
    select_tracks,
    slice_lanes,
    slice_lanes_by_name,
    visible_counter_curves,
    visible_instant_marks,
    visible_slices,
)
from selftime.errors import UsageError
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import NumberRange, Pixels, view

_NO_SLICE_ID: Final = -1
"""Value of an option for a slice id that means that no slice is given."""


@view(
    Column(
        "kind",
        pl.String,
        "name",
        "What the row draws: slice, merged, instant, counter, flow, track, row.",
    ),
    Column("track", pl.UInt32, "id", "The id of the track on which the row is drawn.", True),
    Column("row", pl.Int64, "id", "The row's position in its track, from 0 at the top.", True),
    Column("start", pl.Int64, "instant", "When the slice, mark or sample begins.", True),
    Column(
        "duration",
        pl.Int64,
        "ns",
        "Duration of the slice or sample; null if its end is unknown.",
        True,
    ),
    Column(
        "self",
        pl.Int64,
        "ns",
        "Time in a slice without the slices inside it on its track; null for other rows.",
        True,
    ),
    Column(
        "name",
        NameType,
        "name",
        "The slice's name; for several slices, that of the longest.",
        True,
    ),
    Column("count", pl.Int64, "count", "The number of slices, marks or samples in the row.", True),
    Column(
        "category",
        NameType,
        "name",
        "The slice's category; for several slices, that with the most time; for a track, its kind.",
        True,
    ),
    Column("busy", pl.Int64, "ns", "Time that the row's slices cover; null for other rows.", True),
    Column(
        "id",
        pl.UInt32,
        "id",
        "The slice's id, or that of the slice where a flow arrow starts; null for other rows.",
        True,
    ),
    Column("value", pl.Float64, "count", "A counter's mean over the row's time.", True),
    Column("low", pl.Float64, "count", "A counter's lowest value in the row's time.", True),
    Column("high", pl.Float64, "count", "A counter's highest value in the row's time.", True),
    Column(
        "to",
        pl.UInt32,
        "id",
        "The id of the slice where a flow arrow ends; null for other rows.",
        True,
    ),
    Column(
        "to_track",
        pl.UInt32,
        "id",
        "The id of the track of the slice where a flow arrow ends.",
        True,
    ),
    Column(
        "to_row",
        pl.Int64,
        "id",
        "The row, within its track, of the slice where a flow arrow ends.",
        True,
    ),
    Column("to_time", pl.Int64, "instant", "When the flow arrow ends; null for other rows.", True),
    Column(
        "rows",
        pl.Int64,
        "count",
        "The height of a track in rows of slices; null for other rows.",
        True,
    ),
    Column(
        "process",
        pl.String,
        "text",
        "The name of the process of a track; null for other rows.",
        True,
    ),
    Column(
        "device",
        pl.Int64,
        "id",
        "The number of the device of a stream or a counter; null for other rows.",
        True,
    ),
    Column("peak", pl.Float64, "flops/s", "The most that a listed counter can be.", True),
    Column("note", pl.String, "sentence", "What a listed counter shows, and what not.", True),
)
def timeline(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    start: int = 0,
    end: int = 0,
    pixels: Pixels = 1000,
    tracks: str = "",
    depth: Annotated[
        int, NumberRange(0, math.inf, "how many rows of a track to show, or 0 for all")
    ] = 0,
    selected: int = _NO_SLICE_ID,
    what: Literal["visible", "tracks"] = "visible",
    lanes: Literal["depth", "name"] = "depth",
) -> pl.DataFrame:
    """The slices, instant events and counters between two instants, merged within each pixel.

    `start` and `end` are ns from the trace's origin, an `end` of 0 is the trace's end; they are
    widened to whole pixels. A slice at least a pixel wide is a row. Narrower ones of a lane (a row
    of a track) that begin in one pixel are merged into one row, so no lane has more than two rows
    per pixel, and none is left out. Slices that overlap lie on separate lanes. Marks are merged
    likewise, and so are counters, with their lowest and highest values: those of the trace, memory,
    utilization and achieved FLOP/s by device, work queued by stream. Unknown FLOP/s are null.

    `tracks` keeps tracks by number or kind, each with its counters, and `counters` for all
    counters, joined by commas; `depth` the uppermost rows of each track. `selected` is the id of a
    slice whose flows are included, visible or not: from launch to device work, forward to backward,
    and from the awaited work to the wait; -1 is none. With `what` as `tracks` the table lists all
    tracks instead, from the top, and counters. With `lanes` as `name` the work of a stream lies on
    one row for each name, that of most time first, and the list of tracks has these rows.
    """
    _raise_if_not_a_slice(trace, selected)
    index = slice_lanes_by_name(trace) if lanes == "name" else slice_lanes(trace)
    if what == "tracks":
        return _list_of_tracks(trace, index, by_name=lanes == "name")
    window = TimelineWindow.of(*select_time_window(trace, start, end), pixels)
    ids, with_counters = select_tracks(trace, tracks)
    slices, marks = index.lanes, instant_mark_lanes(trace)
    shown = np.isin(slices.track, ids) & ((slices.row < depth) | (depth == 0))
    instants = visible_instant_marks(trace, window, np.isin(marks.track, ids))
    parts = [
        visible_slices(trace.slices, index, window, shown),
        _rows_with_kind_column("instant", instants),
    ]
    counter_tracks = counter_curves(trace).counters["track"]
    counted = counter_tracks.is_in(ids.tolist()).fill_null(value=False).to_numpy()
    curves = visible_counter_curves(trace, window, counted | with_counters)
    parts.append(_rows_with_kind_column("counter", curves))
    if selected != _NO_SLICE_ID:
        parts.append(_flow_rows_of_slice(trace, index, selected, pixels))
    return _stack_timeline_tables(parts)


def _list_of_tracks(trace: Trace, index: SliceLanes, *, by_name: bool) -> pl.DataFrame:
    """Returns all tracks, counters, and the rows of streams where these are by name."""
    listed = [
        _rows_with_kind_column("track", list_timeline_tracks(trace, index)),
        _rows_with_kind_column("counter", list_counter_curves(trace)),
    ]
    if by_name:
        listed.append(_rows_with_kind_column("row", list_rows_by_name(trace)))
    return _stack_timeline_tables(listed)


def _raise_if_not_a_slice(trace: Trace, selected: int) -> None:
    if selected != _NO_SLICE_ID and not 0 <= selected < trace.slices.height:
        raise UsageError(
            f"`selected` is `{selected}`, which is no slice; slices have the ids from 0 to below"
            f" {trace.slices.height}"
        )


def _flow_rows_of_slice(trace: Trace, index: SliceLanes, selected: int, limit: int) -> pl.DataFrame:
    """Returns at most `limit` arrows from or to a slice, with track and row of both ends."""
    flows = flow_arrows_of_slice(trace, selected, limit)
    source, target = (index.lane[flows[end].to_numpy()] for end in ("id", "to"))
    return _rows_with_kind_column("flow", flows).with_columns(
        track=pl.Series(index.lanes.track[source]),
        row=pl.Series(index.lanes.row[source]),
        to_track=pl.Series(index.lanes.track[target]),
        to_row=pl.Series(index.lanes.row[target]),
    )


def _rows_with_kind_column(kind: str, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(kind=pl.lit(kind))


def _stack_timeline_tables(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Returns tables of slices, arrows and counters as one table, with every column of the view."""
    return pl.concat(
        part.select(
            pl.col(c.name).cast(c.dtype)
            if c.name in part.columns
            else pl.lit(None, c.dtype).alias(c.name)
            for c in timeline.columns
        )
        for part in tables
    )
