"""The rows of a table by their name, so that to ask for a name costs what it finds.

A table that is asked once is gone through. One that is asked again, as those that are kept with a
trace are by nearly every rule, has its rows put in order of their names then; that order is kept
as long as the table lives.
"""

from collections.abc import Callable
from typing import Final
from weakref import ref

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["rows_named"]

_FEW: Final = 1 << 16
"""So many names have numbers of 16 bits, which are sorted in linear time."""


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


def rows_named(
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
