"""Each collective of a job: which rank came last, how long the others waited, and why."""

from typing import Final

import polars as pl

from selftime.analysis.ranks.communication_groups import communication_groups
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.work_before_collectives import collectives_with_work_before
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.schema import Column
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, RowLimit, view

_OF_THE_LAST_RANK: Final = (
    "rank",
    "step",
    "work",
    "longest",
    "name",
    *SOURCE_SITE_COLUMNS,
    "cause",
    "excess",
)


@view(
    Column("number", pl.Int64, "id", "The collective's number in order of time, as in `arrivals`."),
    Column("collective", pl.String, "name", "The kind of collective, such as allreduce.", True),
    Column(
        "group",
        pl.String,
        "name",
        "What the process group is for, such as DP, else its description; null if unknown.",
        True,
    ),
    Column("step", pl.Int64, "id", "The step that issued it on the last rank; null if none.", True),
    Column("ranks", pl.Int64, "count", "How many ranks took part in it."),
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the first rank began it, by the common clock of all ranks.",
    ),
    Column("wait", pl.Int64, "ns", "How long the first rank waited for the last one."),
    Column("mean_wait", pl.Float64, "ns", "How long the other ranks waited on average."),
    Column("transfer", pl.Int64, "ns", "The collective's shortest duration on any rank."),
    Column("label", pl.String, "name", "The name of the rank that came last."),
    Column("rank", pl.Int64, "id", "The number of the rank that came last.", True),
    Column("bytes", pl.Int64, "bytes", "The bytes that it moved; null if unknown.", True),
    Column(
        "work",
        pl.Int64,
        "ns",
        "The last rank's own work since its previous collective, along its critical path.",
        True,
    ),
    Column("longest", pl.String, "name", "The kind of the longest part of that work.", True),
    Column("name", pl.String, "name", "The slice of that part; null if unknown.", True),
    Column("file", pl.String, "text", "The source file of that part; null if unknown.", True),
    Column("line", pl.Int32, "id", "The source line of that part; null if unknown.", True),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "cause",
        pl.String,
        "name",
        "On what the last rank spent more time than the median of the others; null if unknown.",
        True,
    ),
    Column("excess", pl.Float64, "ns", "By how much it spent more time on that.", True),
)
def collective_waits(job: Ranks, *, top: RowLimit = 0) -> pl.DataFrame:
    """Each collective of a job: which rank came last, and how long the others waited for it.

    Those with the longest mean wait come first. Collectives that are found on one rank only, or on
    ranks whose clocks are unknown, are left out: who waited in them is not known. `arrivals` has
    all ranks of a collective. `top` keeps the first rows, 0 all.
    """
    rows, every = collectives_with_work_before(job), job.ranks_by_key()
    if not rows.height:
        return collective_waits.table_of(pl.DataFrame())
    reference = collectives_on_one_clock(job).clocks.reference
    origin = every[reference if reference is not None else min(every)].summary.origin
    rows = rows.with_columns(group=communication_groups(rows))
    rows = rows.filter(pl.col("match").is_not_null() & pl.col("wait").is_not_null())
    last = pl.col("start").arg_max()
    table = rows.group_by("number").agg(
        pl.col("collective", "group", "bytes", "transfer").first(),
        *(pl.col(name).get(last) for name in _OF_THE_LAST_RANK),
        ranks=pl.len(),
        wait=pl.col("wait").max(),
        mean_wait=pl.col("wait").sum() / (pl.len() - 1),
        start=pl.col("start").min() - origin,
    )
    labels = {key: rank.label for key, rank in every.items()}
    numbers = {key: rank.rank for key, rank in every.items()}
    table = table.with_columns(
        label=pl.col("rank").replace_strict(labels, default=None, return_dtype=pl.String),
        rank=pl.col("rank").replace_strict(numbers, default=None, return_dtype=pl.Int64),
    )
    table = table.sort("mean_wait", "number", descending=[True, False])
    table = collective_waits.table_of(table)
    return table.head(top) if top else table
