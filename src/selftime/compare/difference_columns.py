"""Computes table columns that compare two means: means, difference, interval and verdict."""

from typing import Any, Final

import numpy as np
import polars as pl

from selftime.compare.statistical_significance import MeanAndVariance, difference_intervals
from selftime.schema import Column

VERDICT_CONFIDENCE_LEVEL: Final = 0.99
"""Confidence level of the interval that must exclude 0 for a row to be called slower or faster.

One in a hundred unchanged rows gets such a verdict by chance.
"""

CHANGE_COLUMN: Final = Column(
    "change",
    pl.Float64,
    "ratio",
    "`difference` divided by `before`; null if `before` is 0.",
    True,
)
INTERVAL_COLUMNS: Final = (
    Column(
        "low",
        pl.Float64,
        "ns",
        "Lower bound of the difference's 95 % interval; null if unknown.",
        True,
    ),
    Column(
        "high",
        pl.Float64,
        "ns",
        "Upper bound of the difference's 95 % interval; null if unknown.",
        True,
    ),
)

DIFFERENCE_COLUMNS: Final = (
    Column(
        "before", pl.Float64, "ns", "Mean time per steady step in the recording before the change."
    ),
    Column(
        "after", pl.Float64, "ns", "Mean time per steady step in the recording after the change."
    ),
    Column(
        "difference",
        pl.Float64,
        "ns",
        "Mean time per step after the change minus before; negative means faster.",
    ),
    CHANGE_COLUMN,
    *INTERVAL_COLUMNS,
    Column(
        "verdict",
        pl.String,
        "name",
        "Effect of the change: new, gone, slower or faster; null if it may be chance.",
        True,
    ),
)


def difference_columns(before: MeanAndVariance, after: MeanAndVariance) -> dict[str, Any]:
    """Returns table columns by name: mean before and after, difference, and its interval."""
    low, high = difference_intervals(before, after)
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


def difference_verdicts(
    before: MeanAndVariance, after: MeanAndVariance, calls_before: Any, calls_after: Any
) -> pl.Series:
    """Returns `new`, `gone`, `slower` or `faster` per row; null if the difference may be chance.

    Args:
        before: Amounts before.
        after: Amounts after.
        calls_before: Occurrences before, shape (k,).
        calls_after: Occurrences after, shape (k,).
    """
    low, high = difference_intervals(before, after, VERDICT_CONFIDENCE_LEVEL)
    found = np.full(before.mean.size, None, object)
    found[low > 0] = "slower"
    found[high < 0] = "faster"
    found[(calls_before == 0) & (calls_after > 0)] = "new"
    found[(calls_after == 0) & (calls_before > 0)] = "gone"
    return pl.Series("verdict", found.tolist(), dtype=pl.String)
