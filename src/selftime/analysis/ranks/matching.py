"""Which collectives of different ranks are one and the same.

Those of one process group are told apart by the number that the trace gives them. Where it gives
none, those of one kind and size are counted: within each step, if the ranks name the same steps;
else from that on which ends nearest by the ranks' own clocks, which machines keep to a few
milliseconds; and where these are not told from the begin, if every rank has as many. What does not
agree in kind is not one collective, and stays unmatched.
"""

from typing import Final

import numpy as np
import polars as pl

from selftime.arrays import Ints

_GROUP: Final = ("group", "group_ranks")
"""A group's name is unique in a process; with its ranks it is so in the job."""
_ALIKE: Final = (*_GROUP, "collective", "bytes")
_AROUND: Final = 3
"""Places that are tried around the nearest."""


def matched(collectives: pl.DataFrame) -> pl.DataFrame:
    """The same rows with a column `match`: the same number on each rank that took part, else null.

    Args:
        collectives: One row for each rank and collective, of each rank in order of start. Columns:
            rank; end, in ns since 1970 by the rank's clock; dated, whether that is known; and
            group, group_ranks, group_size, sequence, collective, bytes, step, each null where the
            trace does not tell it. A step is a number that means the same on every rank.
    """
    rows = collectives.with_row_index("_row").with_columns(
        _seq=pl.col("sequence").is_not_null().all().over(*_GROUP),
        _stepped=pl.col("step").is_not_null().all().over(*_GROUP),
        _dated=pl.col("dated").all().over(*_GROUP),
    )
    counted = pl.int_range(pl.len(), dtype=pl.Int64)
    numbered, stepped = pl.col("_seq"), ~pl.col("_seq") & pl.col("_stepped")
    timed = ~pl.col("_seq") & ~pl.col("_stepped") & pl.col("_dated")
    rows = rows.with_columns(_timed=timed).with_columns(
        _first=pl.when(numbered).then("sequence").when(stepped).then("step"),
        _kind=pl.when(~numbered).then("collective"),
        _size=pl.when(~numbered).then("bytes"),
        _next=pl.when(numbered)
        .then(counted.over("rank", *_GROUP, "sequence"))
        .when(stepped)
        .then(counted.over("rank", *_ALIKE, "step"))
        .otherwise(counted.over("rank", *_ALIKE)),
    )
    rows = rows.with_columns(_next=pl.col("_next") + _shifts(rows))
    key = (*_GROUP, "_first", "_kind", "_size", "_next")
    rows = rows.with_columns(
        _kinds=pl.col("collective").n_unique().over(*key),
        _ranks=pl.col("rank").n_unique().over(*key),
        _told=pl.col("_seq") | pl.col("_timed") | _as_many(),
    )
    is_one = (pl.col("_kinds") == 1) & (pl.col("_ranks") > 1) & pl.col("_told")
    number = pl.struct(*key).rank("dense").cast(pl.Int64) - 1
    found = rows.with_columns(match=pl.when(is_one).then(number)).sort("_row")
    return found.select(*collectives.columns, "match")


def _as_many() -> pl.Expr:
    """Whether every rank has as many of this kind in its group, in this step if steps are told."""
    among = (*_ALIKE, pl.when("_stepped").then("step"))
    own = pl.len().over("rank", *among)
    every = pl.col("rank").n_unique().over(*among) == pl.col("rank").n_unique().over(*_GROUP)
    return (own.min().over(*among) == own.max().over(*among)) & every


def _shifts(rows: pl.DataFrame) -> pl.Series:
    """What to add to the places of those that only time tells apart, for them to be the same."""
    shift = np.zeros(rows.height, np.int64)
    for alike in rows.filter("_timed").partition_by(*_ALIKE, maintain_order=True):
        ranks = sorted(alike.partition_by("rank", maintain_order=True), key=lambda one: -one.height)
        longest = ranks[0]["end"].to_numpy()
        for own in ranks[1:]:
            shift[own["_row"].to_numpy()] = _nearest(own["end"].to_numpy(), longest)
    return pl.Series(shift)


def _nearest(own: Ints, other: Ints) -> int:
    """By how many places `own` lies further in `other`, so that their ends are nearest."""
    first = round(float(np.median(np.searchsorted(np.sort(other), own) - np.arange(own.size))))
    apart: dict[int, float] = {}
    for shift in range(first - _AROUND, first + _AROUND + 1):
        low, high = max(0, -shift), min(own.size, other.size - shift)
        if low < high:
            away = np.abs(own[low:high] - other[low + shift : high + shift])
            apart[shift] = float(np.median(away))
    return min(apart, key=lambda shift: (apart[shift], abs(shift)), default=0)
