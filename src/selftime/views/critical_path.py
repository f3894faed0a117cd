"""The critical path of the steps: the chain of work and gaps that determines the step time."""

from typing import Final, Literal

import polars as pl

from selftime import names
from selftime.analysis.graph.critical_path_steps import critical_path_of_chosen_steps
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.source_sites import (
    SOURCE_SITE_COLUMNS,
    source_sites_of_slices,
)
from selftime.schema import Column, NameType
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_GROUPING_COLUMNS_BY_OPTION: Final = {
    "kind": ("kind",),
    "name": ("kind", "name"),
    "operator": ("kind", "operator"),
    "line": ("kind", *SOURCE_SITE_COLUMNS),
    "step": ("step", "kind"),
    "segment": ("start",),
}
"""Maps each value of the option `by` to the columns by which path segments are grouped into rows.
"""
_COLUMNS_NULL_UNLESS_ALL_EQUAL: Final = (
    "kind",
    "name",
    "operator",
    *SOURCE_SITE_COLUMNS,
    "link",
    "step",
)
"""Columns that are null in a row unless all its path segments have the same value."""


@view(
    Column("kind", pl.String, "name", "The kind of segment, such as compute, latency or host."),
    Column(
        "name",
        NameType,
        "name",
        "The kernel, operator or frame; for a gap, the work that began late; null if several.",
        True,
    ),
    Column(
        "operator",
        pl.String,
        "name",
        "The operator that launched the work, or that the host ran; null if none or several.",
        True,
    ),
    Column("time", pl.Int64, "ns", "Time that the row's segments take on the critical path."),
    Column(
        "share", pl.Float64, "ratio", "The row's time as a share of the time of the whole path."
    ),
    Column(
        "per_step",
        pl.Float64,
        "ns",
        "Average time on the critical path per step; null for single segments.",
        True,
    ),
    Column("count", pl.Int64, "count", "The number of segments of the critical path in the row."),
    Column(
        "inferred",
        pl.Int64,
        "ns",
        "The part of `time` whose dependency on earlier work is inferred, not recorded.",
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file of the segments; null if unknown or several.",
        True,
    ),
    Column(
        "line", pl.Int32, "id", "The source line of the segments; null if unknown or several.", True
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "link",
        pl.String,
        "name",
        "Why the segment began, such as launch or wait; null if several reasons.",
        True,
    ),
    Column(
        "step",
        pl.Int64,
        "id",
        "The number of the step that the segments belong to; null if several.",
        True,
    ),
    Column("start", pl.Int64, "instant", "When the first segment of the row begins."),
    Column(
        "longest",
        pl.UInt32,
        "id",
        "The slice id of the longest segment; null if the segment is no slice.",
        True,
    ),
    sums=("time", "count", "inferred"),
)
def critical_path(
    trace: Trace,
    *,
    by: Literal["kind", "name", "operator", "line", "step", "segment"] = "kind",
    step: str = "",
    top: RowLimit = 0,
) -> pl.DataFrame:
    """The critical path of the training steps, by kind of segment, most time first.

    The path goes back from when a step was done to when the previous one was, always to the last of
    the dependencies: from device work to the previous work on its stream, to work of another stream
    that it waited for, or to its launch; from a wait of the host to the device work that ended it;
    else back along the host, over the threads that take turns. Its segments are contiguous and add
    up to the time of the steps. Work that is not on the path could take longer without slowing the
    steps; work on it can save at most its own time.

    Kinds: compute; communication; copy (fills too); latency, from the launch of work, or the end of
    the work before it, to its begin; data, a wait for a batch; gc; host, all other activity of the
    host; unknown, before work whose dependency is not recorded.

    Links say why a segment began: begin (of the recording), stream, launch, event (the trace
    records which work), inferred (work of another stream ended just before, or the stream had to
    wait for something), wait (of the host), thread (another thread continued), host, unknown.

    `by` adds name, operator, source line or step, or makes a row for each segment, in order of
    time. `step` is the number of a step, `typical` for the counted step of median time, or `all`
    for all that are recorded; without it the steps that count. `top` keeps the first rows; 0 keeps
    all.
    """
    found = critical_path_of_chosen_steps(trace, step)
    time = pl.col("end") - pl.col("start")
    found = found.with_columns(
        pl.col("kind", "link").cast(pl.String),
        time=time,
        operator=_operators_of_slices(trace, found["slice"]),
        inferred=pl.when(pl.col("link").is_in(["inferred", "unknown"])).then(time).otherwise(0),
    ).hstack(source_sites_of_slices(trace, found["slice"]))
    table = _sum_critical_path_segments(found, by)
    return table.head(top) if top else table


def _operators_of_slices(trace: Trace, slice_ids: pl.Series) -> pl.Series:
    """Returns the operator that is each slice, or that launched it; null for others."""
    launcher = arguments_of_slices(trace, "device_args", slice_ids, "operator")["operator"]
    at = pl.select(pl.coalesce(launcher, slice_ids)).to_series()
    told = trace.slices.select("name", "category").select(pl.all().gather(at))
    is_operator = pl.col("category").is_in(list(names.OPERATOR_CATEGORIES))
    return told.select(pl.when(is_operator).then(pl.col("name").cast(pl.String))).to_series()


def _sum_critical_path_segments(segments: pl.DataFrame, by: str) -> pl.DataFrame:
    keys = _GROUPING_COLUMNS_BY_OPTION[by]
    steps = segments["step"].n_unique() if by not in {"segment", "step"} else None
    longest = pl.col("slice").sort_by("time", "start", descending=[True, False]).first()
    sums = [pl.col("time", "inferred").sum(), pl.len().alias("count"), longest.alias("longest")]
    others = [
        common_value_expression(name) for name in _COLUMNS_NULL_UNLESS_ALL_EQUAL if name not in keys
    ]
    begins = [] if "start" in keys else [pl.col("start").min()]
    table = segments.group_by(keys, maintain_order=True).agg(*sums, *others, *begins)
    table = table.with_columns(
        share=pl.col("time") / max(int(segments["time"].sum()), 1),
        per_step=pl.col("time") / pl.lit(steps, pl.Float64),
    )
    order = ["start"] if by == "segment" else ["time", "start"]
    descending = [False] if by == "segment" else [True, False]
    return table.sort(order, descending=descending).select(
        pl.col(column.name).cast(column.dtype) for column in critical_path.columns
    )
