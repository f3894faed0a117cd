"""When each rank arrived at each collective, on one clock, and what it did before."""

from typing import Final

import polars as pl

from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.work_before_collectives import collectives_with_work_before
from selftime.schema import Column
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_ALL: Final = -1
"""Stands for no certain collective or step."""


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
        "work",
        pl.Int64,
        "ns",
        "The rank's own work since its previous collective, along its critical path.",
        True,
    ),
    Column(
        "longest",
        pl.String,
        "name",
        "The kind of the longest part of that work, such as compute or data; null if unknown.",
        True,
    ),
    Column(
        "name",
        pl.String,
        "name",
        "The slice of that part, such as a kernel or an operator; null if unknown.",
        True,
    ),
    Column("file", pl.String, "text", "The source file of that part; null if unknown.", True),
    Column("line", pl.Int32, "id", "The source line of that part; null if unknown.", True),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "cause",
        pl.String,
        "name",
        "On what the rank spent more time than the median of the others since the start of its "
        "previous collective: compute, gc, data or host; null if unknown, or on nothing.",
        True,
    ),
    Column("excess", pl.Float64, "ns", "By how much it spent more time on that.", True),
    Column(
        "id",
        pl.UInt32,
        "id",
        "The collective's slice id in the rank's trace; null if the rank has several traces.",
        True,
    ),
)
def arrivals(
    job: Ranks, *, number: int = _ALL, step: int = _ALL, top: RowLimit = 0
) -> pl.DataFrame:
    """Each collective on each rank: when the rank came, how long it waited, what it did before.

    The clock is that of one of the ranks; the others are aligned with it at the ends of
    collectives. Instants are since the begin of its recording. A collective that is found on one
    rank only has a number of its own. `number` keeps one collective, `step` those of one step, -1
    all; `top` keeps the first rows, 0 all.
    """
    rows, every = collectives_with_work_before(job), job.ranks_by_key()
    if not rows.height:
        return arrivals.table_of(pl.DataFrame())
    if number != _ALL:
        rows = rows.filter(pl.col("number") == number)
    if step != _ALL:
        rows = rows.filter(pl.col("step") == step)
    reference = collectives_on_one_clock(job).clocks.reference
    first = reference if reference is not None else min(every)
    of_ranks = pl.DataFrame(
        [(key, rank.label, rank.rank) for key, rank in every.items()],
        schema={"key": pl.Int64, "label": pl.String, "number_of_rank": pl.Int64},
        orient="row",
    )
    table = (
        rows.with_columns(
            duration=pl.col("end") - pl.col("start"),
            start=pl.col("start") - every[first].summary.origin,
        )
        .join(of_ranks, left_on="rank", right_on="key", how="left")
        .sort("number", "rank")
        .with_columns(rank="number_of_rank")
    )
    table = arrivals.table_of(table)
    return table.head(top) if top else table
