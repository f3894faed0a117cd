"""Computes what the timeline shows of a table whose rows have a start, such as a query's result.

Rows with a duration are slices, with the name and the category that the row has, below one another
where they overlap. Rows without one are the samples of a counter, if they have a value.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.timeline.counter_curves import (
    CounterCurve,
    CounterCurves,
    curves_on_lanes,
    list_curves,
    visible_curves,
)
from selftime.analysis.timeline.downsampling import TimelineWindow
from selftime.analysis.timeline.lanes import LATEST_TIMELINE_TIME_NS
from selftime.analysis.timeline.visible_slices import SliceLanes, lanes_of_slices, visible_slices
from selftime.errors import UsageError
from selftime.schema import NameType

START_COLUMNS: Final = ("start", "start_ns", "time", "time_ns")
"""Names of the column that says when a row begins, in ns; the first that the table has counts."""
DURATION_COLUMNS: Final = ("duration", "duration_ns")
"""Names of the column that says how long a row lasts, in ns."""
VALUE_COLUMN: Final = "value"

_CATEGORY: Final = "query"
_TRACK: Final = 0


@dataclass(frozen=True, slots=True)
class TableTrack:
    """A table as a track of slices, or as a counter; an id is the number of a row of the table."""

    title: str
    table: pl.DataFrame
    """The rows that have a start, in the table's order."""
    start: pl.Series
    """When each row begins, in ns."""
    slices: pl.DataFrame
    """The rows as slices; empty for a counter."""
    lanes: SliceLanes | None
    curves: CounterCurves | None
    """The rows as a counter; either this or the lanes are there."""

    def as_listed(self, note: str | None) -> pl.DataFrame:
        """Returns the track or the counter as one row, with the columns of the list of tracks."""
        if self.curves is not None:
            return list_curves(self.curves).with_columns(kind=pl.lit("counter"), note=pl.lit(note))
        lanes = self._lanes.lanes
        first = int(lanes.start[lanes.bounds[:-1]].min())
        last = int(lanes.interval_ends(lanes.bounds[1:] - 1).max())
        told = {
            "kind": "track",
            "track": _TRACK,
            "category": _CATEGORY,
            "name": self.title,
            "start": first,
            "duration": last - first,
            "rows": lanes.row.size,
            "count": self.slices.height,
            "note": note,
        }
        return pl.DataFrame([told], schema_overrides={"note": pl.String})

    def visible(self, window: TimelineWindow, depth: int) -> pl.DataFrame:
        """Returns what a time window shows of it; of slices the uppermost rows, or all for 0."""
        if self.curves is not None:
            rows = visible_curves(self.curves, window, np.ones(1, bool))
            return rows.with_columns(kind=pl.lit("counter"))
        shown = (self._lanes.lanes.row < depth) | (depth == 0)
        return visible_slices(self.slices, self._lanes, window, shown)

    def row_in_track(self, number: int) -> int | None:
        """Returns the row of the track on which a row of the table lies; None in a counter."""
        if self.lanes is None:
            return None
        return int(self.lanes.lanes.row[self.lanes.lane[number]])

    @property
    def _lanes(self) -> SliceLanes:
        assert self.lanes is not None  # noqa: S101 - it is no counter
        return self.lanes


def track_of_table(table: pl.DataFrame, title: str) -> TableTrack:
    """Returns a table as a track; raises UsageError if its columns do not make one.

    Rows without a start are left out.
    """
    start = _first_of(table, START_COLUMNS)
    if start is None:
        raise UsageError(
            "the result has no column `start`, so it cannot be a track; select a time in ns from "
            "the trace's origin `as start`"
        )
    length = _first_of(table, DURATION_COLUMNS)
    if length is None and VALUE_COLUMN not in table.columns:
        raise UsageError(
            "the result has no column `duration` and no column `value`, so it cannot be a track; "
            "select one of them beside `start`"
        )
    table = table.filter(pl.col(start).is_not_null())
    if table.is_empty():
        raise UsageError("the query finds no row with a start in this trace")
    begin = _whole_ns(table, start)
    if length is None:
        return _counter(table, title, begin)
    duration = _whole_ns(table, length)
    if (duration < 0).any():
        raise UsageError(f"the column `{length}` has a duration below 0; select durations in ns")
    texts = (("name", title), ("category", _CATEGORY))
    slices = table.select(
        *(
            (pl.col(name) if name in table.columns else pl.lit(other))
            .cast(pl.String)
            .fill_null(other)
            .cast(NameType)
            .alias(name)
            for name, other in texts
        ),
        pl.lit(None, pl.Int64).alias("self"),
        track=pl.lit(_TRACK, pl.UInt32),
        start=begin,
        duration=duration,
    )
    lanes = lanes_of_slices(slices, np.zeros(slices.height, np.int64))
    return TableTrack(title, table, begin, slices, lanes, None)


def _counter(table: pl.DataFrame, title: str, begin: pl.Series) -> TableTrack:
    if not table.schema[VALUE_COLUMN].is_numeric():
        raise UsageError("the column `value` holds no numbers, so it cannot be a counter")
    value = table[VALUE_COLUMN].cast(pl.Float64).fill_null(np.nan).to_numpy()
    time = begin.to_numpy()
    curve = CounterCurve("counter", title, None, None, time, value)
    return TableTrack(
        title, table, begin, pl.DataFrame(), None, curves_on_lanes([curve], int(time.max()))
    )


def _first_of(table: pl.DataFrame, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in table.columns), None)


def _whole_ns(table: pl.DataFrame, name: str) -> pl.Series:
    """Returns a column of times in whole ns; raises UsageError if it holds no such times."""
    column = table[name]
    if not column.dtype.is_numeric():
        raise UsageError(f"the column `{name}` holds no numbers; select times in ns")
    if column.dtype.is_float():
        column = column.fill_nan(None).round()
    if (column.cast(pl.Float64).abs() > LATEST_TIMELINE_TIME_NS).any():
        raise UsageError(f"the column `{name}` holds numbers that are no times in ns of a trace")
    return column.cast(pl.Int64)
