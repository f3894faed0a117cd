"""The columns that every table of a comparison has, and the verdict of each row."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.compare.noise import Spread, mean_bounds
from selftime.schema import Column

VERDICT_LEVEL: Final = 0.99
"""The level of the interval that must exclude zero for the verdict slower or faster: one in a
hundred unchanged rows gets a verdict by chance."""

DIFFERENCE: Final = (
    Column("before", pl.Float64, "ns", "Time per step before, mean of the steady steps."),
    Column("after", pl.Float64, "ns", "Time per step after."),
    Column("difference", pl.Float64, "ns", "After minus before: negative is faster."),
    Column("change", pl.Float64, "ratio", "The difference relative to before.", True),
    Column("low", pl.Float64, "ns", "Lower bound of the 95 % interval.", True),
    Column("high", pl.Float64, "ns", "Upper bound of it.", True),
    Column("verdict", pl.String, "name", "new, gone, slower or faster; null: unclear.", True),
)


def differences(before: Spread, after: Spread) -> dict[str, Any]:
    """Returns the columns of `DIFFERENCE`, except for the verdict."""
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
    """Returns new, gone, slower or faster for each row; null if the difference is not significant.

    Args:
        before: Amounts before.
        after: Amounts after.
        calls_before: Occurrences before, shape (k,).
        calls_after: Occurrences after, shape (k,).
    """
    low, high = mean_bounds(before, after, VERDICT_LEVEL)
    found = np.full(before.mean.size, None, object)
    found[low > 0] = "slower"
    found[high < 0] = "faster"
    found[(calls_before == 0) & (calls_after > 0)] = "new"
    found[(calls_after == 0) & (calls_before > 0)] = "gone"
    return pl.Series("verdict", found.tolist(), dtype=pl.String)
