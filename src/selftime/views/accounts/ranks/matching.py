"""Which collectives of different ranks are one and the same.

Those of one process group are told apart by the number that the trace gives them. Where it gives
none they are counted: within each step, if the ranks name the same steps; else from the begin, if
every rank has as many. What does not agree in kind is not one collective, and stays unmatched.
"""

from typing import Final

import polars as pl

__all__ = ["matched"]

_GROUP: Final = ("group", "group_ranks")
"""A group's name is unique in a process; with its ranks it is so in the job."""


def matched(collectives: pl.DataFrame) -> pl.DataFrame:
    """The same rows with a column `match`: the same number on each rank that took part, else null.

    Args:
        collectives: One row for each rank and collective, of each rank in order of start. Columns:
            rank; group, group_ranks, group_size, sequence, collective, step, each null where the
            trace does not tell it. A step is a number that means the same on every rank.
    """
    rows = collectives.with_row_index("_row").with_columns(
        _seq=pl.col("sequence").is_not_null().all().over(*_GROUP),
        _stepped=pl.col("step").is_not_null().all().over(*_GROUP),
    )
    counted = pl.int_range(pl.len(), dtype=pl.Int64)
    rows = rows.with_columns(
        _first=pl.when("_seq").then("sequence").when("_stepped").then("step"),
        _next=pl.when("_seq")
        .then(counted.over("rank", *_GROUP, "sequence"))
        .when("_stepped")
        .then(counted.over("rank", *_GROUP, "step"))
        .otherwise(counted.over("rank", *_GROUP)),
    )
    key = (*_GROUP, "_first", "_next")
    rows = rows.with_columns(
        _kinds=pl.col("collective").n_unique().over(*key),
        _ranks=pl.col("rank").n_unique().over(*key),
        _told=pl.col("_seq") | _as_many(),
    )
    is_one = (pl.col("_kinds") == 1) & (pl.col("_ranks") > 1) & pl.col("_told")
    number = pl.struct(*key).rank("dense").cast(pl.Int64) - 1
    found = rows.with_columns(match=pl.when(is_one).then(number)).sort("_row")
    return found.select(*collectives.columns, "match")


def _as_many() -> pl.Expr:
    """Whether every rank has as many collectives of this group, in this step if steps are told."""
    among = (*_GROUP, pl.when("_stepped").then("step"))
    own = pl.len().over("rank", *among)
    return own.min().over(*among) == own.max().over(*among)
