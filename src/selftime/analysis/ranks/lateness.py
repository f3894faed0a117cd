"""How late each rank came to what all of them do together, round by round, and what held it up.

A round is what one step does on all ranks. In each, a rank is as late as at that collective to
which it came latest, against the middle of the others. What held it up is what it did more of, from
collective to collective, than the middle of the others: who waits does not have more to do.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.ranks.aligned_collectives import Joined
from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.analysis.ranks.time_before import AMOUNTS, CAUSES

FEWEST: Final = 3
"""Rounds; of fewer there is no telling what varies."""


def middle_of_others(rows: pl.DataFrame, column: str, within: tuple[str, ...]) -> pl.Series:
    """For each row the median of the other rows of its group; null if there is none.

    And null in a group in which a value is null. Costs as much as to sort the rows.
    """
    group = rows.select(pl.struct(within).rank("dense")).to_series().to_numpy()
    value = rows[column].to_numpy().astype(np.float64)  # null is NaN, and sorts last
    order = np.lexsort((value, group))
    first = np.flatnonzero(np.diff(group[order], prepend=0))
    size = np.diff(np.append(first, group.size))
    begin, others = np.repeat(first, size), np.repeat(size - 1, size)
    own = np.arange(group.size) - begin
    sorted_ = value[order]
    low, high = (begin + at + (at >= own) for at in ((others - 1) // 2, others // 2))
    some = np.flatnonzero(others > 0)
    middle = np.full(group.size, np.nan)
    middle[order[some]] = (sorted_[low[some]] + sorted_[high[some]]) / 2
    tainted = np.isin(group, group[np.isnan(value)])
    return pl.Series(np.where(tainted, np.nan, middle)).fill_nan(None)


@cached_per_trace
def rounds(ranks: Ranks) -> pl.DataFrame:
    """One row for each rank and round that counts, in that order. Times in ns.

    Columns: rank, the key of `Ranks.by_key`; round; collectives, those that it took part in; last,
    to how many it came last; late, by how much it came later than the middle of the others, at that
    collective at which it was most; waited, how long it waited itself, in several at once only
    once; held, how long the others waited on average where it came last; transfer; each of
    `CAUSES`, the time that it spent on that since the round before; and more_ and the cause, how
    much more that is than the middle of the others. What is not known is null. Rounds that some
    ranks did not record do not count, nor those whose step stands in no median on one of them, if
    enough others are left.
    """
    rows = _counting(with_rounds(ranks).drop_nulls("round").filter(pl.col("wait").is_not_null()))
    rows = rows.with_columns(lag=pl.col("start") - pl.col("start").min().over("match"))
    rows = rows.with_columns(
        late=pl.col("lag") - middle_of_others(rows, "lag", ("match",)),
        by=pl.col("rank").filter("last").first().over("match"),
    )
    held = (
        rows.filter(pl.col("by") != pl.col("rank"))
        .group_by("by", "round")
        .agg(held=pl.col("waited").sum() / pl.col("rank").n_unique())
        .rename({"by": "rank"})
    )
    table = rows.group_by("rank", "round").agg(
        pl.len().cast(pl.Int64).alias("collectives"),
        pl.col("last").sum().cast(pl.Int64),
        pl.col("late").max(),
        pl.col("waited").sum(),
        pl.col("transfer").sum(),
        *(pl.when(pl.col(c).count() == pl.len()).then(pl.col(c).sum()).alias(c) for c in CAUSES),
    )
    table = table.join(held, on=("rank", "round"), how="left").with_columns(
        pl.col("held").fill_null(0.0)
    )
    more = {
        f"more_{c}": table[c].cast(pl.Float64) - middle_of_others(table, c, ("round",))
        for c in CAUSES
    }
    return table.with_columns(**more).sort("rank", "round")


@cached_per_trace
def with_rounds(ranks: Ranks) -> pl.DataFrame:
    """The rows of `Joined`, with the round of each, null if unknown; waited; and each of `CAUSES`.

    Waited is its wait without what an earlier collective of its rank waited for at the same time. A
    cause is the time in ns that its rank spent on it since the start of the collective before; null
    for the first. A round's number is that of the profiler's step where every rank tells it, else
    counts the steps of the rank whose clock is the common one.
    """
    found = joined_ranks(ranks)
    rows = _waited(_worked(found.rows))
    matched = rows.filter(pl.col("match").is_not_null())
    if matched.height and matched["step"].null_count() == 0:
        return rows.with_columns(round=pl.when(pl.col("match").is_not_null()).then("step"))
    return rows.with_columns(round=_by_time(ranks, found, rows))


def excess(ranks: Ranks, key: int, cause: str) -> NDArray[np.float64]:
    """How much more a rank spent on a cause until each of its collectives than the others, in ns.

    One of `CAUSES`; from the start of the collective before, against the middle of the others that
    took part. Shape (n,), in the order of the rank's own rows; 0 where it is not known.
    """
    rows = with_rounds(ranks).with_columns(
        at=pl.int_range(pl.len()).over("rank"), spent=pl.col(cause).cast(pl.Float64)
    )
    shared = rows.filter(pl.col("match").is_not_null())
    shared = shared.with_columns(
        more=pl.col("spent") - middle_of_others(shared, "spent", ("match",))
    )
    own = rows.filter(pl.col("rank") == key).select("at")
    mine = shared.filter(pl.col("rank") == key).select("at", "more")
    both = own.join(mine, on="at", how="left").sort("at")
    return both["more"].fill_nan(0).fill_null(0).to_numpy()


def _worked(rows: pl.DataFrame) -> pl.DataFrame:
    """With what the rank spent on each cause since the collective before of the same recording."""
    if not rows.height:
        return rows.with_columns(pl.lit(None, pl.Int64).alias(cause) for cause in CAUSES)
    rows = rows.sort("rank", "window", "start", maintain_order=True)
    since = {name: pl.col(f"{name}_start").diff().over("rank", "window") for name in AMOUNTS}
    left = pl.col("start").diff().over("rank", "window") - pl.sum_horizontal(
        *since.values(), ignore_nulls=False
    )
    return rows.with_columns(**{name: since.get(name, left) for name in CAUSES})


def _waited(rows: pl.DataFrame) -> pl.DataFrame:
    """With what each waited while no earlier one of its rank did."""
    until = pl.col("start") + pl.col("wait")
    before = until.fill_null(strategy="forward").cum_max().shift(1).over("rank", "window")
    begun = pl.max_horizontal("start", before)
    return rows.with_columns(waited=(until - begun).clip(lower_bound=0))


def _by_time(ranks: Ranks, found: Joined, rows: pl.DataFrame) -> pl.Series:
    """The step of the reference in which the first rank issued each collective."""
    reference = found.clocks.reference
    if reference is None:
        return pl.Series("round", [None] * rows.height, pl.Int64)
    part = ranks.by_key()[reference].part
    begun = found.clocks.of[reference].read(part.steps["begin"].to_numpy() + part.origin)
    first = rows.select(pl.col("issued").min().over("match")).to_series().to_numpy()
    at = pl.Series("round", np.searchsorted(np.sort(begun), first, side="right") - 1)
    unknown = (at < 0) | rows["match"].is_null()
    return at.cast(pl.Int64).set(unknown, None)


def _counting(rows: pl.DataFrame) -> pl.DataFrame:
    """Those of rounds that every rank recorded, and that are typical on all of them."""
    if not rows.height:
        return rows
    present = pl.col("rank").n_unique().over("round")
    rows = rows.filter(present == present.max())
    typical = rows.filter(pl.col("counted").fill_null(value=True).all().over("round"))
    return typical if typical["round"].n_unique() >= FEWEST else rows
