"""The account of a job: what a mean step of all ranks was spent on, with the range over ranks."""

from typing import Any, Final

import polars as pl

from selftime.analysis.account.time_classes import TIME_CLASSES
from selftime.analysis.ranks.job_ranks import Ranks

_JOB_ACCOUNT_SCHEMA: Final[dict[Any, Any]] = {
    "class": pl.String,
    "mean": pl.Float64,
    "low": pl.Float64,
    "low_rank": pl.Int64,
    "high": pl.Float64,
    "high_rank": pl.Int64,
}


def job_account(ranks: Ranks) -> pl.DataFrame:
    """Returns what a mean step was spent on, one row per class of time, most first; times in ns.

    Columns: class; mean, over the ranks, so that the rows add up to the mean of the ranks' mean
    steps; low and high, the least and the most time of a rank, and low_rank and high_rank, the
    keys of these ranks. A rank that spends nothing on a class has 0. Ranks without steps are left
    out; times are as recorded.
    """
    told = {
        key: rank.summary
        for key, rank in ranks.ranks_by_key().items()
        if rank.summary.accounted_steps
    }
    tables = [
        pl.DataFrame({"class": TIME_CLASSES})
        .join(summary.account, on="class", how="left")
        .select(
            "class", rank=pl.lit(key), time=pl.col("time").fill_null(0) / summary.accounted_steps
        )
        for key, summary in told.items()
    ]
    if not tables:
        return pl.DataFrame(schema=_JOB_ACCOUNT_SCHEMA)
    time, rank = pl.col("time"), pl.col("rank")
    table = (
        pl.concat(tables)
        .group_by("class", maintain_order=True)
        .agg(
            mean=time.mean(),
            low=time.min(),
            low_rank=rank.get(time.arg_min()),
            high=time.max(),
            high_rank=rank.get(time.arg_max()),
        )
    )
    spent = table.filter(pl.col("high") > 0).sort("mean", descending=True, maintain_order=True)
    return spent.cast(_JOB_ACCOUNT_SCHEMA)
