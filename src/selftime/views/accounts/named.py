"""Slices chosen by what their names mean: each distinct name is looked at once."""

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.name_order import rows_named

__all__ = [
    "agreed",
    "calls_named",
    "calls_of",
    "is_named",
    "is_of_kind",
    "of_kind",
    "whose_name",
    "with_end",
]


_MANY: Final = 8
"""Of one row in so many it costs as much to gather them as to go through all."""


def whose_name(slices: pl.DataFrame, means: Callable[[str], bool]) -> pl.DataFrame:
    """The slices whose name satisfies a test; one without a name satisfies none."""
    if slices["name"].null_count():
        slices = slices.filter(pl.col("name").is_not_null())
    rows = rows_named(slices, means)
    if rows.dtype != np.bool_ and rows.size * _MANY < slices.height:
        return slices[pl.Series(rows)]
    flags = _flags(rows, slices.height)
    return slices if flags.all() else slices.filter(pl.Series(flags))


def is_named(slices: pl.DataFrame, means: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Which slices have a name that satisfies a test, shape (n,)."""
    if slices["name"].null_count():
        known = np.flatnonzero(slices["name"].is_not_null().to_numpy())
        found = np.zeros(slices.height, bool)
        found[known] = is_named(slices[pl.Series(known)], means)
        return found
    return _flags(rows_named(slices, means), slices.height)


def _flags(rows: NDArray[np.bool_] | NDArray[np.uint32], size: int) -> NDArray[np.bool_]:
    """Rows as flags, whether they are so or numbers."""
    if rows.dtype == np.bool_:
        return np.asarray(rows, bool)
    flags = np.zeros(size, bool)
    flags[rows] = True
    return flags


def of_kind(trace: Trace, kind: str, *, ended: bool = False) -> pl.DataFrame:
    """The slices on tracks of one kind; with `ended` those whose end is known."""
    known = _known_kinds(trace)
    if (kind, ended) not in known:
        if ended:
            found = with_end(of_kind(trace, kind))
        else:
            found = trace.slices.filter(pl.Series(is_of_kind(trace, kind))).rechunk()
        known[kind, ended] = found
    return known[kind, ended]


def is_of_kind(trace: Trace, *kinds: str) -> NDArray[np.bool_]:
    """Which slices are on tracks of these kinds, shape (n,)."""
    of_track = trace.tracks["kind"].is_in(kinds).to_numpy()
    return np.asarray(of_track[trace.slices["track"].to_numpy()])


def calls_named(trace: Trace, means: Callable[[str], bool]) -> pl.DataFrame:
    """Of `calls_of` those whose name satisfies a test; cheap if they are few."""
    named = whose_name(trace.slices, means)
    tracks = trace.tracks.filter(pl.col("kind") == "host")["id"]
    own = pl.col("track").is_in(tracks.implode()) & pl.col("category").is_in(list(names.CALLS))
    return named.filter(own)


@kept
def calls_of(trace: Trace) -> pl.DataFrame:
    """Calls of the devices' runtimes and drivers, on the host."""
    host = of_kind(trace, "host")
    return host.filter(host["category"].is_in(list(names.CALLS)))


def with_end(slices: pl.DataFrame) -> pl.DataFrame:
    """The slices whose end is known: mostly all, and then the table itself."""
    if not slices["duration"].null_count():
        return slices
    return slices.filter(pl.col("duration").is_not_null())


@kept
def _known_kinds(_: Trace) -> dict[tuple[str, bool], pl.DataFrame]:
    """What was told of a trace before: most questions begin with the slices of the host."""
    return {}


def agreed(column: str) -> pl.Expr:
    """Of a group of slices: the value of a column that all have, else null."""
    value = pl.col(column)
    return pl.when(value.n_unique() == 1).then(value.first()).alias(column)
