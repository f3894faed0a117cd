"""The columns that every table of a comparison has, and what is told of each row."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.compare.noise import Spread, mean_bounds
from selftime.schema import Column

SURE: Final = 0.99
"""Of the interval that must not hold zero for a row to be called slower or faster: of a hundred
rows that only vary one is called so."""

DIFFERENCE: Final = (
    Column("before", pl.Float64, "ns", "Time a step before, the mean of the steps that count."),
    Column("after", pl.Float64, "ns", "Time a step after."),
    Column("difference", pl.Float64, "ns", "After less before: negative is faster."),
    Column("change", pl.Float64, "ratio", "That by the time before.", True),
    Column("low", pl.Float64, "ns", "The 95 % interval of the difference, from.", True),
    Column("high", pl.Float64, "ns", "To.", True),
    Column("verdict", pl.String, "name", "new, gone, slower or faster; null: not told.", True),
)


def differences(before: Spread, after: Spread) -> dict[str, Any]:
    """The columns of `DIFFERENCE` but the verdict."""
    low, high = mean_bounds(before, after)
    change = np.divide(
        after.mean - before.mean,
        before.mean,
        out=np.full(before.mean.size, np.nan),
        where=before.mean > 0,
    )
    return {
        "before": before.mean,
        "after": after.mean,
        "difference": after.mean - before.mean,
        "change": pl.Series(change).fill_nan(None),
        "low": pl.Series(low).fill_nan(None),
        "high": pl.Series(high).fill_nan(None),
    }


def verdicts(before: Spread, after: Spread, calls_before: Any, calls_after: Any) -> pl.Series:
    """new, gone, slower or faster for each row, null where neither is told.

    Args:
        before: What it takes before.
        after: And after.
        calls_before: How often it is there, shape (k,).
        calls_after: Likewise.
    """
    low, high = mean_bounds(before, after, SURE)
    told = np.full(before.mean.size, None, object)
    told[low > 0] = "slower"
    told[high < 0] = "faster"
    told[(calls_before == 0) & (calls_after > 0)] = "new"
    told[(calls_after == 0) & (calls_before > 0)] = "gone"
    return pl.Series("verdict", told.tolist(), dtype=pl.String)
