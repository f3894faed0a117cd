"""The account of a job: what a mean step of all ranks was spent on, with the range over ranks."""

from typing import Any, Final

import polars as pl

from selftime.analysis.account.time_classes import TIME_CLASSES
from selftime.analysis.ranks.job_ranks import Ranks

_RANK_ACCOUNT_SCHEMA: Final[dict[Any, Any]] = {
    "class": pl.String,
    "rank": pl.Int64,
    "time": pl.Float64,
}
_JOB_ACCOUNT_SCHEMA: Final[dict[Any, Any]] = {
    "class": pl.String,
    "mean": pl.Float64,
    "low": pl.Float64,
    "low_rank": pl.Int64,
    "high": pl.Float64,
    "high_rank": pl.Int64,
}


def step_accounts_of_ranks(ranks: Ranks) -> pl.DataFrame:
    """Returns what each rank's mean step was spent on, as recorded.

    Columns: class; rank, a key of `ranks_by_key`; time in ns a step, 0 where the rank spends none
    on the class. Ranks without steps are left out.
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
            "class",
            rank=pl.lit(key, pl.Int64),
            time=pl.col("time").fill_null(0) / summary.accounted_steps,
        )
        for key, summary in told.items()
    ]
    return pl.concat(tables) if tables else pl.DataFrame(schema=_RANK_ACCOUNT_SCHEMA)


def job_account(ranks: Ranks) -> pl.DataFrame:
    """Returns what a mean step was spent on, one row per class of time, most first; times in ns.

    Columns: class; mean, over the ranks, so that the rows add up to the mean of the ranks' mean
    steps; low and high, the least and the most time of a rank, and low_rank and high_rank, the
    keys of these ranks. A rank that spends nothing on a class has 0. Ranks without steps are left
    out; times are as recorded.
    """
    table = step_accounts_of_ranks(ranks)
    time, rank = pl.col("time"), pl.col("rank")
    table = table.group_by("class", maintain_order=True).agg(
        mean=time.mean(),
        low=time.min(),
        low_rank=rank.get(time.arg_min()),
        high=time.max(),
        high_rank=rank.get(time.arg_max()),
    )
    spent = table.filter(pl.col("high") > 0).sort("mean", descending=True, maintain_order=True)
    return spent.cast(_JOB_ACCOUNT_SCHEMA)
