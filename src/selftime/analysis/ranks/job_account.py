"""The account of a job: what a mean step of all ranks was spent on, with the range over ranks.

Communication is told by what its process group is for: tensor, context, pipeline, expert or data
parallel. What a rank waits in it for those that come later is told apart from the transfer.
"""

from typing import Any, Final

import polars as pl

from selftime.analysis.account.time_classes import TIME_CLASSES
from selftime.analysis.ranks.communication_groups import communication_groups
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock

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


_GROUP_SCHEMA: Final[dict[Any, Any]] = {
    "group": pl.String,
    "time": pl.Float64,
    "waiting": pl.Float64,
}


def communication_by_group(ranks: Ranks) -> pl.DataFrame:
    """Returns the communication of a mean step by process group, most first; times in ns.

    Columns: group, what it is for, such as `TP` or `DP`, else its description, `MESSAGES` for those
    between two ranks, or null where the account does not tell the collective; time, the mean over
    the ranks, so that the rows add up to the communication in `job_account`; waiting, how much of
    it passes until the last rank of the collective has come, 0 where that is unknown.
    """
    steps = {
        key: rank.summary.accounted_steps
        for key, rank in ranks.ranks_by_key().items()
        if rank.summary.accounted_steps
    }
    rows = collectives_on_one_clock(ranks).rows
    if not rows.height or not steps:
        return pl.DataFrame(schema=_GROUP_SCHEMA)
    per_step = pl.col("accounted") / pl.col("rank").replace_strict(steps, default=None)
    waiting = pl.min_horizontal("wait", "accounted").fill_null(0) / pl.col("accounted")
    told = (
        rows.with_columns(group=communication_groups(rows))
        .filter(pl.col("rank").is_in(list(steps)) & (pl.col("accounted") > 0))
        .group_by("group")
        .agg(time=per_step.sum() / len(steps), waiting=(per_step * waiting).sum() / len(steps))
    )
    whole = job_account(ranks).filter(pl.col("class") == "communication")["mean"].sum()
    rest = float(whole) - float(told["time"].sum())
    if rest > 0:
        untold = pl.DataFrame([(None, rest, 0.0)], _GROUP_SCHEMA, orient="row")
        told = pl.concat([told, untold]).group_by("group").agg(pl.all().sum())
    return told.sort("time", descending=True).cast(_GROUP_SCHEMA)
