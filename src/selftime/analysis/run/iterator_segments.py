"""Says in which segment of a run each iterator of a DataLoader was made."""

import polars as pl

from selftime.run import Run


def iterators_with_segments(run: Run) -> pl.DataFrame:
    """Returns `run_iterators` in order with the segment's number and `epoch_boundary` in ns."""
    segments = run.segments.select(
        pl.col("id").alias("segment"), pl.col("start").alias("begun"), "epoch_boundary"
    )
    return run.iterators.sort("start").join_asof(
        segments, left_on="start", right_on="begun", strategy="backward"
    )
