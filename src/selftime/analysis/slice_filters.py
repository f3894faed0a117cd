"""Slices chosen by what their names mean: each distinct name is looked at once."""

from collections.abc import Callable
from typing import Final
from weakref import ref

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.intervals import Intervals, union
from selftime.trace import Trace

_FEW: Final = 1 << 16
"""So many names have numbers of 16 bits, which are sorted in linear time."""


_MANY: Final = 8
"""Of one row in so many it costs as much to gather them as to go through all."""


class _Names:
    """The distinct names of a table without nulls, each with a row that has it."""

    def __init__(self, name: pl.Series) -> None:
        self.codes = name.to_physical().to_numpy()
        place = np.full(int(self.codes.max(initial=0)) + 1, -1, np.int64)
        place[self.codes] = np.arange(self.codes.size)
        self.known = np.flatnonzero(place >= 0)
        self.size = place.size
        self.texts: list[str] = name.gather(place[self.known]).cast(pl.String).to_list()

    def meant(self, means: Callable[[str], bool]) -> NDArray[np.bool_]:
        return np.fromiter((means(text) for text in self.texts), bool, len(self.texts))

    def rows(self, means: Callable[[str], bool]) -> NDArray[np.bool_]:
        wanted = np.zeros(self.size, bool)
        wanted[self.known] = self.meant(means)
        return np.asarray(wanted[self.codes])


class _Ordered:
    """The rows of a table in order of their names; those of one name ascend."""

    def __init__(self, name: pl.Series) -> None:
        self.names = _Names(name)
        number = np.zeros(self.names.size, np.uint16 if len(self.names.texts) < _FEW else np.uint32)
        number[self.names.known] = np.arange(self.names.known.size)
        numbers = number[self.names.codes]
        self.order = np.argsort(numbers, kind="stable").astype(np.uint32)
        counts = np.bincount(numbers, minlength=self.names.known.size)
        self.bounds = np.append(0, np.cumsum(counts)).tolist()

    def rows(self, means: Callable[[str], bool]) -> NDArray[np.uint32]:
        found = np.flatnonzero(self.names.meant(means)).tolist()
        parts = [self.order[self.bounds[n] : self.bounds[n + 1]] for n in found]
        if len(parts) == 1:
            return parts[0]
        return np.sort(np.concatenate([self.order[:0], *parts]))


_ASKED: Final[dict[int, tuple[ref[pl.DataFrame], _Ordered | None]]] = {}
"""The tables that were asked and still live, by identity: tables compare by value."""


def rows_by_name(
    table: pl.DataFrame, means: Callable[[str], bool]
) -> NDArray[np.bool_] | NDArray[np.uint32]:
    """The rows whose name satisfies a test, as flags or as numbers that ascend.

    Args:
        table: Has a column `name`, of dictionary-encoded text without nulls.
        means: The test; it is asked once for each distinct name.
    """
    key = id(table)
    known, order = _ASKED.get(key, (None, None))
    if known is None or known() is not table:
        _ASKED[key] = ref(table, lambda dead: _forget(key, dead)), None
        return _Names(table["name"]).rows(means)
    if order is None:
        order = _Ordered(table["name"])
        _ASKED[key] = known, order
    return order.rows(means)


def _forget(key: int, dead: ref[pl.DataFrame]) -> None:
    """Drop what is known of a table that is no more, unless another has its place by now."""
    if _ASKED.get(key, (None, None))[0] is dead:
        del _ASKED[key]


def covered_time(slices: pl.DataFrame) -> Intervals:
    """The time covered by slices whose end is known."""
    known = slices.select("start", "duration").drop_nulls()
    begin = known["start"].to_numpy()
    return union(begin, begin + known["duration"].to_numpy())


def filter_by_name(slices: pl.DataFrame, means: Callable[[str], bool]) -> pl.DataFrame:
    """The slices whose name satisfies a test; one without a name satisfies none."""
    if slices["name"].null_count():
        slices = slices.filter(pl.col("name").is_not_null())
    rows = rows_by_name(slices, means)
    if rows.dtype != np.bool_ and rows.size * _MANY < slices.height:
        return slices[pl.Series(rows)]
    flags = _flags(rows, slices.height)
    return slices if flags.all() else slices.filter(pl.Series(flags))


def matches_name(slices: pl.DataFrame, means: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Which slices have a name that satisfies a test, shape (n,)."""
    if slices["name"].null_count():
        known = np.flatnonzero(slices["name"].is_not_null().to_numpy())
        found = np.zeros(slices.height, bool)
        found[known] = matches_name(slices[pl.Series(known)], means)
        return found
    return _flags(rows_by_name(slices, means), slices.height)


def _flags(rows: NDArray[np.bool_] | NDArray[np.uint32], size: int) -> NDArray[np.bool_]:
    """Rows as flags, whether they are so or numbers."""
    if rows.dtype == np.bool_:
        return np.asarray(rows, bool)
    flags = np.zeros(size, bool)
    flags[rows] = True
    return flags


def slices_on(trace: Trace, kind: str, *, ended: bool = False) -> pl.DataFrame:
    """The slices on tracks of one kind; with `ended` those whose end is known."""
    known = _known_kinds(trace)
    if (kind, ended) not in known:
        if ended:
            found = with_known_end(slices_on(trace, kind))
        else:
            found = trace.slices.filter(pl.Series(is_on(trace, kind))).rechunk()
        known[kind, ended] = found
    return known[kind, ended]


def is_on(trace: Trace, *kinds: str) -> NDArray[np.bool_]:
    """Which slices are on tracks of these kinds, shape (n,)."""
    of_track = trace.tracks["kind"].is_in(kinds).to_numpy()
    return np.asarray(of_track[trace.slices["track"].to_numpy()])


def runtime_calls_by_name(trace: Trace, means: Callable[[str], bool]) -> pl.DataFrame:
    """Of `runtime_calls` those whose name satisfies a test; cheap if they are few."""
    named = filter_by_name(trace.slices, means)
    tracks = trace.tracks.filter(pl.col("kind") == "host")["id"]
    own = pl.col("track").is_in(tracks.implode()) & pl.col("category").is_in(list(names.CALLS))
    return named.filter(own)


@cached_per_trace
def runtime_calls(trace: Trace) -> pl.DataFrame:
    """Calls of the devices' runtimes and drivers, on the host."""
    host = slices_on(trace, "host")
    return host.filter(host["category"].is_in(list(names.CALLS)))


def with_known_end(slices: pl.DataFrame) -> pl.DataFrame:
    """The slices whose end is known: mostly all, and then the table itself."""
    if not slices["duration"].null_count():
        return slices
    return slices.filter(pl.col("duration").is_not_null())


@cached_per_trace
def _known_kinds(_: Trace) -> dict[tuple[str, bool], pl.DataFrame]:
    """What was told of a trace before: most questions begin with the slices of the host."""
    return {}


def common_value(column: str) -> pl.Expr:
    """Of a group of slices: the value of a column that all have, else null."""
    value = pl.col(column)
    return pl.when(value.n_unique() == 1).then(value.first()).alias(column)
