"""Finds the place of compilations and of iterators of DataLoaders in a run."""

import polars as pl

from selftime import names
from selftime.run import Run


def compilations_with_sites(run: Run) -> pl.DataFrame:
    """Returns `run_compilations` with the user's line in place of a library's, and more columns.

    definition: The compiled function's file, line and name, as one text.
    how: `definition` where the compiled function is the user's own; `stack` where it is a library's
        and a stack was read in the same segment; null where no line of the user's is known.
    """
    segments = run.segments.select(pl.col("id").alias("segment"), pl.col("start").alias("begun"))
    files = run.compilations["file"].to_list()
    own = [file is not None and names.is_users_file(file) for file in files]
    definition = pl.concat_str("file", "line", "function", separator=":", ignore_nulls=True)
    placed = run.compilations.with_row_index("number").with_columns(
        pl.Series("own", own, pl.Boolean), definition.alias("definition")
    )
    placed = placed.sort("start", nulls_last=True).join_asof(
        segments, left_on="start", right_on="begun", strategy="backward"
    )
    joined = placed.join(_lines_that_compile(run), on="segment", how="left").sort("number")
    place = [
        pl.when("own").then(pl.col(name)).otherwise(pl.col(f"seen_{name}")).alias(name)
        for name in ("file", "line")
    ]
    is_seen = pl.col("seen_file").is_not_null()
    how = pl.when("own").then(pl.lit("definition")).when(is_seen).then(pl.lit("stack"))
    told = joined.with_columns(*place, how.alias("how"))
    return told.select(*run.compilations.columns, "definition", "how")


def _lines_that_compile(run: Run) -> pl.DataFrame:
    """Returns for each segment the line that was seen compiling for longest."""
    compiling = run.readings.filter(pl.col("part").cast(pl.String) == "compile")
    longest = compiling.drop_nulls("file").sort("duration", descending=True, maintain_order=True)
    return longest.group_by("segment", maintain_order=True).agg(
        pl.col("file").first().alias("seen_file"), pl.col("line").first().alias("seen_line")
    )


def iterators_with_segments(run: Run) -> pl.DataFrame:
    """Returns `run_iterators` in order with the segment's number and `epoch_boundary` in ns."""
    segments = run.segments.select(
        pl.col("id").alias("segment"), pl.col("start").alias("begun"), "epoch_boundary"
    )
    return run.iterators.sort("start").join_asof(
        segments, left_on="start", right_on="begun", strategy="backward"
    )
