"""Merge the columns of a file's chunks, with one numbering of strings and threads."""

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
from selftime.ingest.events.pairing import FileCodes, HalfEvent, pair_halves, span_rows

_CODED: Final = frozenset({"name", "category"})
_INSTANT_CODED: Final = frozenset({"category", "name"})


@dataclass(slots=True)
class FileColumns:
    """The columns of a whole file, in the file's order; texts are codes into `strings`."""

    strings: pl.Series
    """Every distinct string of the file; its index is its code."""
    threads: list[tuple[str, str]]
    slices: Columns
    groups: dict[str, Columns]
    labels: list[tuple[str, str, str, str]]
    counters: list[tuple[int, tuple[str, str], str, str, float]]
    phases: Counter[tuple[str, str]]
    faults: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    """Notes: oddities that damage nothing, with their counts."""
    ruins: Counter[str] = field(default_factory=Counter)
    """Faults that make every conclusion from the trace invalid, with their counts."""
    in_nanoseconds: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Rows of the slices whose times were written in integer nanoseconds."""

    def text(self, codes: NDArray[Any]) -> pl.Series:
        """Returns the strings of the codes; null for `NO_CODE`."""
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
    """Returns the merged columns of all chunks; the chunks are emptied.

    `homes` maps an added thread to the thread whose events it holds.
    """
    strings: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    slices = _Table(_CODED, sum(_height(chunk.slices) for chunk in chunks))
    groups = _tables(chunks)
    halves: list[HalfEvent] = []
    spans: list[tuple[HalfEvent, str]] = []
    written: list[Ints] = []
    whole = FileColumns(pl.Series(), [], {}, {}, [], [], Counter())
    for chunk in chunks:
        codes = np.array([strings.setdefault(s, len(strings)) for s in chunk.strings], np.uint32)
        at_home = [homes.get(thread, thread) for thread in chunk.threads]
        places = np.array([threads.setdefault(t, len(threads)) for t in at_home], np.uint32)
        halves += [_renumbered(half, codes, places) for half in chunk.halves]
        spans += [(_renumbered(half, codes, places), span) for *half, span in chunk.spans]
        written.append(np.array(chunk.in_nanoseconds, np.int64) + slices.filled)
        whole.counters += [
            (time, at_home[thread], name, series, value)
            for time, thread, name, series, value in chunk.counters
        ]
        whole.labels += chunk.labels
        whole.phases += chunk.phases
        whole.faults += chunk.faults
        known = np.append(codes, np.uint32(NO_CODE))  # the last entry is for absent strings
        first = slices.filled
        slices.take(chunk.slices, known, places, first)
        for group, columns in chunk.groups.items():
            groups[group].take(columns, known, places, first)
        chunk.groups.clear()
    slices.append(pair_halves(halves, strings.get(NO_NAME, -1), whole.faults))
    lasting, marks = span_rows(spans, FileCodes(strings, threads), whole.faults)
    slices.append(lasting)
    groups["instants"].append(marks)
    whole.in_nanoseconds = np.concatenate([*written, whole.in_nanoseconds])
    whole.strings = pl.Series(list(strings), dtype=pl.String).cast(pl.Categorical)
    whole.threads = list(threads)
    whole.slices = slices.columns
    whole.groups = {group: table.columns for group, table in groups.items()}
    return whole


class _Table:
    """Columns of a known height that are filled chunk by chunk, so that no row is copied twice."""

    def __init__(self, coded: frozenset[str], height: int) -> None:
        self.coded, self.height, self.filled = coded, height, 0
        self.columns: Columns = {}

    def take(self, columns: Columns, codes: NDArray[Any], places: NDArray[Any], first: int) -> None:
        """Append a chunk's columns, translated to the file's strings, threads and rows.

        Args:
            columns: The columns, which are empty afterwards.
            codes: The file's code of each string of the chunk, followed by `NO_CODE`.
            places: The file's number of each thread of the chunk.
            first: The number of slices before the chunk.
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
        """Append rows that already use the file's numbering."""
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
    """Returns an empty table for each group of arguments, as high as all chunks together."""
    heights = Counter[str]({"instants": 0})
    for chunk in chunks:
        for group, columns in chunk.groups.items():
            heights[group] += _height(columns)
    return {group: _Table(_coded(group), height) for group, height in heights.items()}


def _renumbered(half: Sequence[Any], codes: NDArray[Any], places: NDArray[Any]) -> HalfEvent:
    """Returns a begin or end event with the file's codes for strings and threads."""
    phase, time, name, category, thread = half
    return phase, time, int(codes[name]), int(codes[category]), int(places[thread])


def _coded(group: str) -> frozenset[str]:
    if group == "instants":
        return _INSTANT_CODED
    return frozenset(spec.name for spec in GROUPS[group] if spec.kind == "text")
