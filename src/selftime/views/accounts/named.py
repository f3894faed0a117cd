"""Slices chosen by what their names mean: each distinct name is looked at once."""

from collections.abc import Callable

import polars as pl

from selftime.trace import Trace

__all__ = ["agreed", "of_kind", "whose_name"]


def whose_name(slices: pl.DataFrame, means: Callable[[str], bool]) -> pl.DataFrame:
    """The slices whose name satisfies a test."""
    unique = slices["name"].unique()
    wanted = [means(name) for name in unique.cast(pl.String).to_list()]
    chosen = unique.filter(pl.Series(wanted, dtype=pl.Boolean))
    return slices.filter(pl.col("name").is_in(chosen.implode()))


def of_kind(trace: Trace, kind: str) -> pl.DataFrame:
    """The slices on tracks of one kind."""
    tracks = trace.tracks.filter(pl.col("kind") == kind)["id"]
    return trace.slices.filter(pl.col("track").is_in(tracks.implode()))


def agreed(column: str) -> pl.Expr:
    """Of a group of slices: the value of a column that all have, else null."""
    value = pl.col(column)
    return pl.when(value.n_unique() == 1).then(value.first()).alias(column)
