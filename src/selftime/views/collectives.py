"""Collectives and exchanges between ranks: how much, how long, how fast, and what hides them."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.analysis.sites import SITE
from selftime.analysis.slice_filters import common_value
from selftime.names.collectives import axes_of_group, bus_factor
from selftime.schema import Column
from selftime.views.base import Top, view

_GROUP: Final = ("group", "group_ranks")
_KIND: Final = ("collective", *_GROUP)
_KEYS: Final = {
    "kind": _KIND,
    "group": _GROUP,
    "size": (*_KIND, "size"),
    "step": (*_KIND, "step"),
    "line": (*_KIND, *SITE),
    "collective": ("which",),
}
"""What rows are told apart by."""
_ALONE: Final = (
    *_KIND,
    "group_description",
    "group_size",
    "dtype",
    "size",
    "step",
    "sequence",
    *SITE,
)
"""Columns that a row has where all its collectives agree on it."""


@view(
    Column(
        "collective", pl.String, "name", "Its kind, such as allreduce; other if not told.", True
    ),
    Column("group", pl.String, "name", "The process group's name.", True),
    Column("group_size", pl.Int64, "count", "Ranks in the group.", True),
    Column("count", pl.Int64, "count", "How many there were."),
    Column("bytes", pl.Int64, "bytes", "Bytes of those that tell, as NCCL's tests count.", True),
    Column("time", pl.Int64, "ns", "Sum of their durations, waits included; mean of the ranks."),
    Column("wait", pl.Int64, "ns", "Of that: until the last rank had come; mean of them.", True),
    Column("transfer", pl.Int64, "ns", "Sum of the shortest duration of each on any rank.", True),
    Column(
        "bus_bandwidth", pl.Float64, "gb/s", "Bus bandwidth: that of each link of a ring.", True
    ),
    Column("hidden", pl.Float64, "ratio", "Share of the time that other work hides.", True),
    Column("share", pl.Float64, "ratio", "Share of the time of all of them."),
    Column("algorithm_bandwidth", pl.Float64, "gb/s", "Bytes by the time that they took.", True),
    Column("fastest", pl.Float64, "gb/s", "The greatest bus bandwidth of one of them.", True),
    Column("exposed", pl.Int64, "ns", "Of the time, while the device did nothing else.", True),
    Column("skew", pl.Int64, "ns", "The most that two ranks came apart.", True),
    Column(
        "last",
        pl.String,
        "name",
        "The rank that came last, if one, where it is known.",
        True,
    ),
    Column("shortest", pl.Int64, "ns", "The shortest duration: the last rank does not wait."),
    Column("median", pl.Float64, "ns", "Half of them took no longer."),
    Column("slowest", pl.Int64, "ns", "The greatest duration."),
    Column("ranks", pl.Int64, "count", "The most ranks whose traces show one of them."),
    Column("size", pl.Int64, "bytes", "Bytes of each, if all move as many.", True),
    Column("smallest", pl.Int64, "bytes", "The least bytes of one.", True),
    Column("largest", pl.Int64, "bytes", "The most bytes of one.", True),
    Column("dtype", pl.String, "name", "The elements' dtype, if one.", True),
    Column("step", pl.Int64, "id", "The step that issued them, if one.", True),
    Column("sequence", pl.Int64, "id", "Its number within the group, if told.", True),
    Column("file", pl.String, "text", "The source file that issued them, if one.", True),
    Column("line", pl.Int32, "id", "The source line, if one.", True),
    Column("function", pl.String, "name", "The function that the line is in.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("axis", pl.String, "name", "What the group divides: DP, TP, PP, EP, CP or all.", True),
    Column("group_description", pl.String, "name", "What the program calls the group.", True),
    Column("group_ranks", pl.String, "text", "The group's ranks, as written.", True),
    Column("untold", pl.Int64, "count", "Those of which no bytes are recorded."),
    Column("start", pl.Int64, "instant", "When the first of them began."),
    Column("longest", pl.UInt32, "id", "In one trace: the slice that took longest.", True),
    sums=("count", "bytes", "time", "wait", "transfer", "exposed", "untold"),
)
def collectives(
    job: Ranks,
    *,
    by: Literal["kind", "group", "size", "step", "line", "collective"] = "kind",
    counted: bool = False,
    top: Top = 0,
) -> pl.DataFrame:
    """Collectives by kind and process group, most time first.

    `by` puts kinds together, or adds their size, step or source line, or makes a row of each. Of
    several ranks the same collective counts once: matched by its group and number, else by its
    place in the step. Its **wait** is the mean over the ranks of the time until the last one had
    come, by clocks brought together at the ends of collectives; its **transfer** is the shortest
    duration on any rank, that of one that did not wait. Bandwidths are those of the transfer. One
    rank's trace shows wait and transfer as one, so that its bandwidths are lower bounds; the
    fastest one waited least. Algorithm bandwidth is bytes by time; bus bandwidth is what each link
    of a ring carries: 2 (n - 1) / n of that for an all-reduce of n ranks, (n - 1) / n for what
    gathers, scatters or exchanges (NCCL tests). `counted` keeps what was issued in the steps that
    count for medians, `top` the first rows; 0 keeps all.
    """
    found = _once(job, counted=counted)
    keys = _KEYS[by]
    alone = [common_value(name) for name in _ALONE if name not in keys]
    known = pl.col("last").drop_nulls()
    alone.append(pl.when(known.n_unique() == 1).then(known.first()).alias("last"))
    table = (
        found.group_by(keys, maintain_order=True)
        .agg(*_amounts(), *alone)
        .with_columns(share=pl.col("time") / pl.max_horizontal(pl.col("time").sum(), 1))
        .sort("time", "first", descending=[True, False])
        .with_columns(axis=_axes(pl.col("group_description")))
        .select(pl.col(column.name).cast(column.dtype) for column in collectives.columns)
    )
    return table.head(top) if top else table


def _axes(description: pl.Expr) -> pl.Expr:
    return description.map_elements(axes_of_group, return_dtype=pl.String)


def _once(job: Ranks, *, counted: bool) -> pl.DataFrame:
    """One row for each collective, whichever ranks recorded it, in order of its first start."""
    found, every = joined_ranks(job), job.by_key()
    rows = found.rows
    if counted:
        typical = pl.col("counted").fill_null(value=False)
        rows = rows.filter(typical if rows["counted"].any() else pl.col("place").is_not_null())
    labels = {key: rank.label for key, rank in every.items()}
    reference = found.clocks.reference
    zero = every[reference if reference is not None else min(every)].part.origin if every else 0
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
        pl.col(*_KIND, "group_description", "group_size", "dtype", "step", "sequence").first(),
        pl.col(*SITE).drop_nulls().first(),
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
    return table.with_columns(bus=_bus(table)).sort("start", "id", "which", maintain_order=True)


def _bus(found: pl.DataFrame) -> pl.Series:
    """Bytes that each of a ring's links carries for each of them; null where size or ranks are."""
    rows = found.select("collective", "group_size", "size").iter_rows()
    carried = [
        None if size is None or count is None else size * bus_factor(kind, count)
        for kind, count, size in rows
    ]
    return pl.Series(carried, dtype=pl.Float64)


def _amounts() -> list[pl.Expr]:
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
        _rate(size, taken).alias("algorithm_bandwidth"),
        _rate(bus, taken).alias("bus_bandwidth"),
        (bus.filter(ticks) / taken.filter(ticks)).max().alias("fastest"),
        pl.col("skew").max(),
        pl.col("shortest").min(),
        time.median().alias("median"),
        pl.col("slowest").max(),
        pl.col("ranks").max(),
        size.min().alias("smallest"),
        size.max().alias("largest"),
        size.is_null().sum().alias("untold"),
        pl.col("start").first().alias("first"),
        pl.col("id").sort_by(time, pl.col("id"), descending=[True, False]).first().alias("longest"),
        pl.col("start").min(),
    ]


def _rate(amount: pl.Expr, time: pl.Expr) -> pl.Expr:
    """Bytes by ns, which is GB by s, of those that tell both."""
    timed = amount.is_not_null() & (time > 0)
    return pl.when(timed.any()).then(amount.filter(timed).sum() / time.filter(timed).sum())
