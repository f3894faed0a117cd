"""When the program did something, and what began meanwhile."""

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.intervals import Intervals, union
from selftime.trace import Trace
from selftime.views.accounts.named import of_kind, whose_name
from selftime.views.accounts.steps.judging import is_within
from selftime.views.accounts.times import times_of

__all__ = ["both", "covered", "is_during", "is_under", "regions_of"]


def covered(operators: pl.DataFrame) -> Intervals:
    """The time in which any of the operators ran."""
    return union(operators["start"].to_numpy(), operators["end"].to_numpy())


def both(these: Intervals, those: Intervals) -> Intervals:
    """The time in either set."""
    starts = np.concatenate([these.starts, those.starts])
    return union(starts, np.concatenate([these.ends, those.ends]))


def regions_of(trace: Trace, *means: Callable[[str], bool]) -> Intervals:
    """When the host was in annotations, operators or frames of one of these meanings."""

    def is_meant(name: str) -> bool:
        return any(mean(name) for mean in means)

    host, python = (times_of(whose_name(of_kind(trace, k), is_meant)) for k in ("host", "python"))
    return both(host, python)


def is_during(slices: pl.DataFrame, times: Intervals) -> pl.Series:
    """Whether each slice began in these times."""
    begin = slices["start"].to_numpy()
    window = pl.DataFrame({"start": times.starts, "end": times.ends})
    return pl.Series(is_within(begin, window), dtype=pl.Boolean)


def is_under(slices: pl.DataFrame, around: pl.DataFrame) -> NDArray[np.bool_]:
    """Which slices began while one of `around` was open on their track.

    Both have the columns track and start, `around` has end as well.
    """
    if not around.height or not slices.height:
        return np.zeros(slices.height, bool)
    last = max(int(around["end"].to_numpy().max()), int(slices["start"].to_numpy().max())) + 1
    track, asked = (t["track"].cast(pl.Int64).to_numpy() * last for t in (around, slices))
    open_ = union(track + around["start"].to_numpy(), track + around["end"].to_numpy())
    when = asked + slices["start"].to_numpy()
    at = np.searchsorted(open_.starts, when, side="right") - 1
    return np.asarray((at >= 0) & (when < open_.ends[at]))
