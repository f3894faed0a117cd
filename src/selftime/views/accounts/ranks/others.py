"""One against the middle of all others."""

import numpy as np
import polars as pl

__all__ = ["middle_of_others"]


def middle_of_others(rows: pl.DataFrame, column: str, within: tuple[str, ...]) -> pl.Series:
    """For each row the median of the other rows of its group; null if there is none.

    And null in a group in which a value is null. Costs as much as to sort the rows.
    """
    group = rows.select(pl.struct(within).rank("dense")).to_series().to_numpy()
    value = rows[column].to_numpy().astype(np.float64)  # null is NaN, and sorts last
    order = np.lexsort((value, group))
    first = np.flatnonzero(np.diff(group[order], prepend=0))
    size = np.diff(np.append(first, group.size))
    begin, others = np.repeat(first, size), np.repeat(size - 1, size)
    own = np.arange(group.size) - begin
    sorted_ = value[order]
    low, high = (begin + at + (at >= own) for at in ((others - 1) // 2, others // 2))
    some = np.flatnonzero(others > 0)
    middle = np.full(group.size, np.nan)
    middle[order[some]] = (sorted_[low[some]] + sorted_[high[some]]) / 2
    tainted = np.isin(group, group[np.isnan(value)])
    return pl.Series(np.where(tainted, np.nan, middle)).fill_nan(None)
