"""Tells what each rank did before each collective, and on what it spent more than the others."""

from typing import Final

import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.lateness import (
    collectives_with_rounds,
    median_of_other_rows_in_group,
)
from selftime.analysis.ranks.rank_summary import LATENESS_CAUSES
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS

_OWN_WORK_COLUMNS: Final = ("work", "longest", "name", *SOURCE_SITE_COLUMNS)
_MESSAGES: Final = ("send", "recv")
"""Collectives between two ranks, which do different work before it."""


@cached_per_trace
def collectives_with_work_before(ranks: Ranks) -> pl.DataFrame:
    """Returns the rows of `collectives_on_one_clock` with their number and the work before them.

    Added columns: number, in order of time, the same on all ranks of a collective; work, the rank's
    own work in ns since the previous collective, by its critical path; longest, the kind of the
    longest segment of it; name and source line of that segment, in place of the collective's own;
    cause, the one of `LATENESS_CAUSES` that the rank spent more time on than the median of the
    others, and excess, by how many ns, both null if that is unknown or no cause took more.
    """
    rows = collectives_on_one_clock(ranks).rows
    if not rows.height:
        return rows
    every = ranks.ranks_by_key()
    own_work = pl.concat(
        every[key].summary.arrivals.select(_OWN_WORK_COLUMNS) for key in sorted(every)
    )
    rows = rows.drop(SOURCE_SITE_COLUMNS).hstack(own_work).hstack(_excess_by_row(ranks))
    which = pl.coalesce("match", -1 - pl.int_range(pl.len(), dtype=pl.Int64))
    return (
        rows.with_columns(which=which)
        .with_columns(begun=pl.col("start").min().over("which"))
        .with_columns(number=pl.struct("begun", "which").rank("dense").cast(pl.Int64) - 1)
        .drop("begun", "which")
    )


def _excess_by_row(ranks: Ranks) -> pl.DataFrame:
    """Returns for each row the cause that took more than on the other ranks, and by how many ns."""
    rows = collectives_with_rounds(ranks).select("row", "match", "collective", *LATENESS_CAUSES)
    is_compared = pl.col("match").is_not_null() & ~pl.col("collective").is_in(_MESSAGES)
    told = rows.filter(is_compared.fill_null(value=False))
    more = told.select("row").with_columns(
        (
            told[cause].cast(pl.Float64) - median_of_other_rows_in_group(told, cause, ("match",))
        ).alias(cause)
        for cause in LATENESS_CAUSES
    )
    most = pl.max_horizontal(LATENESS_CAUSES)
    cause = pl.coalesce(
        pl.when(pl.col(one) == pl.col("excess")).then(pl.lit(one)) for one in LATENESS_CAUSES
    )
    found = more.select("row", *LATENESS_CAUSES, excess=pl.when(most > 0).then(most))
    found = found.select("row", "excess", cause=pl.when(pl.col("excess") > 0).then(cause))
    every = rows.select("row").sort("row")
    return every.join(found, on="row", how="left", maintain_order="left").drop("row")
