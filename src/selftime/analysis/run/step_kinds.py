"""Sums up the steps of a run by kind: how many there are, how long they take, how many are slow."""

import polars as pl

from selftime.analysis.run.slow_steps import steps_of_run
from selftime.run import Run


def timed_steps(run: Run) -> pl.DataFrame:
    """Returns the steps that tell how long steps of their kind take, with two more columns.

    kind: The name of the kind, as text.
    own: The duration without selftime's own work, in ns.

    Steps that a profiler recorded are left out, for that slows them down, unless all of their kind
    were recorded.
    """
    steps = steps_of_run(run).with_columns(
        pl.col("kind").cast(pl.String), (pl.col("duration") - pl.col("recording")).alias("own")
    )
    is_all = pl.col("recorded").all().over("kind")
    return steps.filter(~pl.col("recorded") | is_all)


def step_kinds(run: Run) -> pl.DataFrame:
    """Returns a row for each kind of step, the kind with most time first. Times are in ns.

    kind: The name of the kind.
    count: The number of steps.
    median, p95: The median and the 95th percentile of how long `timed_steps` took.
    data_wait: The mean time that these waited for data.
    total: The durations of all steps together.
    slow: The number of slow steps.
    excess: How much longer the slow steps took than the median, together.
    recorded: The number of steps that a profiler recorded.
    covered: The time of the run that the recorded steps stand for: all steps of the kind if one of
        them was recorded, else 0.
    file, line: The loop whose iterations are the steps; null if it is not known.
    """
    recorded = pl.col("recorded").sum().cast(pl.Int64)
    total = pl.col("duration").sum()
    kinds = (
        steps_of_run(run)
        .group_by(pl.col("kind").cast(pl.String))
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            total.alias("total"),
            (pl.col("excess") > 0).sum().cast(pl.Int64).alias("slow"),
            pl.col("excess").sum().alias("excess"),
            recorded.alias("recorded"),
            pl.when(recorded > 0).then(total).otherwise(0).alias("covered"),
        )
        .sort("total", "kind", descending=[True, False])
    )
    timed = (
        timed_steps(run)
        .group_by("kind")
        .agg(
            pl.col("own").median().alias("median"),
            pl.col("own").quantile(0.95).alias("p95"),
            pl.col("data_wait").mean(),
        )
    )
    kinds = kinds.join(timed, on="kind", how="left", maintain_order="left")
    lines = [(kind, file, line) for kind, (file, line) in run.loop_lines.items()]
    known = pl.DataFrame(
        lines, schema={"kind": pl.String, "file": pl.String, "line": pl.Int32}, orient="row"
    )
    return kinds.join(known, on="kind", how="left", maintain_order="left")
