"""Launches: what the host pays for each, how long their work waits, and for what."""

from typing import Final, Literal

import polars as pl

from selftime import names
from selftime.analysis.device.launch_queues import FULL, queued_launches
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import common_value
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Top, view

_KEYS: Final = {
    "call": ("call",),
    "operator": ("call", "operator"),
    "line": ("call", *SITE),
    "kernel": ("call", "operator", "kernel"),
    "stream": ("call", "device", "stream"),
    "launch": ("id",),
}
"""What rows are told apart by."""
_PLACE: Final = ("device", "stream")
_ALONE: Final = ("call", "operator", "kernel", *SITE, *_PLACE)
"""Columns that a row has where all its launches agree on it."""
_USUAL: Final = 0.95
"""A call that took longer than this share of those that found room waited for room."""
_WHEREVER: Final = ("call", "stream")
"""Of these rows nobody asks whose they are."""


@view(
    Column("call", pl.String, "name", "The call of the runtime or driver."),
    Column("file", pl.String, "text", "The source file, if all are in one.", True),
    Column("line", pl.Int32, "id", "The source line, if all are on one.", True),
    Column("operator", pl.String, "name", "The operator that launched, if all are alike.", True),
    Column("kernel", pl.String, "name", "What was launched, if it is one kernel or copy.", True),
    Column("count", pl.Int64, "count", "How many calls there were."),
    Column("host_time", pl.Int64, "ns", "Sum of the host time in them."),
    Column("host_median", pl.Float64, "ns", "Half of the calls took the host no longer.", True),
    Column("onto_idle", pl.Float64, "ratio", "Share onto a stream with nothing left to do.", True),
    Column("delay_median", pl.Float64, "ns", "From a call's begin to that of its work.", True),
    Column("queued_median", pl.Float64, "ns", "Of the delay: earlier work of the stream.", True),
    Column("exposed_median", pl.Float64, "ns", "Of the delay: the stream stood idle.", True),
    Column("exposed", pl.Int64, "ns", "Sum of the exposed parts of the delays.", True),
    Column("delay_p95", pl.Float64, "ns", "95 % of the delays are no longer.", True),
    Column("delay_max", pl.Int64, "ns", "The longest delay.", True),
    Column("depth_median", pl.Float64, "count", "Launches that its stream had still to do.", True),
    Column("depth_max", pl.Int64, "count", "The most launches that a stream had to do.", True),
    Column("full", pl.Int64, "count", f"Calls onto a stream with {FULL:,} or more to do."),
    Column("blocked", pl.Int64, "ns", "Host time in which those waited for room.", True),
    Column("work", pl.Int64, "count", "Kernels, copies and fills that they launched."),
    Column("device_time", pl.Int64, "ns", "Sum of the durations of that work."),
    Column("short", pl.Int64, "count", "Calls that took longer than all of their work."),
    Column("without_work", pl.Int64, "count", "Calls of which no device work was recorded."),
    Column("inverted", pl.Int64, "count", "Calls that begin after their work: delay unknown."),
    Column("host_max", pl.Int64, "ns", "The longest call.", True),
    Column("function", pl.String, "name", "The function that the line is in.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("device", pl.Int32, "id", "The device, if all were on one.", True),
    Column("stream", pl.Int64, "id", "The stream, if all were on one.", True),
    Column("start", pl.Int64, "instant", "When the first call began."),
    Column("longest", pl.UInt32, "id", "The slice of the longest call."),
    needs=("device", "links"),
    sums=(
        "count",
        "host_time",
        "exposed",
        "full",
        "work",
        "device_time",
        "short",
        "without_work",
        "inverted",
    ),
)
def launches(
    trace: Trace,
    *,
    by: Literal["call", "operator", "line", "kernel", "stream", "launch"] = "call",
    counted: bool = False,
    top: Top = 0,
) -> pl.DataFrame:
    """Calls that put work on a device, most host time first.

    Work begins some time after its call: it was queued while the stream had earlier work, and the
    host was ahead; it was exposed while the stream stood idle, and the device waited for the
    launch. Where most launches are onto an idle stream, the host does not keep up. A call with a
    full queue before it holds the host until there is room. A call that launches several, as that
    of a graph does, is told by the first work. Calls captured into a graph run nothing and are left
    out.

    `by` tells calls apart further: by operator, source line, operator and kernel, stream, or each
    alone. `counted` keeps the calls in the steps that count for medians, `top` the first rows; 0
    keeps all.
    """
    keys = _KEYS[by]
    calls = _calls(trace, counted=counted)
    told = _PLACE if by in _WHEREVER else _ALONE
    table = (
        calls.group_by(keys, maintain_order=True)
        .agg(*_amounts(), *(common_value(name) for name in told if name not in keys))
        .with_columns(pl.lit(None).alias(name) for name in _ALONE if name not in (*told, *keys))
        .sort("host_time", "start", "longest", descending=[True, False, False])
        .select(pl.col(column.name).cast(column.dtype) for column in launches.columns)
    )
    return table.head(top) if top else table


def _calls(trace: Trace, *, counted: bool) -> pl.DataFrame:
    """One row for each call, with all that can be grouped by."""
    found = queued_launches(trace)
    found = found.with_columns(full=(pl.col("depth") >= FULL).fill_null(value=False))
    found = found.with_columns(blocked=_blocked())
    if counted:
        inside = is_within(found["start"].to_numpy(), counted_windows(trace))
        found = found.filter(pl.Series(inside, dtype=pl.Boolean))
    site = sites(trace, found["id"])
    return found.with_columns(
        operator=trace.slices["name"].gather(found["operator"]).cast(pl.String),
        kernel=_kernels(trace, found),
        **{name: site[name] for name in SITE},
    )


def _blocked() -> pl.Expr:
    """Time beyond the median, of calls longer than nearly all of those that found room."""
    host, full = pl.col("host"), pl.col("full")
    usual = host.filter(~full).median().over("call")
    longest = host.filter(~full).quantile(_USUAL, "nearest").over("call")
    beyond = pl.when(host > longest).then(host - usual).otherwise(0)
    return pl.when(full).then(pl.when(longest.is_not_null()).then(beyond)).otherwise(0)


def _kernels(trace: Trace, found: pl.DataFrame) -> pl.Series:
    """What calls launched, kernels by their short names; null for several or nothing."""
    only = trace.slices.select("name", "category")[found["first"].set(found["work"] != 1, None)]
    name = only["name"].cast(pl.String)
    kernels = name.filter(~only["category"].is_in(names.COPIES)).drop_nulls().unique()
    return name.replace({one: names.short_kernel_name(one) for one in kernels.to_list()})


def _amounts() -> list[pl.Expr]:
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
        pl.col("full", "work", "device_time", "inverted").sum(),
        pl.when(pl.col("blocked").count() > 0).then(pl.col("blocked").sum()).alias("blocked"),
        ((pl.col("work") > 0) & (pl.col("device_time") < host)).sum().alias("short"),
        pl.col("lost").sum().alias("without_work"),
        pl.col("start").min(),
        pl.col("id").sort_by(host, descending=True, nulls_last=True).first().alias("longest"),
    ]
