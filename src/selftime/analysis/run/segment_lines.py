"""Finds the line that stacks show for longest in some segments of a run's ledger."""

from typing import Any

import polars as pl

from selftime.run import Run


def longest_line_of_segments(
    run: Run, segments: pl.Series, *, not_in: pl.Series | None = None
) -> dict[str, Any] | None:
    """Returns the line that stacks show for longest in the segments with the given ids.

    A row with file, line and function; None where no stack was read in them. Time in which a
    checkpoint was written is left out, and so are lines that are seen in the segments `not_in`.
    """
    read = run.readings.filter(
        pl.col("segment").is_in(segments.implode())
        & pl.col("file").is_not_null()
        & (pl.col("part").cast(pl.String) != "checkpoint")
    )
    if not_in is not None:
        place = ["file", "line"]
        elsewhere = [
            table.filter(pl.col("segment").is_in(not_in.implode())).select(place)
            for table in (run.readings, run.samples)
        ]
        read = read.join(pl.concat(elsewhere).unique(), on=place, how="anti", maintain_order="left")
    seen = (
        read.group_by("file", "line", "function", maintain_order=True)
        .agg(pl.col("duration").sum())
        .sort("duration", descending=True, maintain_order=True)
    )
    return seen.row(0, named=True) if seen.height else None
