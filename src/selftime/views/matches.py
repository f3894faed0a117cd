"""Searches slice names for a text; counts the matching slices by name, or lists them by time."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.device.device_work import slice_durations_without_impossible
from selftime.analysis.slice_filters import filter_by_name
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import RowLimit, view

_NO_SLICE_ID: Final = -1
"""Value of an option for a slice id that means that no slice is given."""


@view(
    Column("name", NameType, "name", "The name that matches the search."),
    Column("category", NameType, "name", "The category of the event in the trace."),
    Column("count", pl.Int64, "count", "The number of slices with the matching name."),
    Column(
        "total", pl.Int64, "ns", "Sum of the durations of the slices with the matching name.", True
    ),
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the slice began; for several slices, when the longest began.",
    ),
    Column(
        "duration",
        pl.Int64,
        "ns",
        "The slice's duration; for several slices, that of the longest.",
        True,
    ),
    Column(
        "track",
        pl.UInt32,
        "id",
        "The id of the slice's track; for several slices, of the longest slice's track.",
    ),
    Column("id", pl.UInt32, "id", "The slice's id; for several slices, that of the longest."),
)
def matches(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    text: str = "",
    by: Literal["name", "slice"] = "name",
    way: Literal["after", "before"] = "after",
    slice: int = _NO_SLICE_ID,  # noqa: A002 - the option's name
    start: int = 0,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Slices whose names contain `text`, ignoring case; none without a text.

    `by` name sums slices of the same name and category, most time first. `by` slice lists each in
    order of time: those after `slice`, or from `start` on where it is -1; with `way` before, those
    before it, the nearest first. `top` keeps the first rows, 0 all.
    """
    wanted = text.casefold()
    empty = pl.DataFrame(schema={c.name: c.dtype for c in matches.columns})
    if not wanted:
        return empty
    found = filter_by_name(trace.slices, lambda name: wanted in name.casefold())
    found = found.with_columns(
        duration=slice_durations_without_impossible(trace).gather(found["id"])
    )
    table = (
        _count_matches_by_name(found)
        if by == "name"
        else _matches_after_or_before_slice(found, way, slice, start)
    )
    return table.head(top) if top else table


def _count_matches_by_name(slices: pl.DataFrame) -> pl.DataFrame:
    longest = pl.col("duration").fill_null(_NO_SLICE_ID).arg_max()
    known = pl.col("duration").count() > 0
    table = (
        slices.group_by("name", "category", maintain_order=True)
        .agg(
            pl.len().alias("count"),
            pl.when(known).then(pl.col("duration").sum()).alias("total"),
            pl.col("start", "duration", "track", "id").get(longest),
        )
        .sort("total", "id", descending=[True, False], nulls_last=True)
    )
    return table.select(pl.col(c.name).cast(c.dtype) for c in matches.columns)


def _matches_after_or_before_slice(
    slices: pl.DataFrame, direction: str, reference_slice: int, start: int
) -> pl.DataFrame:
    if direction == "after":
        beyond = (
            pl.col("id") > reference_slice
            if reference_slice != _NO_SLICE_ID
            else pl.col("start") >= start
        )
        rows = slices.filter(beyond)
    else:
        beyond = (
            pl.col("id") < reference_slice
            if reference_slice != _NO_SLICE_ID
            else pl.col("start") < start
        )
        rows = slices.filter(beyond).reverse()
    table = rows.with_columns(count=pl.lit(1), total=pl.col("duration"))
    return table.select(pl.col(c.name).cast(c.dtype) for c in matches.columns)
