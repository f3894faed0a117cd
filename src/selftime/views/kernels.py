"""Kernels by time: how often each ran, how it was launched, and how it used the device."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.device.device_work import device_work
from selftime.analysis.device.kernel_attributes import (
    with_cuda_graph_names,
    with_kernel_classes,
    with_launch_configurations,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.names.notebook_cells import NOTEBOOK_CELL_PATTERN
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_LAUNCH_CONFIGURATION_COLUMNS: Final = ("grid", "block", "registers", "shared_memory")
_GROUPING_COLUMNS_BY_OPTION: Final = {
    "name": ("name",),
    "launch": ("name", "operator", *_LAUNCH_CONFIGURATION_COLUMNS),
    "operator": ("operator",),
    "line": SOURCE_SITE_COLUMNS,
    "class": ("class",),
    "stream": ("device", "stream"),
    "graph": ("graph",),
}
"""Maps each value of the option `by` to the columns by which kernel runs are grouped into rows."""
_COLUMNS_NULL_UNLESS_ALL_EQUAL: Final = (
    "name",
    "class",
    "tensor_cores",
    "device",
    "stream",
    "operator",
    *SOURCE_SITE_COLUMNS,
    *_LAUNCH_CONFIGURATION_COLUMNS,
    "graph",
)
"""Columns that are null in a row unless all its kernel runs have the same value."""
_ROW_LABEL_BY_OPTION: Final = {
    "name": pl.col("short").first(),
    "launch": pl.col("short").first(),
    "operator": pl.col("operator").first(),
    "line": pl.format(
        "{}{}{} {}",
        pl.col("file").str.extract(r"([^/\\]*)$"),
        pl.when(pl.col("file").cast(pl.String).str.contains(NOTEBOOK_CELL_PATTERN))
        .then(pl.lit(", line "))
        .otherwise(pl.lit(":")),
        "line",
        "function",
    ).first(),
    "class": pl.col("class").first(),
    "stream": pl.format("device {}, stream {}", "device", "stream").first(),
    "graph": pl.col("graph").first(),
}
"""Maps each value of the option `by` to the expression of a row's short label; null if unknown."""
_COLUMNS_AVERAGED_BY_DURATION: Final = ("blocks_per_sm", "warps_per_sm", "occupancy")


@view(
    Column(
        "what",
        pl.String,
        "name",
        "The kernel's short name, or the value by which the row is grouped.",
        True,
    ),
    Column(
        "class",
        pl.String,
        "name",
        "The class of kernel, such as gemm, judged by its name; null if several.",
        True,
    ),
    Column(
        "graph",
        pl.String,
        "name",
        "The CUDA graph that replays the kernel; null if none or several.",
        True,
    ),
    Column(
        "replays", pl.Int64, "count", "The number of CUDA graph launches that ran the kernel.", True
    ),
    Column(
        "in_replay",
        pl.Float64,
        "count",
        "The number of times that the kernel ran per CUDA graph launch, on average.",
        True,
    ),
    Column("count", pl.Int64, "count", "The number of times that the kernels of the row ran."),
    Column(
        "total",
        pl.Int64,
        "ns",
        "Sum of the durations of the kernels' runs; runs in parallel all count.",
    ),
    Column(
        "share", pl.Float64, "ratio", "The row's time as a share of the summed time of all kernels."
    ),
    Column("mean", pl.Float64, "ns", "The average duration of a run of the row's kernels."),
    Column("min", pl.Int64, "ns", "The duration of the shortest run of the row's kernels."),
    Column("median", pl.Float64, "ns", "The median duration of the runs of the row's kernels."),
    Column(
        "p95",
        pl.Float64,
        "ns",
        "The 95th percentile of the durations of runs of the row's kernels.",
    ),
    Column("max", pl.Int64, "ns", "The duration of the longest run of the row's kernels."),
    Column(
        "std",
        pl.Float64,
        "ns",
        "Sample standard deviation of run durations of the row's kernels; null for one run.",
        True,
    ),
    Column(
        "tensor_cores",
        pl.Boolean,
        "flag",
        "Whether the kernel uses tensor cores; null if its name does not say.",
        True,
    ),
    Column(
        "tensor_core_share",
        pl.Float64,
        "ratio",
        "Share of the row's time in kernels known to use tensor cores.",
    ),
    Column(
        "tensor_core_unknown",
        pl.Float64,
        "ratio",
        "Share of the row's time in kernels whose name does not say whether they use tensor cores.",
    ),
    Column(
        "operator",
        pl.String,
        "name",
        "The operator that launched the kernel; null if none or several.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file that launched the kernel; null if unknown or several.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line that launched the kernel; null if unknown or several.",
        True,
    ),
    Column(
        "function",
        pl.String,
        "name",
        "The function that contains the source line of the launch.",
        True,
    ),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "blocks_per_sm",
        pl.Float64,
        "count",
        "Thread blocks per SM, averaged over kernel time; null if unknown.",
        True,
    ),
    Column(
        "warps_per_sm",
        pl.Float64,
        "count",
        "Warps per SM, averaged over kernel time; null if unknown.",
        True,
    ),
    Column(
        "occupancy",
        pl.Float64,
        "percent",
        "Estimated achieved occupancy, averaged over kernel time; null if unknown.",
        True,
    ),
    Column(
        "without_occupancy",
        pl.Int64,
        "count",
        "The number of runs of the row's kernels without a known occupancy.",
    ),
    Column(
        "grid",
        pl.String,
        "text",
        "Thread blocks of the launch grid in x, y, z; null if the kernel's runs differ.",
        True,
    ),
    Column(
        "block",
        pl.String,
        "text",
        "Threads per block in x, y, z; null if the kernel's runs differ.",
        True,
    ),
    Column(
        "registers",
        pl.Int32,
        "count",
        "Registers per thread; null if the kernel's runs differ.",
        True,
    ),
    Column(
        "shared_memory",
        pl.Int64,
        "bytes",
        "Bytes of shared memory per block; null if the kernel's runs differ.",
        True,
    ),
    Column(
        "device",
        pl.Int32,
        "id",
        "The number of the device that ran the kernel; null if several.",
        True,
    ),
    Column(
        "stream",
        pl.Int64,
        "id",
        "The number of the stream that ran the kernel; null if several.",
        True,
    ),
    Column("first", pl.Int64, "id", "The slice id of the first run of the row's kernels."),
    Column("longest", pl.Int64, "id", "The slice id of the longest run of the row's kernels."),
    Column("name", pl.String, "name", "The kernel's full name; null if several.", True),
    needs=("device",),
    sums=("count", "total", "without_occupancy"),
)
def kernels(
    trace: Trace,
    *,
    by: Literal["name", "launch", "operator", "line", "class", "stream", "graph"] = "name",
    counted: bool = False,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Kernels and collectives, most time first; copies and fills are in `copies`.

    `by` groups the runs of kernels by name, by launch (name, operator, grid, block, registers and
    shared memory), by operator, source line, class, stream, or graph. A column has a value where it
    is the same for all runs of the row. Every run counts, also those that ran in parallel, so the
    totals add up to the sum of durations and may exceed the elapsed time. `counted` keeps kernels
    that were launched in the steps that count for medians, `top` the first rows; 0 keeps all.
    """
    runs = _kernel_runs(trace, only_counted_steps=counted)
    everything = max(int(runs["duration"].sum()), 1)
    grouped = runs.group_by(_GROUPING_COLUMNS_BY_OPTION[by], maintain_order=True).agg(
        _ROW_LABEL_BY_OPTION[by].alias("what"),
        *_aggregations_of_kernel_group(),
        *(
            common_value_expression(name)
            for name in _COLUMNS_NULL_UNLESS_ALL_EQUAL
            if name not in _GROUPING_COLUMNS_BY_OPTION[by]
        ),
    )
    table = grouped.with_columns(
        share=pl.col("total") / everything,
        in_replay=pl.when(pl.col("replays") > 0).then(pl.col("replayed") / pl.col("replays")),
        replays=pl.when(pl.col("replays") > 0).then("replays"),
    ).sort("total", "first", descending=[True, False])
    chosen = table.select(pl.col(column.name).cast(column.dtype) for column in kernels.columns)
    return chosen.head(top) if top else chosen


def _kernel_runs(trace: Trace, *, only_counted_steps: bool) -> pl.DataFrame:
    """Returns one row for each run of a kernel, with every column by which rows can be grouped."""
    if not only_counted_steps:
        return _all_kernel_runs(trace)
    runs = _kernel_runs_without_graph_names(trace)
    begun = runs.select(pl.coalesce("launched", "start")).to_series().to_numpy()
    inside = is_instant_in_windows(begun, counted_step_windows(trace))
    # A graph is named after its first launch of the runs that are listed.
    return with_cuda_graph_names(trace, runs.filter(pl.Series(inside, dtype=pl.Boolean)))


@cached_per_trace
def _all_kernel_runs(trace: Trace) -> pl.DataFrame:
    return with_cuda_graph_names(trace, _kernel_runs_without_graph_names(trace))


@cached_per_trace
def _kernel_runs_without_graph_names(trace: Trace) -> pl.DataFrame:
    work = device_work(trace).filter(pl.col("kind").is_in(["kernel", "communication"]))
    operator = trace.slices["name"].gather(work["operator"]).cast(pl.String)
    site = source_sites_of_slices(trace, work["id"])
    return with_kernel_classes(with_launch_configurations(trace, work)).with_columns(
        operator=operator, **{name: site[name] for name in SOURCE_SITE_COLUMNS}
    )


def _aggregations_of_kernel_group() -> list[pl.Expr]:
    time, yes = pl.col("duration"), pl.col("tensor_cores")
    whole = pl.max_horizontal(time.sum(), 1)
    return [
        pl.len().alias("count"),
        time.sum().alias("total"),
        time.mean().alias("mean"),
        time.min().alias("min"),
        time.median().alias("median"),
        time.quantile(0.95, "nearest").alias("p95"),
        time.max().alias("max"),
        time.std().alias("std"),
        (time.filter(yes).sum() / whole).alias("tensor_core_share"),
        (time.filter(yes.is_null()).sum() / whole).alias("tensor_core_unknown"),
        *(_duration_weighted_mean(name) for name in _COLUMNS_AVERAGED_BY_DURATION),
        pl.col("occupancy").is_null().sum().alias("without_occupancy"),
        pl.col("replay")
        .n_unique()
        .sub(pl.col("replay").has_nulls().cast(pl.Int64))
        .alias("replays"),
        pl.col("replay").count().alias("replayed"),
        pl.col("id").first().alias("first"),
        pl.col("id").sort_by(time).last().alias("longest"),
    ]


def _duration_weighted_mean(column: str) -> pl.Expr:
    """Returns a Polars expression: a column's mean weighted by duration; null without values."""
    value, time = pl.col(column), pl.col("duration").filter(pl.col(column).is_not_null())
    return ((value * pl.col("duration")).sum() / pl.when(time.sum() > 0).then(time.sum())).alias(
        column
    )
