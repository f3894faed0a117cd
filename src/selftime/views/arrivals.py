"""When each rank arrived at each collective, on one clock, and how long it waited."""

import polars as pl

from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.schema import Column
from selftime.views.view_declaration import RowLimit, view


@view(
    Column(
        "number",
        pl.Int64,
        "id",
        "The collective's number in order of time; the same on all of its ranks.",
    ),
    Column("collective", pl.String, "name", "The kind of collective, such as allreduce.", True),
    Column("label", pl.String, "name", "The name of the rank that took part in the collective."),
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the rank began the collective, by the common clock of all ranks.",
    ),
    Column("duration", pl.Int64, "ns", "Time from the rank's start to the collective's end."),
    Column(
        "wait",
        pl.Int64,
        "ns",
        "The part of `duration` in which the last rank had not begun; null if unknown.",
        True,
    ),
    Column(
        "transfer",
        pl.Int64,
        "ns",
        "The collective's shortest duration on any rank; null if unknown.",
        True,
    ),
    Column(
        "last",
        pl.Boolean,
        "flag",
        "Whether this rank was the last to begin the collective; null if unknown.",
        True,
    ),
    Column(
        "step",
        pl.Int64,
        "id",
        "The profiler's number of the step that issued the collective; null if unknown.",
        True,
    ),
    Column("group", pl.String, "name", "The process group's name; null if unknown.", True),
    Column(
        "sequence",
        pl.Int64,
        "id",
        "The collective's number within its group; null if unknown.",
        True,
    ),
    Column(
        "bytes",
        pl.Int64,
        "bytes",
        "The bytes that the collective moved, as NCCL's tests count them; null if unknown.",
        True,
    ),
    Column(
        "rank",
        pl.Int64,
        "id",
        "The number of the rank that took part in the collective; null if unknown.",
        True,
    ),
    Column(
        "id",
        pl.UInt32,
        "id",
        "The collective's slice id in the rank's trace; null if the rank has several traces.",
        True,
    ),
)
def arrivals(job: Ranks, *, top: RowLimit = 0) -> pl.DataFrame:
    """Each collective on each rank: when the rank arrived, and how long it waited for the last one.

    The clock is that of one of the ranks; the others are aligned with it at the ends of
    collectives. Instants are since the begin of its recording. A collective that is found on one
    rank only has a number of its own. `top` keeps the first rows, 0 all.
    """
    found, every = collectives_on_one_clock(job), job.ranks_by_key()
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
        .with_columns(pl.col("start") - every[first].summary.origin)
        .with_columns(begun=pl.col("start").min().over("which"))
        .join(of_ranks, left_on="rank", right_on="key", how="left")
        .with_columns(number=pl.struct("begun", "which").rank("dense").cast(pl.Int64) - 1)
        .sort("number", "rank")
        .with_columns(rank="number_of_rank")
    )
    table = rows.select(pl.col(column.name).cast(column.dtype) for column in arrivals.columns)
    return table.head(top) if top else table
