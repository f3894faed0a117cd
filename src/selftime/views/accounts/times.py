"""When slices were: sets of time."""

import polars as pl

from selftime.intervals import Intervals, union

__all__ = ["times_of"]


def times_of(slices: pl.DataFrame) -> Intervals:
    """The time covered by slices whose end is known."""
    known = slices.select("start", "duration").drop_nulls()
    begin = known["start"].to_numpy()
    return union(begin, begin + known["duration"].to_numpy())
