"""Collectives and exchanges between ranks: how much, how long, how fast, and what hides them."""

from typing import Final, Literal

import polars as pl

from selftime.errors import UsageError
from selftime.names.collectives import bus_share
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.accounts.named import agreed
from selftime.views.accounts.ranks import collectives as ranks
from selftime.views.accounts.sites import SITE, sites
from selftime.views.accounts.steps.judging import counted_windows, is_within
from selftime.views.base import view

__all__ = ["collectives"]

_KIND: Final = ("collective", "group", "group_ranks")
_KEYS: Final = {
    "kind": _KIND,
    "size": (*_KIND, "size"),
    "step": (*_KIND, "step"),
    "line": (*_KIND, *SITE),
    "collective": ("id",),
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
    Column("collective", pl.String, "name", "Its kind, such as allreduce; other if not told."),
    Column("group", pl.String, "name", "The process group's name.", True),
    Column("group_size", pl.Int64, "count", "Ranks in the group.", True),
    Column("count", pl.Int64, "count", "How many this rank took part in."),
    Column("bytes", pl.Int64, "bytes", "Bytes of those that tell, as NCCL's tests count.", True),
    Column("time", pl.Int64, "ns", "Sum of their durations, waits for other ranks included."),
    Column("bus_bandwidth", pl.Float64, "gb/s", "That of each link of a ring, at the least.", True),
    Column("hidden", pl.Float64, "ratio", "Share of the time that other work hides.", True),
    Column("share", pl.Float64, "ratio", "Share of the time of all of them."),
    Column("algorithm_bandwidth", pl.Float64, "gb/s", "Bytes by time, at the least.", True),
    Column("fastest", pl.Float64, "gb/s", "The greatest bus bandwidth of one of them.", True),
    Column("exposed", pl.Int64, "ns", "Of that, while the device worked on nothing else.", True),
    Column("shortest", pl.Int64, "ns", "The least duration: who comes last waits for nobody."),
    Column("median", pl.Float64, "ns", "Half of them took no longer."),
    Column("slowest", pl.Int64, "ns", "The greatest duration."),
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
    Column("group_description", pl.String, "name", "What the program calls the group.", True),
    Column("group_ranks", pl.String, "text", "The group's ranks, as written.", True),
    Column("untold", pl.Int64, "count", "Those of which no bytes are recorded."),
    Column("start", pl.Int64, "instant", "When the first of them began."),
    Column("longest", pl.UInt32, "id", "The slice of the one that took longest."),
    sums=("count", "bytes", "time", "exposed", "untold"),
)
def collectives(
    trace: Trace,
    *,
    by: Literal["kind", "size", "step", "line", "collective"] = "kind",
    counted: bool = False,
    top: int = 0,
) -> pl.DataFrame:
    """Collectives of this rank by kind and process group, most time first.

    `by` adds their size, step or source line, or makes a row of each. What one rank's trace shows
    of a collective is its transfer and the wait for ranks that came later, so bandwidths are lower
    bounds; the fastest one waited least. Algorithm bandwidth is bytes by time; bus bandwidth is
    what each link of a ring carries: 2 (n - 1) / n of that for an all-reduce of n ranks,
    (n - 1) / n for what gathers, scatters or exchanges (NCCL tests). `counted` keeps what was
    issued in the steps that count for medians, `top` the first rows; 0 keeps all.
    """
    if top < 0:
        raise UsageError(f"`top` is `{top}`; write how many rows to keep, or 0 for all")
    found = ranks.collectives(trace).with_columns(duration=pl.col("end") - pl.col("start"))
    if counted:
        begun = found["issued"].to_numpy()
        found = found.filter(pl.Series(is_within(begun, counted_windows(trace)), dtype=pl.Boolean))
    found = found.hstack(sites(trace, found["id"])).with_columns(bus=_bus(found))
    found = found.rename({"bytes": "size"})
    keys = _KEYS[by]
    alone = [agreed(name) for name in _ALONE if name not in keys]
    table = (
        found.group_by(keys, maintain_order=True)
        .agg(*_amounts(), *alone)
        .with_columns(share=pl.col("time") / pl.max_horizontal(pl.col("time").sum(), 1))
        .sort("time", "first", descending=[True, False])
        .select(pl.col(column.name).cast(column.dtype) for column in collectives.columns)
    )
    return table.head(top) if top else table


def _bus(found: pl.DataFrame) -> pl.Series:
    """Bytes that each of a ring's links carries for each of them; null where size or ranks are."""
    rows = found.select("collective", "group_size", "bytes").iter_rows()
    carried = [
        None if size is None or count is None else size * bus_share(kind, count)
        for kind, count, size in rows
    ]
    return pl.Series(carried, dtype=pl.Float64)


def _amounts() -> list[pl.Expr]:
    size, time, bus = pl.col("size"), pl.col("duration"), pl.col("bus")
    ticks = time > 0
    known = size.count() > 0
    seen = pl.col("exposed").count() > 0
    return [
        pl.len().alias("count"),
        pl.when(known).then(size.sum()).alias("bytes"),
        time.sum().alias("time"),
        pl.when(seen).then(pl.col("exposed").sum()).alias("exposed"),
        pl.when(seen & (time.sum() > 0))
        .then(1 - pl.col("exposed").sum() / time.filter(pl.col("exposed").is_not_null()).sum())
        .alias("hidden"),
        _rate(size, time).alias("algorithm_bandwidth"),
        _rate(bus, time).alias("bus_bandwidth"),
        (bus.filter(ticks) / time.filter(ticks)).max().alias("fastest"),
        time.min().alias("shortest"),
        time.median().alias("median"),
        time.max().alias("slowest"),
        size.min().alias("smallest"),
        size.max().alias("largest"),
        size.is_null().sum().alias("untold"),
        pl.col("id").first().alias("first"),
        pl.col("id").sort_by(time, pl.col("id"), descending=[True, False]).first().alias("longest"),
        pl.col("start").min(),
    ]


def _rate(amount: pl.Expr, time: pl.Expr) -> pl.Expr:
    """Bytes by ns, which is GB by s, of those that tell both."""
    timed = amount.is_not_null() & (time > 0)
    return pl.when(timed.any()).then(amount.filter(timed).sum() / time.filter(timed).sum())
