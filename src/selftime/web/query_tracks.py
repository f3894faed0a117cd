"""Makes tracks of the timeline of the results of queries: `api/sql_track`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.analysis.timeline import (
    DURATION_COLUMNS,
    START_COLUMNS,
    TableTrack,
    TimelineWindow,
    select_time_window,
    track_of_table,
)
from selftime.errors import UsageError
from selftime.reports.page_data.sql import unit_of_column
from selftime.reports.page_data.table_queries import RowQuery, prepare_table
from selftime.sql.limited_query import QueryResult
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.web.answers import parse_count, parse_view_request

MAX_ROWS_OF_TRACK: Final = 1_000_000
"""Largest number of rows of a result that are shown as a track."""
_LONGEST_TITLE: Final = 80
_BYTES_OF_LANES_PER_ROW: Final = 64
"""About how much memory a row takes beside the table that it is in."""


@dataclass(frozen=True, slots=True)
class QueryTrack:
    """The result of a query as a track, and a sentence on what of it is not shown."""

    track: TableTrack
    note: str | None

    @property
    def memory_bytes(self) -> int:
        table = self.track.table
        return int(table.estimated_size()) + table.height * _BYTES_OF_LANES_PER_ROW


def query_track(result: QueryResult, query: str) -> QueryTrack:
    """Returns a query's result as a track; raises UsageError if its columns do not make one."""
    shown = result.table.height
    note = None
    if shown < result.row_count:
        note = f"These are the first {shown:,} of {result.row_count:,} rows; ask for fewer."
    return QueryTrack(track_of_table(result.table, title_of_query(query)), note)


def title_of_query(query: str) -> str:
    r"""Returns the comment with which a query begins, else the query on one line, cut if long.

    >>> title_of_query("-- long kernels\nselect start"), title_of_query("select\n  start")
    ('long kernels', 'select start')
    """
    first = query.strip().partition("\n")[0]
    comment = first.removeprefix("--").strip() if first.startswith("--") else ""
    title = comment or " ".join(query.split())
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"


def query_track_json(trace: Trace, found: QueryTrack, parameters: Mapping[str, str]) -> bytes:
    """Returns what the timeline asks of a track as JSON: that it is there, a tile, or a row."""
    row = parse_count(parameters, "row")
    if row is not None:
        return _page_json("slice", _facts_of_row(trace, found.track, row), RowQuery(), {"row": row})
    asked = {name: value for name, value in parameters.items() if name not in ("query", "row")}
    request = parse_view_request("timeline", asked)
    options = request.options
    if options["what"] == "tracks":
        rows = found.track.as_listed(found.note)
    else:
        span = select_time_window(trace, options["start"], options["end"])
        rows = found.track.visible(TimelineWindow.of(*span, options["pixels"]), options["depth"])
    return _page_json("timeline", rows, request.query, options)


def _page_json(view: str, rows: pl.DataFrame, query: RowQuery, options: Mapping[str, Any]) -> bytes:
    table = VIEWS[view].table_of(rows)
    return prepare_table(table, VIEWS[view].columns).page_json(query, view=view, options=options)


def _facts_of_row(trace: Trace, track: TableTrack, number: int) -> pl.DataFrame:
    """Returns the values of a row, as the view `slice` has those of a slice."""
    if number >= track.table.height:
        raise UsageError(f"the result has no row {number}; it has {track.table.height}")
    values = track.table.row(number, named=True)
    first: dict[str, Any] = {"group": "slice", "key": "name", "unit": "name"}
    first |= {"slice": number, "track": 0, "row": track.row_in_track(number)}
    first |= {"start": track.start[number], "value": track.title}
    if track.lanes is not None:
        first["duration"] = track.slices["duration"][number]
        first["value"] = str(track.slices["name"][number])
    of = "query" if track.lanes is None else str(track.slices["category"][number])
    category = {"group": "slice", "key": "category", "value": of, "unit": "name"}
    rows = [first, category, *_values_of_row(track, values), *_slice_of_row(trace, track, number)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _values_of_row(track: TableTrack, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, dtype in track.table.schema.items():
        if name in START_COLUMNS:
            unit = "instant"
        else:
            unit = "ns" if name in DURATION_COLUMNS else unit_of_column(name, dtype)
        value = values[name]
        text = None if value is None else str(value).lower() if unit == "flag" else str(value)
        yield {"group": "result", "key": name, "value": text or "", "unit": unit}


def _slice_of_row(trace: Trace, track: TableTrack, number: int) -> Iterator[dict[str, Any]]:
    """Yields the slice that a row with an `id` is of: it begins when the row does."""
    if "id" not in track.table.columns or not track.table.schema["id"].is_integer():
        return
    at, slices = track.table["id"][number], trace.slices
    if at is None or not 0 <= at < slices.height or slices["start"][at] != track.start[number]:
        return
    told = slices.row(at, named=True)
    yield {
        "group": "links",
        "key": "slice",
        "value": str(told["name"]),
        "unit": "name",
        "slice": at,
        "start": told["start"],
        "duration": told["duration"],
        "track": told["track"],
    }
