"""Join the columns of a file's chunks: one numbering of strings and threads for the whole file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.arrays import Ints
from selftime.ingest.events.arguments import GROUPS, NO_CODE, Columns
from selftime.ingest.events.columns import NO_NAME, ChunkColumns
from selftime.ingest.events.pairing import Half, Numbers, paired, span_rows

_CODED: Final = frozenset({"name", "category"})
_MARK_CODED: Final = frozenset({"category", "name"})


@dataclass(slots=True)
class FileColumns:
    """The columns of a whole file, in the file's order; texts are codes into `strings`."""

    strings: pl.Series
    """Every text of the file, dictionary-encoded."""
    threads: list[tuple[str, str]]
    slices: Columns
    groups: dict[str, Columns]
    labels: list[tuple[str, str, str, str]]
    counters: list[tuple[int, tuple[str, str], str, str, float]]
    phases: Counter[tuple[str, str]]
    faults: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    """What is odd and sound."""
    ruins: Counter[str] = field(default_factory=Counter)
    """What nothing can be concluded from."""
    in_nanoseconds: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Places of the slices whose times were written in integer nanoseconds."""

    def text(self, codes: NDArray[Any]) -> pl.Series:
        """The texts that codes stand for; null for `NO_CODE`."""
        known = pl.Series(np.where(codes == NO_CODE, 0, codes))
        missing = codes == NO_CODE
        if not self.strings.len():
            return pl.Series([None] * codes.size, dtype=pl.Categorical)
        texts = self.strings.gather(known)
        if missing.any():
            return texts.set(pl.Series(missing), None)
        return texts


def assemble(
    chunks: list[ChunkColumns], homes: Mapping[tuple[str, str], tuple[str, str]]
) -> FileColumns:
    """The columns of all chunks, one after the other; they are taken from the chunks.

    `homes` holds threads whose events belong to another, and which that is.
    """
    strings: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    slices = _Table(_CODED, sum(_height(chunk.slices) for chunk in chunks))
    groups = _tables(chunks)
    halves: list[Half] = []
    spans: list[tuple[Half, str]] = []
    written: list[Ints] = []
    whole = FileColumns(pl.Series(), [], {}, {}, [], [], Counter())
    for chunk in chunks:
        codes = np.array([strings.setdefault(s, len(strings)) for s in chunk.strings], np.uint32)
        at_home = [homes.get(thread, thread) for thread in chunk.threads]
        places = np.array([threads.setdefault(t, len(threads)) for t in at_home], np.uint32)
        halves += [_moved(half, codes, places) for half in chunk.halves]
        spans += [(_moved(half, codes, places), span) for *half, span in chunk.spans]
        written.append(np.array(chunk.in_nanoseconds, np.int64) + slices.filled)
        whole.counters += [
            (time, at_home[thread], name, series, value)
            for time, thread, name, series, value in chunk.counters
        ]
        whole.labels += chunk.labels
        whole.phases += chunk.phases
        whole.faults += chunk.faults
        known = np.append(codes, np.uint32(NO_CODE))  # where a string is not given, the last
        first = slices.filled
        slices.take(chunk.slices, known, places, first)
        for group, columns in chunk.groups.items():
            groups[group].take(columns, known, places, first)
        chunk.groups.clear()
    slices.append(paired(halves, strings.get(NO_NAME, -1), whole.faults))
    lasting, marks = span_rows(spans, Numbers(strings, threads), whole.faults)
    slices.append(lasting)
    groups["instants"].append(marks)
    whole.in_nanoseconds = np.concatenate([*written, whole.in_nanoseconds])
    whole.strings = pl.Series(list(strings), dtype=pl.String).cast(pl.Categorical)
    whole.threads = list(threads)
    whole.slices = slices.columns
    whole.groups = {group: table.columns for group, table in groups.items()}
    return whole


class _Table:
    """Columns of a known height that are filled chunk by chunk, so that no row is held twice."""

    def __init__(self, coded: frozenset[str], height: int) -> None:
        self.coded, self.height, self.filled = coded, height, 0
        self.columns: Columns = {}

    def take(self, columns: Columns, codes: NDArray[Any], places: NDArray[Any], first: int) -> None:
        """Take a chunk's columns, with the file's numbers for strings, threads and rows.

        Args:
            columns: The columns, which are empty afterwards.
            codes: The file's number of each string of the chunk, and behind them `NO_CODE`.
            places: The file's number of each thread of the chunk.
            first: How many slices stand before the chunk.
        """
        size = _height(columns)
        for name in list(columns):
            column = columns.pop(name)
            numbers = codes if name in self.coded else places if name == "thread" else None
            if name not in self.columns:
                kind = column.dtype if numbers is None else np.dtype(np.uint32)
                self.columns[name] = np.empty((self.height, *column.shape[1:]), kind)
            part = self.columns[name][self.filled : self.filled + size]
            if not size:
                continue
            if numbers is not None:
                np.take(numbers, column, out=part, mode="clip")
            elif name == "row":
                np.add(column, first, out=part)
            else:
                part[:] = column
        self.filled += size

    def append(self, columns: Columns) -> None:
        """Add rows that are numbered as the file's are, behind all others."""
        if not self.columns:
            self.columns = columns
        elif _height(columns):
            self.columns = {
                name: np.concatenate([column, columns[name]])
                for name, column in self.columns.items()
            }


def _height(columns: Columns) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _tables(chunks: list[ChunkColumns]) -> dict[str, _Table]:
    """A table for each group of arguments that a chunk has, as high as all of them together."""
    heights = Counter[str]({"instants": 0})
    for chunk in chunks:
        for group, columns in chunk.groups.items():
            heights[group] += _height(columns)
    return {group: _Table(_coded(group), height) for group, height in heights.items()}


def _moved(half: Sequence[Any], codes: NDArray[Any], places: NDArray[Any]) -> Half:
    """A begin or an end with the file's numbers for strings and threads."""
    phase, time, name, category, thread = half
    return phase, time, int(codes[name]), int(codes[category]), int(places[thread])


def _coded(group: str) -> frozenset[str]:
    if group == "instants":
        return _MARK_CODED
    return frozenset(spec.name for spec in GROUPS[group] if spec.kind == "text")
