"""Sums the runs of operators by group, with statistics of their times."""

from collections.abc import Callable
from typing import Final

import polars as pl

EQUAL_ONLY_COLUMNS: Final = ("dtype_code", "peak")
"""Columns that are null in a row unless all its runs of known value have the same."""

_RUN_TIME_STATISTICS: Final[dict[str, Callable[[pl.Expr], pl.Expr]]] = {
    "min": pl.Expr.min,
    "median": pl.Expr.median,
    "p95": lambda runs: runs.quantile(0.95, "linear"),
    "max": pl.Expr.max,
    "std": lambda runs: runs.std(ddof=0),
}

RUN_TIME_COLUMN_NAMES: Final = tuple(
    f"{side}_time_{figure}" for side in ("cpu", "device") for figure in _RUN_TIME_STATISTICS
)
"""Names of the columns with statistics of the host time and the device time of a run."""


def sum_runs_with_statistics(
    events: pl.DataFrame, keys: list[str], sum_columns: list[str], run_columns: list[str]
) -> pl.DataFrame:
    """Returns for each group of runs the sums of known values, and statistics of the run times."""
    return events.group_by("group", maintain_order=True).agg(
        pl.col(keys).first(),
        pl.len().alias("count"),
        *sums_of_known_values(sum_columns),
        *(
            spread(pl.col(run)).alias(f"{run}_time_{figure}")
            for run in run_columns
            for figure, spread in _RUN_TIME_STATISTICS.items()
        ),
    )


def sums_of_known_values(columns: list[str]) -> list[pl.Expr]:
    """Returns for each column an expression: the sum of a group's values, or the one that all have.

    It is null where no value is known.
    """
    return [
        _value_if_all_equal(name) if name in EQUAL_ONLY_COLUMNS else _sum_of_known_values(name)
        for name in columns
    ]


def _sum_of_known_values(column_name: str) -> pl.Expr:
    column = pl.col(column_name)
    return pl.when(column.count() > 0).then(column.sum()).alias(column_name)


def _value_if_all_equal(column_name: str) -> pl.Expr:
    column = pl.col(column_name)
    return pl.when(column.min() == column.max()).then(column.min()).alias(column_name)
