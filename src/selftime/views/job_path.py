"""The critical path of a job: the chain of work and collectives that determines the job's time."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.ranks.job_critical_path import job_critical_path
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.slice_filters import common_value_expression
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.schema import Column
from selftime.views.view_declaration import LINE_EVIDENCE_DOC, view

_GROUPING_COLUMNS_BY_OPTION: Final = {
    "rank": ("rank", "kind"),
    "kind": ("kind",),
    "line": ("rank", "kind", "name", *SOURCE_SITE_COLUMNS),
    "section": ("section", "rank", "kind"),
}
"""Maps each value of the option `by` to the columns by which path segments are grouped into rows.
"""
_COLUMNS_NULL_UNLESS_ALL_EQUAL: Final = ("rank", "kind", "name", *SOURCE_SITE_COLUMNS, "section")


@view(
    Column(
        "label",
        pl.String,
        "name",
        "The name of the rank that the critical path runs through; null if several.",
        True,
    ),
    Column(
        "rank",
        pl.Int64,
        "id",
        "The number of the rank that the critical path runs through; null if unknown.",
        True,
    ),
    Column(
        "kind",
        pl.String,
        "name",
        "The kind of segment of the critical path: compute, data, communication and so on.",
        True,
    ),
    Column("time", pl.Int64, "ns", "Time that the row's segments take on the critical path."),
    Column(
        "share", pl.Float64, "ratio", "The row's time as a share of the time of the whole path."
    ),
    Column("count", pl.Int64, "count", "The number of segments of the critical path in the row."),
    Column(
        "name",
        pl.String,
        "name",
        "The name of the slice with the most time, or of the collective; null if several.",
        True,
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file of the slice with the most time; null if unknown or several.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The source line of the slice with the most time; null if unknown or several.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column("how", pl.String, "name", LINE_EVIDENCE_DOC, True),
    Column(
        "section",
        pl.Int64,
        "id",
        "The number of the section between two collectives, counted from the end; null if several.",
        True,
    ),
    sums=("time", "count"),
)
def job_path(
    job: Ranks, *, by: Literal["rank", "kind", "line", "section"] = "rank"
) -> pl.DataFrame:
    """The critical path of a job across its ranks, most time first.

    From when the last rank was done with the last step it goes back along that rank's own critical
    path to its previous collective; over the transfer of that collective to the rank that came last
    to it, because all others waited for it; and so on. Work that is not on the path could take
    longer without slowing the job. Kinds are those of `critical_path`; communication is transfer,
    without waits for ranks. `by` groups by kind alone, by rank, by line, or lists the sections
    between collectives, from the end. With only one rank's trace the path stays on that rank, and
    waits for others count as communication.
    """
    every = {key: (rank.label, rank.rank) for key, rank in job.ranks_by_key().items()}
    found = job_critical_path(job)
    keys = _GROUPING_COLUMNS_BY_OPTION[by]
    alone = [
        common_value_expression(name) for name in _COLUMNS_NULL_UNLESS_ALL_EQUAL if name not in keys
    ]
    table = found.group_by(keys, maintain_order=True).agg(
        pl.col("time").sum(), pl.len().alias("count"), *alone
    )
    labels = {key: label for key, (label, _) in every.items()}
    numbers = {key: number for key, (_, number) in every.items()}
    table = table.with_columns(
        share=pl.col("time") / pl.max_horizontal(pl.col("time").sum(), 1),
        label=pl.col("rank").replace_strict(labels, default=None, return_dtype=pl.String),
        rank=pl.col("rank").replace_strict(numbers, default=None, return_dtype=pl.Int64),
    )
    order = ("section", "time") if by == "section" else ("time", "rank", "kind")
    falling = [name == "time" for name in order]
    table = table.sort(order, descending=falling, nulls_last=True, maintain_order=True)
    return table.select(pl.col(column.name).cast(column.dtype) for column in job_path.columns)
