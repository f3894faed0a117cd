"""When each rank came to each collective, by one clock: who waited for whom, one by one."""

import polars as pl

from selftime.analysis.ranks.ranks import Ranks, joined_ranks
from selftime.schema import Column
from selftime.views.base import Top, view


@view(
    Column("number", pl.Int64, "id", "The same on all ranks that took part; in order of time."),
    Column("collective", pl.String, "name", "Its kind, such as allreduce.", True),
    Column("label", pl.String, "name", "What the rank is called."),
    Column("start", pl.Int64, "instant", "When the rank came to it, by the common clock."),
    Column("duration", pl.Int64, "ns", "From then to its end."),
    Column("wait", pl.Int64, "ns", "Of that: until the last rank had come.", True),
    Column("transfer", pl.Int64, "ns", "The shortest duration on any of its ranks.", True),
    Column("last", pl.Boolean, "flag", "Whether the rank came last.", True),
    Column("step", pl.Int64, "id", "The step that issued it, as the profiler counts.", True),
    Column("group", pl.String, "name", "The process group's name.", True),
    Column("sequence", pl.Int64, "id", "Its number within the group, if told.", True),
    Column("bytes", pl.Int64, "bytes", "Its bytes, as NCCL's tests count.", True),
    Column("rank", pl.Int64, "id", "The rank's number, if it is known.", True),
    Column("id", pl.UInt32, "id", "The slice in the rank's trace, if it has one trace.", True),
)
def arrivals(job: Ranks, *, top: Top = 0) -> pl.DataFrame:
    """Each collective of each rank: when it came, how long it waited for the last one to come.

    The clock is that of one of the ranks, the others are brought together with it at the ends of
    collectives; instants are from the begin of its recording. Collectives of which no other rank's
    is found have a number of their own. `top` keeps the first rows, 0 all.
    """
    found, every = joined_ranks(job), job.by_key()
    empty = pl.DataFrame(schema={column.name: column.dtype for column in arrivals.columns})
    if not found.rows.height:
        return empty
    first = found.clocks.reference if found.clocks.reference is not None else min(every)
    of_ranks = pl.DataFrame(
        [(key, rank.label, rank.rank) for key, rank in every.items()],
        schema={"key": pl.Int64, "label": pl.String, "number_of_rank": pl.Int64},
        orient="row",
    )
    which = pl.coalesce("match", -1 - pl.int_range(pl.len(), dtype=pl.Int64))
    rows = (
        found.rows.with_columns(which=which, duration=pl.col("end") - pl.col("start"))
        .with_columns(pl.col("start") - every[first].part.origin)
        .with_columns(begun=pl.col("start").min().over("which"))
        .join(of_ranks, left_on="rank", right_on="key", how="left")
        .with_columns(number=pl.struct("begun", "which").rank("dense").cast(pl.Int64) - 1)
        .sort("number", "rank")
        .with_columns(rank="number_of_rank")
    )
    table = rows.select(pl.col(column.name).cast(column.dtype) for column in arrivals.columns)
    return table.head(top) if top else table
