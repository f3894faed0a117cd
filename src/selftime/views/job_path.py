"""What a job waits for: the chain of ranks, work and exchanges that makes its steps so long."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.ranks import job_path as path
from selftime.analysis.ranks.ranks import Ranks
from selftime.analysis.sites import SITE
from selftime.analysis.slice_filters import common_value
from selftime.schema import Column
from selftime.views.base import view

_KEYS: Final = {
    "rank": ("rank", "kind"),
    "kind": ("kind",),
    "line": ("rank", "kind", "name", *SITE),
    "leg": ("leg", "rank", "kind"),
}
"""What rows are told apart by."""
_ALONE: Final = ("rank", "kind", "name", *SITE, "leg")


@view(
    Column("label", pl.String, "name", "The rank that the path leads over, if one.", True),
    Column("rank", pl.Int64, "id", "Its number, if it is known.", True),
    Column("kind", pl.String, "name", "What it is: compute, data, communication and so on.", True),
    Column("time", pl.Int64, "ns", "How much of the path it is."),
    Column("share", pl.Float64, "ratio", "Share of the path."),
    Column("count", pl.Int64, "count", "Pieces of the path."),
    Column(
        "name", pl.String, "name", "The slice that is most of it, if one; or the collective.", True
    ),
    Column("file", pl.String, "text", "The source file of that, if one.", True),
    Column("line", pl.Int32, "id", "The source line.", True),
    Column("function", pl.String, "name", "The function that the line is in.", True),
    Column("how", pl.String, "name", "How the line is known: stack, stamp or definition.", True),
    Column("leg", pl.Int64, "id", "Which leg of the way, from the end, if one.", True),
    sums=("time", "count"),
)
def job_path(job: Ranks, *, by: Literal["rank", "kind", "line", "leg"] = "rank") -> pl.DataFrame:
    """The critical path of a job across its ranks, most time first.

    From when the last rank was done with the last step it leads back along that rank's own critical
    path to the collective that it came from; over the transfer of that one to the rank that came
    last to it, as all others waited for it; and so on. What is not on it can take longer and the
    job gets no slower. Kinds are those of `critical_path`; communication is transfer, without waits
    for ranks. `by` puts ranks together, or tells lines apart, or has the legs one by one, from the
    end. Of one rank's trace it leads over that alone, and waits for others count as communication.
    """
    every = {key: (rank.label, rank.rank) for key, rank in job.by_key().items()}
    found = path.job_path(job)
    keys = _KEYS[by]
    alone = [common_value(name) for name in _ALONE if name not in keys]
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
    order = ("leg", "time") if by == "leg" else ("time", "rank", "kind")
    falling = [name == "time" for name in order]
    table = table.sort(order, descending=falling, nulls_last=True, maintain_order=True)
    return table.select(pl.col(column.name).cast(column.dtype) for column in job_path.columns)
