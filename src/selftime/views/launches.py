"""Launches of device work: their host time, and how long the work waits before it begins."""

from typing import Final, Literal

import polars as pl

from selftime import names
from selftime.analysis.device.launch_queues import (
    FULL_STREAM_QUEUE_LENGTH,
    launches_with_queue_delays,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_GROUPING_COLUMNS_BY_OPTION: Final = {
    "call": ("call",),
    "operator": ("call", "operator"),
    "line": ("call", *SOURCE_SITE_COLUMNS),
    "kernel": ("call", "operator", "kernel"),
    "stream": ("call", "device", "stream"),
    "launch": ("id",),
}
"""Maps each value of the option `by` to the columns by which launches are grouped into rows."""
_DEVICE_AND_STREAM_COLUMNS: Final = ("device", "stream")
_COLUMNS_NULL_UNLESS_ALL_EQUAL: Final = (
    "call",
    "operator",
    "kernel",
    *SOURCE_SITE_COLUMNS,
    *_DEVICE_AND_STREAM_COLUMNS,
)
"""Columns that are null in a row unless all its launches have the same value."""
_QUANTILE_OF_UNBLOCKED_LAUNCH_TIME: Final = 0.95
"""Quantile of the durations of unblocked launches; a launch that takes longer waited for a full
queue.
"""
_OPTIONS_WITHOUT_SOURCE_LINE: Final = ("call", "stream")
"""Values of the option `by` for which operators and source lines need not be looked up."""


@view(
    Column(
        "call",
        pl.String,
        "name",
        "The name of the runtime or driver call that launches device work.",
    ),
    Column(
        "file", pl.String, "text", "The source file of the launch calls; null if several.", True
    ),
    Column("line", pl.Int32, "id", "The source line of the launch calls; null if several.", True),
    Column(
        "operator",
        pl.String,
        "name",
        "The operator that made the launch call; null if none or several.",
        True,
    ),
    Column(
        "kernel",
        pl.String,
        "name",
        "The name of the launched kernel or copy; null if none or several.",
        True,
    ),
    Column("count", pl.Int64, "count", "The number of launch calls."),
    Column("host_time", pl.Int64, "ns", "Host time in the launch calls."),
    Column("host_median", pl.Float64, "ns", "The median host time of a launch call.", True),
    Column(
        "onto_idle",
        pl.Float64,
        "ratio",
        "Share of launch calls that launched onto an idle stream.",
        True,
    ),
    Column(
        "delay_median",
        pl.Float64,
        "ns",
        "The median time from a launch call's start to the start of its work on the device.",
        True,
    ),
    Column(
        "queued_median",
        pl.Float64,
        "ns",
        "The median part of the launch delay during which the stream had earlier work.",
        True,
    ),
    Column(
        "exposed_median",
        pl.Float64,
        "ns",
        "The median part of the launch delay during which the stream was idle.",
        True,
    ),
    Column(
        "exposed",
        pl.Int64,
        "ns",
        "Sum of the parts of the launch delays during which the stream was idle.",
        True,
    ),
    Column(
        "delay_p95",
        pl.Float64,
        "ns",
        "The 95th percentile of the delays from launch call to device work.",
        True,
    ),
    Column("delay_max", pl.Int64, "ns", "The longest delay from launch call to device work.", True),
    Column(
        "depth_median",
        pl.Float64,
        "count",
        "The median number of earlier launches that the stream had not yet finished.",
        True,
    ),
    Column(
        "depth_max",
        pl.Int64,
        "count",
        "The highest number of launches that a stream had queued.",
        True,
    ),
    Column(
        "full",
        pl.Int64,
        "count",
        f"The number of launch calls onto a stream with {FULL_STREAM_QUEUE_LENGTH:,} or more "
        "launches queued.",
    ),
    Column(
        "blocked",
        pl.Int64,
        "ns",
        "Host time in which launch calls waited for room in a full queue.",
        True,
    ),
    Column("work", pl.Int64, "count", "The number of kernels, copies and fills launched."),
    Column("device_time", pl.Int64, "ns", "Sum of the durations of the launched work."),
    Column(
        "longer_than_work",
        pl.Int64,
        "count",
        "The number of launch calls that took longer than the device work that they launched.",
    ),
    Column(
        "without_work",
        pl.Int64,
        "count",
        "The number of launch calls without recorded device work.",
    ),
    Column(
        "began_before_launch",
        pl.Int64,
        "count",
        "The number of launch calls whose recorded start is after their work's start; their delay "
        "is unknown.",
    ),
    Column("host_max", pl.Int64, "ns", "The host time of the longest launch call.", True),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line of the launch calls.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "device",
        pl.Int32,
        "id",
        "The number of the device that the work ran on; null if several.",
        True,
    ),
    Column(
        "stream",
        pl.Int64,
        "id",
        "The number of the stream that the work ran on; null if several.",
        True,
    ),
    Column("start", pl.Int64, "instant", "When the first launch call began."),
    Column("longest", pl.UInt32, "id", "The slice id of the longest launch call."),
    needs=("device", "links"),
    sums=(
        "count",
        "host_time",
        "exposed",
        "full",
        "work",
        "device_time",
        "longer_than_work",
        "without_work",
        "began_before_launch",
    ),
)
def launches(
    trace: Trace,
    *,
    by: Literal["call", "operator", "line", "kernel", "stream", "launch"] = "call",
    counted: bool = False,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Calls that launch device work, most host time first.

    Work begins some time after its call. While the stream had earlier work it was queued: the host
    was ahead. While the stream was idle it was exposed: the device waited for the launch. Where
    most launches are onto an idle stream, the host does not keep up. A call blocks the host if the
    queue is full, until there is room. A call that launches several works, such as a graph launch,
    is described by the first. Calls captured into a graph run nothing and are left out.

    `by` groups calls further: by operator, source line, operator and kernel, stream, or lists each
    call. `counted` keeps the calls in the steps that count for medians, `top` the first rows; 0
    keeps all.
    """
    keys = _GROUPING_COLUMNS_BY_OPTION[by]
    calls = _launch_calls(trace, only_counted_steps=counted)
    told = (
        _DEVICE_AND_STREAM_COLUMNS
        if by in _OPTIONS_WITHOUT_SOURCE_LINE
        else _COLUMNS_NULL_UNLESS_ALL_EQUAL
    )
    table = (
        calls.group_by(keys, maintain_order=True)
        .agg(
            *_aggregations_of_launch_group(),
            *(common_value_expression(name) for name in told if name not in keys),
        )
        .with_columns(
            pl.lit(None).alias(name)
            for name in _COLUMNS_NULL_UNLESS_ALL_EQUAL
            if name not in (*told, *keys)
        )
        .sort("host_time", "start", "longest", descending=[True, False, False])
        .select(pl.col(column.name).cast(column.dtype) for column in launches.columns)
    )
    return table.head(top) if top else table


def _launch_calls(trace: Trace, *, only_counted_steps: bool) -> pl.DataFrame:
    """Returns one row per call that launches device work, with every column to group by."""
    found = _all_launch_calls(trace)
    if only_counted_steps:
        inside = is_instant_in_windows(found["start"].to_numpy(), counted_step_windows(trace))
        found = found.filter(pl.Series(inside, dtype=pl.Boolean))
    return found


@cached_per_trace
def _all_launch_calls(trace: Trace) -> pl.DataFrame:
    found = launches_with_queue_delays(trace)
    found = found.with_columns(
        onto_full_queue=(pl.col("depth") >= FULL_STREAM_QUEUE_LENGTH).fill_null(value=False)
    )
    found = found.with_columns(blocked=_host_time_blocked_by_full_queue())
    site = source_sites_of_slices(trace, found["id"])
    return found.with_columns(
        operator=trace.slices["name"].gather(found["operator"]).cast(pl.String),
        kernel=_launched_work_names(trace, found),
        **{name: site[name] for name in SOURCE_SITE_COLUMNS},
    )


def _host_time_blocked_by_full_queue() -> pl.Expr:
    """Returns a Polars expression: the ns for which a full launch queue blocked each call.

    A call blocked by a full queue takes unusually long; the median of other calls is subtracted.
    """
    host, onto_full_queue = pl.col("host"), pl.col("onto_full_queue")
    usual = host.filter(~onto_full_queue).median().over("call")
    longest = (
        host.filter(~onto_full_queue)
        .quantile(_QUANTILE_OF_UNBLOCKED_LAUNCH_TIME, "nearest")
        .over("call")
    )
    beyond = pl.when(host > longest).then(host - usual).otherwise(0)
    return pl.when(onto_full_queue).then(pl.when(longest.is_not_null()).then(beyond)).otherwise(0)


def _launched_work_names(trace: Trace, calls: pl.DataFrame) -> pl.Series:
    """Returns the name of the kernel or copy that each call launched; null for several or none."""
    only = trace.slices.select("name", "category")[calls["first"].set(calls["work"] != 1, None)]
    name = only["name"].cast(pl.String)
    kernels = name.filter(~only["category"].is_in(names.COPY_CATEGORIES)).drop_nulls().unique()
    return name.replace({one: names.short_kernel_name(one) for one in kernels.to_list()})


def _aggregations_of_launch_group() -> list[pl.Expr]:
    host, depth, delay = pl.col("host"), pl.col("depth"), pl.col("delay")
    exposed = pl.col("exposed")
    return [
        pl.len().alias("count"),
        host.sum().alias("host_time"),
        host.median().alias("host_median"),
        host.max().alias("host_max"),
        (depth == 0).mean().alias("onto_idle"),
        delay.median().alias("delay_median"),
        delay.quantile(0.95, "nearest").alias("delay_p95"),
        delay.max().alias("delay_max"),
        pl.col("queued").median().alias("queued_median"),
        exposed.median().alias("exposed_median"),
        pl.when(exposed.count() > 0).then(exposed.sum()).alias("exposed"),
        depth.median().alias("depth_median"),
        depth.max().alias("depth_max"),
        pl.col("onto_full_queue").sum().alias("full"),
        pl.col("work", "device_time", "began_before_launch").sum(),
        pl.when(pl.col("blocked").count() > 0).then(pl.col("blocked").sum()).alias("blocked"),
        ((pl.col("work") > 0) & (pl.col("device_time") < host)).sum().alias("longer_than_work"),
        pl.col("lost").sum().alias("without_work"),
        pl.col("start").min(),
        pl.col("id").sort_by(host, descending=True, nulls_last=True).first().alias("longest"),
    ]
