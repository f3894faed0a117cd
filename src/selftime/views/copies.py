"""Copies and fills of memory: how much went which way, how fast, and who asked for it."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.device.transfers import transfers
from selftime.analysis.sites import SITE
from selftime.analysis.slice_filters import common_value
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Top, view

_KEYS: Final = {
    "direction": ("direction", "host_memory", "device"),
    "stream": ("direction", "host_memory", "device", "stream"),
    "size": ("direction", "host_memory", "at_least"),
    "operator": ("direction", "host_memory", "operator"),
    "line": ("direction", "host_memory", *SITE),
    "copy": ("id",),
}
"""What rows are told apart by."""
_ALONE: Final = ("direction", "host_memory", "operator", *SITE, "device", "stream")
"""Columns that a row has where all its copies agree on it."""


@view(
    Column("direction", pl.String, "name", "HtoD, DtoH, DtoD, PtoP, HtoH, or fill.", True),
    Column("host_memory", pl.String, "name", "On the host: pageable or pinned, if told.", True),
    Column("at_least", pl.Int64, "bytes", "By size: from here to below 16 times this.", True),
    Column("file", pl.String, "text", "The source file of the launches, if one.", True),
    Column("line", pl.Int32, "id", "The source line of the launches, if one.", True),
    Column("count", pl.Int64, "count", "How many ran."),
    Column("bytes", pl.Int64, "bytes", "Bytes moved or filled, of those that tell.", True),
    Column("time", pl.Int64, "ns", "Sum of their durations on the device."),
    Column("bandwidth", pl.Float64, "gb/s", "Bytes by time, of those that tell both.", True),
    Column("host_time", pl.Int64, "ns", "Host time in the calls that launched them.", True),
    Column("waited", pl.Int64, "ns", "Host time in which the host was held for them."),
    Column("share", pl.Float64, "ratio", "Share of the time of all copies and fills."),
    Column("operator", pl.String, "name", "The operator that launched them, if one did.", True),
    Column("function", pl.String, "name", "The function that the line is in.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("smallest", pl.Int64, "bytes", "The least bytes of one.", True),
    Column("median", pl.Float64, "bytes", "Half of them are no larger.", True),
    Column("largest", pl.Int64, "bytes", "The most bytes of one.", True),
    Column("untold", pl.Int64, "count", "Those of which no size is recorded."),
    Column("device", pl.Int32, "id", "The device, if all ran on one.", True),
    Column("stream", pl.Int64, "id", "The stream, if all ran on one.", True),
    Column("start", pl.Int64, "instant", "When the first of them began."),
    Column("longest", pl.UInt32, "id", "The slice of the one that took longest."),
    needs=("device",),
    sums=("count", "bytes", "time", "host_time", "waited", "untold"),
)
def copies(
    trace: Trace,
    *,
    by: Literal["direction", "stream", "size", "operator", "line", "copy"] = "direction",
    counted: bool = False,
    top: Top = 0,
) -> pl.DataFrame:
    """Copies and fills by direction and memory of the host, most time first.

    Every row tells direction and memory apart; `by` adds device, stream, size, operator, source
    line, or makes a row of each copy. Bytes, sizes and bandwidth are of those that tell their size;
    a copy within a device reads and writes each byte. Calls that copy pageable memory hold the host
    until the bytes are staged, to the host until they have arrived; what waits for a copy right
    after its launch holds it too. The call of a graph counts to no copy. `counted` keeps what was
    launched in the steps that count for medians, `top` the first rows; 0 keeps all.
    """
    moved = transfers(trace)
    if counted:
        begun = moved.select(pl.coalesce("launched", "start")).to_series().to_numpy()
        moved = moved.filter(pl.Series(is_within(begun, counted_windows(trace)), dtype=pl.Boolean))
    keys = _KEYS[by]
    alone = [common_value(name) for name in _ALONE if name not in keys]
    if by != "size":
        alone.append(pl.lit(None).alias("at_least"))
    table = (
        moved.group_by(keys, maintain_order=True)
        .agg(*_amounts(), *alone)
        .with_columns(share=pl.col("time") / pl.max_horizontal(pl.col("time").sum(), 1))
        .sort("time", "first", descending=[True, False])
        .select(pl.col(column.name).cast(column.dtype) for column in copies.columns)
    )
    return table.head(top) if top else table


def _amounts() -> list[pl.Expr]:
    size, time = pl.col("bytes"), pl.col("duration")
    timed = size.is_not_null() & (time > 0)
    known = pl.col("bytes").count() > 0
    rate = pl.when(timed.any()).then(size.filter(timed).sum() / time.filter(timed).sum())
    called = pl.col("call_time")
    return [
        pl.len().alias("count"),
        pl.when(known).then(size.sum()).alias("bytes"),
        time.sum().alias("time"),
        rate.alias("bandwidth"),
        pl.when(called.count() > 0).then(called.sum()).alias("host_time"),
        pl.col("waited").sum(),
        size.min().alias("smallest"),
        size.median().alias("median"),
        size.max().alias("largest"),
        size.is_null().sum().alias("untold"),
        pl.col("id").first().alias("first"),
        pl.col("id").sort_by(time, pl.col("id"), descending=[True, False]).first().alias("longest"),
        pl.col("start").min(),
    ]
