"""Collectives between ranks: sizes, times, bandwidths, and the share hidden by other work."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.names.collectives import bus_bandwidth_factor, parallel_axes_of_group
from selftime.schema import Column
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_PROCESS_GROUP_COLUMNS: Final = ("group", "group_ranks")
_KIND_AND_GROUP_COLUMNS: Final = ("collective", *_PROCESS_GROUP_COLUMNS)
_GROUPING_COLUMNS_BY_OPTION: Final = {
    "kind": _KIND_AND_GROUP_COLUMNS,
    "group": _PROCESS_GROUP_COLUMNS,
    "size": (*_KIND_AND_GROUP_COLUMNS, "size"),
    "step": (*_KIND_AND_GROUP_COLUMNS, "step"),
    "line": (*_KIND_AND_GROUP_COLUMNS, *SOURCE_SITE_COLUMNS),
    "collective": ("which",),
}
"""Maps each value of the option `by` to the columns by which collectives are grouped into rows."""
_COLUMNS_NULL_UNLESS_ALL_EQUAL: Final = (
    *_KIND_AND_GROUP_COLUMNS,
    "group_description",
    "group_size",
    "dtype",
    "size",
    "step",
    "sequence",
    *SOURCE_SITE_COLUMNS,
)
"""Columns that are null in a row unless all its collectives have the same value."""


@view(
    Column(
        "collective",
        pl.String,
        "name",
        "The kind of collective, such as allreduce; `other` if unknown.",
        True,
    ),
    Column("group", pl.String, "name", "The process group's name; null if unknown.", True),
    Column(
        "group_size", pl.Int64, "count", "The number of ranks in the group; null if unknown.", True
    ),
    Column("count", pl.Int64, "count", "The number of collectives in the row."),
    Column(
        "bytes",
        pl.Int64,
        "bytes",
        "Total bytes of collectives of known size, as NCCL's tests count them.",
        True,
    ),
    Column(
        "time",
        pl.Int64,
        "ns",
        "Sum of the collectives' durations including waits, averaged over the ranks.",
    ),
    Column(
        "wait",
        pl.Int64,
        "ns",
        "The part of `time` in which the last rank had not begun, averaged over the ranks.",
        True,
    ),
    Column(
        "transfer",
        pl.Int64,
        "ns",
        "Sum over collectives of the shortest duration on any rank.",
        True,
    ),
    Column(
        "bus_bandwidth",
        pl.Float64,
        "gb/s",
        "Bus bandwidth: `bytes` over `transfer`, scaled to what each link of a ring carries.",
        True,
    ),
    Column(
        "hidden",
        pl.Float64,
        "ratio",
        "Share of the collectives' time during which other device work ran.",
        True,
    ),
    Column(
        "share", pl.Float64, "ratio", "The row's time as a share of the time of all collectives."
    ),
    Column(
        "algorithm_bandwidth",
        pl.Float64,
        "gb/s",
        "Algorithm bandwidth: bytes divided by transfer time.",
        True,
    ),
    Column(
        "fastest",
        pl.Float64,
        "gb/s",
        "The highest bus bandwidth of a single collective in the row.",
        True,
    ),
    Column(
        "exposed",
        pl.Int64,
        "ns",
        "The part of `time` during which the device ran nothing but the collectives.",
        True,
    ),
    Column(
        "skew",
        pl.Int64,
        "ns",
        "The longest time from the first rank's start of a collective to the last rank's start.",
        True,
    ),
    Column(
        "last",
        pl.String,
        "name",
        "The rank that began the collectives last; null if unknown or not always the same rank.",
        True,
    ),
    Column(
        "shortest",
        pl.Int64,
        "ns",
        "The duration of the shortest collective: that of a rank that did not wait.",
    ),
    Column("median", pl.Float64, "ns", "The median duration of the collectives."),
    Column("slowest", pl.Int64, "ns", "The duration of the longest collective."),
    Column(
        "ranks",
        pl.Int64,
        "count",
        "The highest number of ranks whose traces contain the same collective.",
    ),
    Column(
        "size",
        pl.Int64,
        "bytes",
        "Bytes of each collective; null if the collectives differ in size.",
        True,
    ),
    Column("smallest", pl.Int64, "bytes", "Bytes of the smallest collective.", True),
    Column("largest", pl.Int64, "bytes", "Bytes of the largest collective.", True),
    Column(
        "dtype",
        pl.String,
        "name",
        "The data type of the collectives' elements; null if several.",
        True,
    ),
    Column("step", pl.Int64, "id", "The step that issued the collectives; null if several.", True),
    Column(
        "sequence",
        pl.Int64,
        "id",
        "The collective's number within its group; null if unknown.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file that issued the collectives; null if several.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line that issued the collectives; null if several.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "axis",
        pl.String,
        "name",
        "The kind of parallelism that the process group serves: DP, TP, PP, EP, CP or all.",
        True,
    ),
    Column(
        "group_description",
        pl.String,
        "name",
        "The process group's description, as the program gave it.",
        True,
    ),
    Column(
        "group_ranks",
        pl.String,
        "text",
        "The ranks in the process group, as text in the trace's format.",
        True,
    ),
    Column("without_bytes", pl.Int64, "count", "The number of collectives without recorded bytes."),
    Column("start", pl.Int64, "instant", "When the first collective of the row began."),
    Column(
        "longest",
        pl.UInt32,
        "id",
        "The slice id of the longest collective; null if the row covers several traces.",
        True,
    ),
    sums=("count", "bytes", "time", "wait", "transfer", "exposed", "without_bytes"),
)
def collectives(
    job: Ranks,
    *,
    by: Literal["kind", "group", "size", "step", "line", "collective"] = "kind",
    counted: bool = False,
    top: RowLimit = 0,
) -> pl.DataFrame:
    """Collectives by kind and process group, most time first.

    `by` groups by kind alone, adds size, step or source line, or makes a row for each. A collective
    of several ranks counts once: the ranks' records are matched by group and number, else by the
    position in the step. Its **wait** is the mean over the ranks of the time until the last one
    came, by clocks aligned at the ends of collectives; its **transfer** is the shortest duration on
    any rank, which is that of a rank that did not wait. Bandwidths are those of the transfer. One
    rank's trace does not separate wait and transfer, so its bandwidths are lower bounds; the
    fastest collective waited least. Algorithm bandwidth is bytes divided by time; bus bandwidth is
    what each link of a ring carries: 2 (n - 1) / n of that for an all-reduce of n ranks, (n - 1) /
    n for gather, scatter and exchange (NCCL tests). `counted` keeps collectives that were issued in
    the steps that count for medians, `top` the first rows; 0 keeps all.
    """
    found = _collectives_merged_across_ranks(job, only_counted_steps=counted)
    keys = _GROUPING_COLUMNS_BY_OPTION[by]
    alone = [
        common_value_expression(name) for name in _COLUMNS_NULL_UNLESS_ALL_EQUAL if name not in keys
    ]
    known = pl.col("last").drop_nulls()
    alone.append(pl.when(known.n_unique() == 1).then(known.first()).alias("last"))
    table = (
        found.group_by(keys, maintain_order=True)
        .agg(*_aggregations_of_collective_group(), *alone)
        .with_columns(share=pl.col("time") / pl.max_horizontal(pl.col("time").sum(), 1))
        .sort("time", "first", descending=[True, False])
        .with_columns(axis=_parallelism_axes_of_groups(pl.col("group_description")))
        .select(pl.col(column.name).cast(column.dtype) for column in collectives.columns)
    )
    return table.head(top) if top else table


def _parallelism_axes_of_groups(group_description: pl.Expr) -> pl.Expr:
    return group_description.map_elements(parallel_axes_of_group, return_dtype=pl.String)


def _collectives_merged_across_ranks(job: Ranks, *, only_counted_steps: bool) -> pl.DataFrame:
    """Returns one row per collective, merged from all ranks' records, in order of start."""
    found, every = collectives_on_one_clock(job), job.ranks_by_key()
    rows = found.rows
    if only_counted_steps:
        typical = pl.col("counted").fill_null(value=False)
        rows = rows.filter(typical if rows["counted"].any() else pl.col("place").is_not_null())
    labels = {key: rank.label for key, rank in every.items()}
    reference = found.clocks.reference
    zero = every[reference if reference is not None else min(every)].summary.origin if every else 0
    duration = pl.col("end") - pl.col("start")
    rows = rows.with_columns(
        which=pl.coalesce("match", -1 - pl.int_range(pl.len(), dtype=pl.Int64)),
        duration=duration,
        start=pl.col("start") - zero,
        label=pl.col("rank").replace_strict(labels, return_dtype=pl.String, default=None),
    )
    both = pl.len() > 1
    timed = both & pl.col("wait").is_not_null().all()
    table = rows.group_by("which").agg(
        pl.col(
            *_KIND_AND_GROUP_COLUMNS, "group_description", "group_size", "dtype", "step", "sequence"
        ).first(),
        pl.col(*SOURCE_SITE_COLUMNS).drop_nulls().first(),
        pl.col("bytes").max().alias("size"),
        pl.col("duration").mean().round().cast(pl.Int64),
        pl.col("duration").min().alias("shortest"),
        pl.col("duration").max().alias("slowest"),
        pl.col("exposed").mean().round().cast(pl.Int64),
        pl.when(timed).then(pl.col("wait").mean().round()).cast(pl.Int64).alias("wait"),
        pl.when(timed).then(pl.col("wait").max()).alias("skew"),
        pl.when(both).then(pl.col("transfer").first()).alias("transfer"),
        pl.when(timed).then(pl.col("label").filter("last").first()).alias("last"),
        pl.len().alias("ranks"),
        pl.col("start").min(),
        pl.when(pl.len() == 1).then(pl.col("id").first()).alias("id"),
    )
    table = table.with_columns(taken=pl.coalesce("transfer", "duration"))
    return table.with_columns(bus=_bytes_per_ring_link(table)).sort(
        "start", "id", "which", maintain_order=True
    )


def _bytes_per_ring_link(table: pl.DataFrame) -> pl.Series:
    """Returns the bytes that each collective sends over one link of a ring; null if unknown."""
    rows = table.select("collective", "group_size", "size").iter_rows()
    carried = [
        None if size is None or count is None else size * bus_bandwidth_factor(kind, count)
        for kind, count, size in rows
    ]
    return pl.Series(carried, dtype=pl.Float64)


def _aggregations_of_collective_group() -> list[pl.Expr]:
    size, time, bus, taken = (pl.col(name) for name in ("size", "duration", "bus", "taken"))
    ticks = taken > 0
    seen = pl.col("exposed").count() > 0
    return [
        pl.len().alias("count"),
        pl.when(size.count() > 0).then(size.sum()).alias("bytes"),
        time.sum().alias("time"),
        *(
            pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
            for name in ("wait", "transfer", "exposed")
        ),
        pl.when(seen & (time.sum() > 0))
        .then(1 - pl.col("exposed").sum() / time.filter(pl.col("exposed").is_not_null()).sum())
        .alias("hidden"),
        _bandwidth_in_bytes_per_ns(size, taken).alias("algorithm_bandwidth"),
        _bandwidth_in_bytes_per_ns(bus, taken).alias("bus_bandwidth"),
        (bus.filter(ticks) / taken.filter(ticks)).max().alias("fastest"),
        pl.col("skew").max(),
        pl.col("shortest").min(),
        time.median().alias("median"),
        pl.col("slowest").max(),
        pl.col("ranks").max(),
        size.min().alias("smallest"),
        size.max().alias("largest"),
        size.is_null().sum().alias("without_bytes"),
        pl.col("start").first().alias("first"),
        pl.col("id").sort_by(time, pl.col("id"), descending=[True, False]).first().alias("longest"),
        pl.col("start").min(),
    ]


def _bandwidth_in_bytes_per_ns(size: pl.Expr, time: pl.Expr) -> pl.Expr:
    """Returns a Polars expression: bytes per ns (GB/s), of rows where size and time are known."""
    timed = size.is_not_null() & (time > 0)
    return pl.when(timed.any()).then(size.filter(timed).sum() / time.filter(timed).sum())
