"""Copies and fills of memory: sizes, directions, bandwidths, and the code that launched them."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.device.transfers import device_copies_and_fills
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_GROUPING_COLUMNS_BY_OPTION: Final = {
    "direction": ("direction", "host_memory", "device"),
    "stream": ("direction", "host_memory", "device", "stream"),
    "size": ("direction", "host_memory", "at_least"),
    "operator": ("direction", "host_memory", "operator"),
    "line": ("direction", "host_memory", *SOURCE_SITE_COLUMNS),
    "copy": ("id",),
}
"""Maps each value of the option `by` to the columns by which copies are grouped into rows."""
_COLUMNS_NULL_UNLESS_ALL_EQUAL: Final = (
    "direction",
    "host_memory",
    "operator",
    *SOURCE_SITE_COLUMNS,
    "device",
    "stream",
)
"""Columns that are null in a row unless all its copies have the same value."""


@view(
    Column(
        "direction",
        pl.String,
        "name",
        "The copy's direction: HtoD, DtoH, DtoD, PtoP (between devices), HtoH, or fill.",
        True,
    ),
    Column(
        "host_memory",
        pl.String,
        "name",
        "The kind of host memory: pageable or pinned; null if unknown.",
        True,
    ),
    Column(
        "at_least",
        pl.Int64,
        "bytes",
        "With `by` size: the lower limit of the row's copies in bytes; the upper is 16 times it.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file that launched the copies; null if several.",
        True,
    ),
    Column(
        "line", pl.Int32, "id", "The source line that launched the copies; null if several.", True
    ),
    Column("count", pl.Int64, "count", "The number of copies and fills."),
    Column("bytes", pl.Int64, "bytes", "Total bytes of the copies and fills of known size.", True),
    Column("time", pl.Int64, "ns", "Sum of the durations of the copies and fills on the device."),
    Column(
        "bandwidth",
        pl.Float64,
        "gb/s",
        "Bytes divided by time on the device, over copies of known size and duration.",
        True,
    ),
    Column(
        "host_time",
        pl.Int64,
        "ns",
        "Host time in the calls that launched the copies and fills.",
        True,
    ),
    Column(
        "waited", pl.Int64, "ns", "Host time in which the host waited for the copies and fills."
    ),
    Column(
        "share",
        pl.Float64,
        "ratio",
        "The row's time as a share of the time of all copies and fills.",
    ),
    Column(
        "operator",
        pl.String,
        "name",
        "The operator that launched the copies; null if none or several.",
        True,
    ),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line of the launches.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column("smallest", pl.Int64, "bytes", "Bytes of the smallest copy.", True),
    Column("median", pl.Float64, "bytes", "Bytes of the median copy.", True),
    Column("largest", pl.Int64, "bytes", "Bytes of the largest copy.", True),
    Column(
        "without_bytes",
        pl.Int64,
        "count",
        "The number of copies and fills without a recorded size.",
    ),
    Column(
        "device",
        pl.Int32,
        "id",
        "The number of the device that ran the copies; null if several.",
        True,
    ),
    Column(
        "stream",
        pl.Int64,
        "id",
        "The number of the stream that ran the copies; null if several.",
        True,
    ),
    Column("start", pl.Int64, "instant", "When the first copy of the row began."),
    Column("longest", pl.UInt32, "id", "The slice id of the longest copy."),
    needs=("device",),
    sums=("count", "bytes", "time", "host_time", "waited", "without_bytes"),
)
def copies(
    trace: Trace,
    *,
    by: Literal["direction", "stream", "size", "operator", "line", "copy"] = "direction",
    counted: bool = False,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Copies and fills by direction and kind of host memory, most time first.

    Rows are grouped by direction and host memory; `by` adds device, stream, size, operator, source
    line, or makes a row for each copy. Bytes, sizes and bandwidth cover copies of known size; a
    copy within a device reads and writes each byte. Calls that copy pageable memory block the host:
    to the device until the bytes are staged, to the host until they have arrived. A call that waits
    for a copy right after its launch blocks the host too. The call that launches a graph counts to
    no copy. `counted` keeps copies that were launched in the steps that count for medians, `top`
    the first rows; 0 keeps all.
    """
    moved = device_copies_and_fills(trace)
    if counted:
        begun = moved.select(pl.coalesce("launched", "start")).to_series().to_numpy()
        moved = moved.filter(
            pl.Series(is_instant_in_windows(begun, counted_step_windows(trace)), dtype=pl.Boolean)
        )
    keys = _GROUPING_COLUMNS_BY_OPTION[by]
    alone = [
        common_value_expression(name) for name in _COLUMNS_NULL_UNLESS_ALL_EQUAL if name not in keys
    ]
    if by != "size":
        alone.append(pl.lit(None).alias("at_least"))
    table = (
        moved.group_by(keys, maintain_order=True)
        .agg(*_aggregations_of_copy_group(), *alone)
        .with_columns(share=pl.col("time") / pl.max_horizontal(pl.col("time").sum(), 1))
        .sort("time", "first", descending=[True, False])
        .select(pl.col(column.name).cast(column.dtype) for column in copies.columns)
    )
    return table.head(top) if top else table


def _aggregations_of_copy_group() -> list[pl.Expr]:
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
        size.is_null().sum().alias("without_bytes"),
        pl.col("id").first().alias("first"),
        pl.col("id").sort_by(time, pl.col("id"), descending=[True, False]).first().alias("longest"),
        pl.col("start").min(),
    ]
