"""Slices chosen by what their names mean: each distinct name is looked at once."""

from collections.abc import Callable

import numpy as np
import polars as pl

from selftime.trace import Trace
from selftime.views.accounts.kept import kept

__all__ = ["agreed", "of_kind", "whose_name"]


def whose_name(slices: pl.DataFrame, means: Callable[[str], bool]) -> pl.DataFrame:
    """The slices whose name satisfies a test; one without a name satisfies none."""
    if slices["name"].null_count():
        slices = slices.filter(pl.col("name").is_not_null())
    name = slices["name"]
    codes = name.to_physical().to_numpy()
    place = np.full(int(codes.max(initial=0)) + 1, -1, np.int64)
    place[codes] = np.arange(codes.size)
    known = np.flatnonzero(place >= 0)
    wanted = np.zeros(place.size, bool)
    wanted[known] = [means(text) for text in name.gather(place[known]).cast(pl.String).to_list()]
    return slices.filter(pl.Series(wanted[codes]))


def of_kind(trace: Trace, kind: str) -> pl.DataFrame:
    """The slices on tracks of one kind."""
    known = _known_kinds(trace)
    if kind not in known:
        tracks = trace.tracks.filter(pl.col("kind") == kind)["id"]
        known[kind] = trace.slices.filter(pl.col("track").is_in(tracks.implode()))
    return known[kind]


@kept
def _known_kinds(_: Trace) -> dict[str, pl.DataFrame]:
    """What was told of a trace before: most questions begin with the slices of the host."""
    return {}


def agreed(column: str) -> pl.Expr:
    """Of a group of slices: the value of a column that all have, else null."""
    value = pl.col(column)
    return pl.when(value.n_unique() == 1).then(value.first()).alias(column)
