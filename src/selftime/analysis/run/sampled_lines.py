"""Tells from samples at which lines the program is in a usual step without recording."""

from typing import Final

import polars as pl

from selftime.analysis.run.slow_steps import steps_of_run
from selftime.run import Run

_Z_OF_95_PERCENT: Final = 1.96
"""Standard score of a 95 % interval."""

_LINE: Final = ("part", "file", "line", "function")
"""Columns that tell one place from another."""


def sampled_lines(run: Run) -> pl.DataFrame:
    """Returns a row for each line at which usual steps were sampled, by kind, most samples first.

    kind: The name of the kind of step.
    part: The activity; `program` is the user's own code.
    file, line, function: The innermost line of the user's code; null if there is none.
    samples: The number of samples.
    share, low, high: The line's share of a usual step, and its 95 % interval by Wilson.
    per_step: The time in ns that this is of the mean usual step.
    """
    kinds = pl.col("kind").cast(pl.String)
    usual = steps_of_run(run).filter((pl.col("excess") == 0) & ~pl.col("recorded"))
    usual = usual.select("id", kinds, own=pl.col("duration") - pl.col("recording"))
    mean = usual.group_by("kind").agg(pl.col("own").mean().alias("step"))
    samples = run.samples.with_columns(pl.col("part").cast(pl.String)).join(
        usual, left_on="segment", right_on="id", how="inner"
    )
    counts = samples.group_by("kind", *_LINE, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("samples")
    )
    whole = pl.col("samples").sum().over("kind")
    share = pl.col("samples") / whole
    z2 = _Z_OF_95_PERCENT**2
    middle, scale = share + z2 / (2 * whole), 1 + z2 / whole
    reach = _Z_OF_95_PERCENT * (share * (1 - share) / whole + z2 / (4 * whole**2)).sqrt()
    return (
        counts.with_columns(
            share.alias("share"),
            ((middle - reach) / scale).clip(0.0, 1.0).alias("low"),
            ((middle + reach) / scale).clip(0.0, 1.0).alias("high"),
        )
        .join(mean, on="kind", how="left", maintain_order="left")
        .with_columns((pl.col("share") * pl.col("step")).alias("per_step"))
        .drop("step")
        .sort("samples", "kind", *_LINE, descending=[True, *[False] * 5], maintain_order=True)
    )


def samples_by_line_of_function(run: Run, file: str | None, function: str | None) -> dict[int, int]:
    """Returns how many samples of usual steps each line of a function has.

    The file may be named as Python names it, by a path from a folder on `sys.path`.
    """
    if not run.samples.height or file is None or function is None:
        return {}
    is_file = (pl.col("file") == file) | pl.col("file").str.ends_with(f"/{file}")
    lines = sampled_lines(run).filter(is_file & (pl.col("function") == function))
    counts = lines.drop_nulls("line").group_by("line").agg(pl.col("samples").sum())
    return dict(counts.sort("line").iter_rows())
