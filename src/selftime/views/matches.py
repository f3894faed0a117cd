"""Slices whose names contain a text: how many of each, and which comes next."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.device.work import device_durations
from selftime.analysis.slice_filters import filter_by_name
from selftime.schema import Column, Name
from selftime.trace import Trace
from selftime.views.base import Top, view

_NONE: Final = -1
"""No slice."""


@view(
    Column("name", Name, "name", "The name."),
    Column("category", Name, "name", "What kind of event it is."),
    Column("count", pl.Int64, "count", "How many there are."),
    Column("total", pl.Int64, "ns", "Sum of their durations.", True),
    Column("start", pl.Int64, "instant", "When it began; of several the longest."),
    Column("duration", pl.Int64, "ns", "How long it lasted; of several the longest.", True),
    Column("track", pl.UInt32, "id", "The track that it lies on; of several the longest."),
    Column("id", pl.UInt32, "id", "The slice; of several the longest."),
)
def matches(  # noqa: PLR0913 - keyword-only options of the command
    trace: Trace,
    *,
    text: str = "",
    by: Literal["name", "slice"] = "name",
    way: Literal["after", "before"] = "after",
    slice: int = _NONE,  # noqa: A002 - the option's name
    start: int = 0,
    top: Top = 0,
) -> pl.DataFrame:
    """Slices whose names contain `text`, whatever the case; none without a text.

    `by` name sums those of a name and category, most time first. `by` slice tells each in order of
    time: those after `slice`, or from `start` on where it is -1; with `way` as before those before,
    the last first. `top` keeps the first rows, 0 all.
    """
    wanted = text.casefold()
    empty = pl.DataFrame(schema={c.name: c.dtype for c in matches.columns})
    if not wanted:
        return empty
    found = filter_by_name(trace.slices, lambda name: wanted in name.casefold())
    found = found.with_columns(duration=device_durations(trace).gather(found["id"]))
    table = _counted(found) if by == "name" else _listed(found, way, slice, start)
    return table.head(top) if top else table


def _counted(found: pl.DataFrame) -> pl.DataFrame:
    longest = pl.col("duration").fill_null(_NONE).arg_max()
    known = pl.col("duration").count() > 0
    table = (
        found.group_by("name", "category", maintain_order=True)
        .agg(
            pl.len().alias("count"),
            pl.when(known).then(pl.col("duration").sum()).alias("total"),
            pl.col("start", "duration", "track", "id").get(longest),
        )
        .sort("total", "id", descending=[True, False], nulls_last=True)
    )
    return table.select(pl.col(c.name).cast(c.dtype) for c in matches.columns)


def _listed(found: pl.DataFrame, way: str, number: int, start: int) -> pl.DataFrame:
    if way == "after":
        beyond = pl.col("id") > number if number != _NONE else pl.col("start") >= start
        rows = found.filter(beyond)
    else:
        beyond = pl.col("id") < number if number != _NONE else pl.col("start") < start
        rows = found.filter(beyond).reverse()
    table = rows.with_columns(count=pl.lit(1), total=pl.col("duration"))
    return table.select(pl.col(c.name).cast(c.dtype) for c in matches.columns)
