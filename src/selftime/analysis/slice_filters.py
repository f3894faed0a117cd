"""Filters slices by name, track or category; calls a name test once for each distinct name."""

from collections.abc import Callable
from typing import Final
from weakref import ref

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.intervals import Intervals, union
from selftime.trace import Trace

_MAX_NAMES_WITH_16_BIT_CODES: Final = 1 << 16
"""Largest number of distinct names that get 16-bit codes, which sort in linear time."""


_MIN_ROWS_PER_MATCHING_NAME: Final = 8
"""Smallest ratio of all rows to matching rows at which gathering rows is cheaper than filtering."""

_MIN_ROWS_PER_SORTED_ROW: Final = 16
"""Smallest ratio of all rows to matching rows at which sorting these is cheaper than flags."""


class _DistinctSliceNames:
    """The distinct names in a table (null is not counted), and the code of each row's name."""

    def __init__(self, name: pl.Series) -> None:
        self.codes = name.to_physical().to_numpy()
        nowhere = np.iinfo(np.uint32).max
        place = np.full(int(self.codes.max(initial=0)) + 1, nowhere, np.uint32)
        place[self.codes] = np.arange(self.codes.size, dtype=np.uint32)
        self.known = np.flatnonzero(place != nowhere)
        self.size = place.size
        self.texts: list[str] = name.gather(place[self.known]).cast(pl.String).to_list()

    def matching_name_flags(self, is_match: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Returns for each distinct name whether it satisfies a test."""
        return np.fromiter((is_match(text) for text in self.texts), bool, len(self.texts))

    def matching_row_flags(self, is_match: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Flags the rows of the table whose name satisfies a test."""
        return self.row_flags(self.matching_name_flags(is_match))

    def row_flags(self, is_wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Flags the rows of the table whose name is flagged in `is_wanted`."""
        wanted = np.zeros(self.size, bool)
        wanted[self.known] = is_wanted
        return np.asarray(wanted[self.codes])


class _RowsSortedByName:
    """The row numbers of a table sorted by name; rows of the same name are in ascending order."""

    def __init__(self, names_of_rows: _DistinctSliceNames) -> None:
        self.names = names_of_rows
        number = np.zeros(
            self.names.size,
            np.uint16 if len(self.names.texts) < _MAX_NAMES_WITH_16_BIT_CODES else np.uint32,
        )
        number[self.names.known] = np.arange(self.names.known.size)
        numbers = number[self.names.codes]
        self.order = np.argsort(numbers, kind="stable").astype(np.uint32)
        counts = np.bincount(numbers, minlength=self.names.known.size)
        self.bounds = np.append(0, np.cumsum(counts)).tolist()

    def matching_rows(
        self, is_match: Callable[[str], bool]
    ) -> NDArray[np.bool_] | NDArray[np.uint32]:
        """Returns the rows whose name satisfies a test: flags, or ascending numbers if few."""
        is_wanted = self.names.matching_name_flags(is_match)
        wanted = np.flatnonzero(is_wanted).tolist()
        parts = [self.order[self.bounds[n] : self.bounds[n + 1]] for n in wanted]
        if len(parts) == 1:
            return parts[0]
        if sum(part.size for part in parts) * _MIN_ROWS_PER_SORTED_ROW < self.order.size:
            return np.sort(np.concatenate([self.order[:0], *parts]))
        return self.names.row_flags(is_wanted)


_ROWS_BY_NAME_OF_SEEN_TABLES: Final[
    dict[int, tuple[ref[pl.DataFrame], _DistinctSliceNames | _RowsSortedByName]]
] = {}
"""Maps the `id()` of each table already searched by name to the table and its names; from the
second search on its rows are sorted by name.
"""


def rows_with_matching_name(
    table: pl.DataFrame, is_match: Callable[[str], bool]
) -> NDArray[np.bool_] | NDArray[np.uint32]:
    """Returns the rows whose name satisfies a test, as flags or as ascending row numbers.

    Args:
        table: Has a column `name`, of dictionary-encoded text without nulls.
        is_match: The test; it is called once for each distinct name.
    """
    key = id(table)
    known, found = _ROWS_BY_NAME_OF_SEEN_TABLES.get(key, (None, None))
    if known is None or found is None or known() is not table:
        distinct = _DistinctSliceNames(table["name"])
        whole = ref(table, lambda dead: _forget_deleted_table(key, dead))
        _ROWS_BY_NAME_OF_SEEN_TABLES[key] = whole, distinct
        return distinct.matching_row_flags(is_match)
    if isinstance(found, _DistinctSliceNames):
        found = _RowsSortedByName(found)
        _ROWS_BY_NAME_OF_SEEN_TABLES[key] = known, found
    return found.matching_rows(is_match)


def _forget_deleted_table(key: int, deleted_table: ref[pl.DataFrame]) -> None:
    """Removes a deleted table's cache entry, unless a new table already has the same `id()`."""
    if _ROWS_BY_NAME_OF_SEEN_TABLES.get(key, (None, None))[0] is deleted_table:
        del _ROWS_BY_NAME_OF_SEEN_TABLES[key]


def covered_time(slices: pl.DataFrame) -> Intervals:
    """Returns the time (ns), as intervals, that slices of known end cover."""
    known = slices.select("start", "duration").drop_nulls()
    begin = known["start"].to_numpy()
    return union(begin, begin + known["duration"].to_numpy())


def filter_by_name(slices: pl.DataFrame, is_match: Callable[[str], bool]) -> pl.DataFrame:
    """Returns the slices whose name satisfies a test; a slice without a name does not."""
    if slices["name"].null_count():
        slices = slices.filter(pl.col("name").is_not_null())
    rows = rows_with_matching_name(slices, is_match)
    if rows.dtype != np.bool_ and rows.size * _MIN_ROWS_PER_MATCHING_NAME < slices.height:
        return slices[pl.Series(rows)]
    flags = _row_flags_of_rows(rows, slices.height)
    return slices if flags.all() else slices.filter(pl.Series(flags))


def matches_name(slices: pl.DataFrame, is_match: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Flags the slices whose name satisfies a test, shape (n,)."""
    if slices["name"].null_count():
        known = np.flatnonzero(slices["name"].is_not_null().to_numpy())
        found = np.zeros(slices.height, bool)
        found[known] = matches_name(slices[pl.Series(known)], is_match)
        return found
    return _row_flags_of_rows(rows_with_matching_name(slices, is_match), slices.height)


def _row_flags_of_rows(
    rows: NDArray[np.bool_] | NDArray[np.uint32], row_count: int
) -> NDArray[np.bool_]:
    """Returns a flag for each row, given either such flags or the numbers of the flagged rows."""
    if rows.dtype == np.bool_:
        return np.asarray(rows, bool)
    flags = np.zeros(row_count, bool)
    flags[rows] = True
    return flags


def slices_on(trace: Trace, track_kind: str, *, ended: bool = False) -> pl.DataFrame:
    """Returns the slices on tracks of one kind; with `ended`, only slices of known end."""
    known = _slices_by_track_kind_cache(trace)
    if (track_kind, ended) not in known:
        if ended:
            found = with_known_end(slices_on(trace, track_kind))
        else:
            found = trace.slices.filter(pl.Series(is_on_track_kind(trace, track_kind))).rechunk()
        known[track_kind, ended] = found
    return known[track_kind, ended]


def is_on_track_kind(trace: Trace, *kinds: str) -> NDArray[np.bool_]:
    """Flags the slices on tracks of the given kinds, shape (n,)."""
    of_track = trace.tracks["kind"].is_in(kinds).to_numpy()
    return np.asarray(of_track[trace.slices["track"].to_numpy()])


def runtime_calls_by_name(trace: Trace, is_match: Callable[[str], bool]) -> pl.DataFrame:
    """Returns the runtime and driver calls whose name satisfies a test; fast if few match."""
    named = filter_by_name(trace.slices, is_match)
    tracks = trace.tracks.filter(pl.col("kind") == "host")["id"]
    own = pl.col("track").is_in(tracks.implode()) & pl.col("category").is_in(
        list(names.RUNTIME_CALL_CATEGORIES)
    )
    return named.filter(own)


@cached_per_trace
def runtime_calls(trace: Trace) -> pl.DataFrame:
    """Returns the host's calls of the device runtime and driver, such as cudaLaunchKernel."""
    host = slices_on(trace, "host")
    return host.filter(host["category"].is_in(list(names.RUNTIME_CALL_CATEGORIES)))


def with_known_end(slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices whose end is known; the same table if all are."""
    if not slices["duration"].null_count():
        return slices
    return slices.filter(pl.col("duration").is_not_null())


@cached_per_trace
def _slices_by_track_kind_cache(_trace: Trace) -> dict[tuple[str, bool], pl.DataFrame]:
    """Returns the trace's cache of slices, by track kind and whether only ended slices count."""
    return {}


def common_value_expression(column: str) -> pl.Expr:
    """Returns a column expression: a column's value in a group if all rows have it, else null."""
    value = pl.col(column)
    return pl.when(value.n_unique() == 1).then(value.first()).alias(column)
