"""Kernels by time: how often each ran, how it was launched, and what it ran on."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.device.kernel_attributes import with_graphs, with_grids, with_meanings
from selftime.analysis.device.work import device_work
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import common_value
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import Top, view

_LAUNCH: Final = ("grid", "block", "registers", "shared_memory")
_KEYS: Final = {
    "name": ("name",),
    "launch": ("name", "operator", *_LAUNCH),
    "operator": ("operator",),
    "line": SITE,
    "class": ("class",),
    "stream": ("device", "stream"),
    "graph": ("graph",),
}
"""What rows are told apart by."""
_ALONE: Final = (
    "name",
    "class",
    "tensor_cores",
    "device",
    "stream",
    "operator",
    *SITE,
    *_LAUNCH,
    "graph",
)
"""Columns that a row has where all its kernels agree on it."""
_LABEL: Final = {
    "name": pl.col("short").first(),
    "launch": pl.col("short").first(),
    "operator": pl.col("operator").first(),
    "line": pl.format(
        "{}:{} {}", pl.col("file").str.extract(r"([^/\\]*)$"), "line", "function"
    ).first(),
    "class": pl.col("class").first(),
    "stream": pl.format("device {}, stream {}", "device", "stream").first(),
    "graph": pl.col("graph").first(),
}
"""What a row is, in a few words; null where that is not known."""
_WEIGHTED: Final = ("blocks_per_sm", "warps_per_sm", "occupancy")


@view(
    Column("what", pl.String, "name", "The kernel's short name, or what else the row is.", True),
    Column(
        "class", pl.String, "name", "What it does, as far as its name tells, such as gemm.", True
    ),
    Column("graph", pl.String, "name", "The graph that replays it, if one does.", True),
    Column("replays", pl.Int64, "count", "Launches of graphs that it was part of.", True),
    Column("in_replay", pl.Float64, "count", "Runs in each of those, on average.", True),
    Column("count", pl.Int64, "count", "How many times it ran."),
    Column("total", pl.Int64, "ns", "Sum of the runs' durations, side by side or not."),
    Column("share", pl.Float64, "ratio", "Of the sum over all kernels."),
    Column("mean", pl.Float64, "ns", "Duration of a run, on average."),
    Column("min", pl.Int64, "ns", "The shortest run."),
    Column("median", pl.Float64, "ns", "Half of the runs took no longer."),
    Column("p95", pl.Float64, "ns", "95 % of the runs took no longer."),
    Column("max", pl.Int64, "ns", "The longest run."),
    Column("std", pl.Float64, "ns", "Standard deviation of the durations, of the sample.", True),
    Column("tensor_cores", pl.Boolean, "flag", "Whether it uses them, if its name tells.", True),
    Column("tensor_core_share", pl.Float64, "ratio", "Time in kernels known to use them."),
    Column("tensor_core_unknown", pl.Float64, "ratio", "Time in kernels whose name does not say."),
    Column("operator", pl.String, "name", "The operator that launched it, if one did.", True),
    Column("file", pl.String, "text", "The source file of the launch, if there is one.", True),
    Column("line", pl.Int32, "id", "The source line of the launch, if there is one.", True),
    Column("function", pl.String, "name", "The function that the line is in.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("blocks_per_sm", pl.Float64, "count", "Blocks for each SM, weighted by time.", True),
    Column("warps_per_sm", pl.Float64, "count", "Warps for each SM, weighted by time.", True),
    Column("occupancy", pl.Float64, "percent", "Estimated achieved, weighted by time.", True),
    Column("occupancy_untold", pl.Int64, "count", "Runs of which no occupancy is recorded."),
    Column("grid", pl.String, "text", "Blocks in x, y, z, if all runs have them alike.", True),
    Column("block", pl.String, "text", "Threads of a block in x, y, z, if all alike.", True),
    Column("registers", pl.Int32, "count", "Registers of a thread, if all alike.", True),
    Column("shared_memory", pl.Int64, "bytes", "Shared memory of a block, if all alike.", True),
    Column("device", pl.Int32, "id", "The device, if all runs were on one.", True),
    Column("stream", pl.Int64, "id", "The stream, if all runs were on one.", True),
    Column("first", pl.Int64, "id", "The slice in which it ran first."),
    Column("longest", pl.Int64, "id", "The slice of its longest run."),
    Column("name", pl.String, "name", "The kernel's name as the trace writes it.", True),
    needs=("device",),
    sums=("count", "total", "occupancy_untold"),
)
def kernels(
    trace: Trace,
    *,
    by: Literal["name", "launch", "operator", "line", "class", "stream", "graph"] = "name",
    counted: bool = False,
    top: Top = 0,
) -> pl.DataFrame:
    """Kernels and collectives, most time first; copies and fills are in `copies`.

    `by` says what a row is: all runs of a name, of a launch (name, operator, grid, block, registers
    and shared memory), of an operator, a source line, a class, a stream, or a graph. A row has the
    columns on which all its runs agree. Every run is counted, also those that ran side by side, so
    the totals add up to the sum of durations and may exceed the time that passed. `counted` keeps
    what was launched in the steps that count for medians, `top` the first rows; 0 keeps all.
    """
    runs = _runs(trace, counted=counted)
    everything = max(int(runs["duration"].sum()), 1)
    grouped = runs.group_by(_KEYS[by], maintain_order=True).agg(
        _LABEL[by].alias("what"),
        *_amounts(),
        *(common_value(name) for name in _ALONE if name not in _KEYS[by]),
    )
    table = grouped.with_columns(
        share=pl.col("total") / everything,
        in_replay=pl.when(pl.col("replays") > 0).then(pl.col("replayed") / pl.col("replays")),
        replays=pl.when(pl.col("replays") > 0).then("replays"),
    ).sort("total", "first", descending=[True, False])
    chosen = table.select(pl.col(column.name).cast(column.dtype) for column in kernels.columns)
    return chosen.head(top) if top else chosen


def _runs(trace: Trace, *, counted: bool) -> pl.DataFrame:
    """One row for each run of a kernel, with all that can be grouped by."""
    work = device_work(trace).filter(pl.col("kind").is_in(["kernel", "communication"]))
    if counted:
        begun = pl.coalesce("launched", "start")
        inside = is_within(work.select(begun).to_series().to_numpy(), counted_windows(trace))
        work = work.filter(pl.Series(inside, dtype=pl.Boolean))
    operator = trace.slices["name"].gather(work["operator"]).cast(pl.String)
    site = sites(trace, work["id"])
    runs = with_meanings(with_grids(trace, work)).with_columns(
        operator=operator, **{name: site[name] for name in SITE}
    )
    return with_graphs(trace, runs)


def _amounts() -> list[pl.Expr]:
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
        *(_weighted(name) for name in _WEIGHTED),
        pl.col("occupancy").is_null().sum().alias("occupancy_untold"),
        pl.col("replay")
        .n_unique()
        .sub(pl.col("replay").has_nulls().cast(pl.Int64))
        .alias("replays"),
        pl.col("replay").count().alias("replayed"),
        pl.col("id").first().alias("first"),
        pl.col("id").sort_by(time).last().alias("longest"),
    ]


def _weighted(name: str) -> pl.Expr:
    """The mean over the runs that have it, by their durations; null if none has."""
    value, time = pl.col(name), pl.col("duration").filter(pl.col(name).is_not_null())
    return ((value * pl.col("duration")).sum() / pl.when(time.sum() > 0).then(time.sum())).alias(
        name
    )
