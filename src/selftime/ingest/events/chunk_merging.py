"""Merges the columns of a file's chunks, and numbers their strings and threads consistently."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.array_types import Ints
from selftime.ingest.events.arguments import (
    ARGUMENT_COLUMNS_BY_GROUP,
    NO_STRING_CODE,
    Columns,
)
from selftime.ingest.events.begin_end_pairing import (
    BeginOrEndEvent,
    StringAndThreadCodes,
    slices_and_instants_of_spans,
    slices_of_begins_and_ends,
)
from selftime.ingest.events.columns import NO_NAME, ChunkEventColumns

_STRING_CODE_COLUMNS_OF_SLICES: Final = frozenset({"name", "category"})
_STRING_CODE_COLUMNS_OF_INSTANTS: Final = frozenset({"category", "name"})


@dataclass(slots=True)
class FileEventColumns:
    """The columns of a file's events, in file order; texts are stored as indices of `strings`."""

    strings: pl.Series
    """Every distinct string of the file; a string's index is its code."""
    threads: list[tuple[str, str]]
    slices: Columns
    groups: dict[str, Columns]
    labels: list[tuple[str, str, str, str]]
    counters: list[tuple[int, tuple[str, str], str, str, float]]
    phases: Counter[tuple[str, str]]
    faults: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    """How often each harmless oddity occurs, by the message that describes it."""
    ruins: Counter[str] = field(default_factory=Counter)
    """How often each fault occurs that makes every conclusion from the trace invalid, by message.
    """
    in_nanoseconds: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Row numbers of slices whose times were written in integer nanoseconds, not microseconds."""

    def decode_strings(self, string_codes: NDArray[Any]) -> pl.Series:
        """Returns the string of each code; null for `NO_STRING_CODE`."""
        known = pl.Series(np.where(string_codes == NO_STRING_CODE, 0, string_codes))
        missing = string_codes == NO_STRING_CODE
        if not self.strings.len():
            return pl.Series([None] * string_codes.size, dtype=pl.Categorical)
        texts = self.strings.gather(known)
        if missing.any():
            return texts.set(pl.Series(missing), None)
        return texts


def merge_chunks(
    chunks: list[ChunkEventColumns], original_threads: Mapping[tuple[str, str], tuple[str, str]]
) -> FileEventColumns:
    """Returns the merged columns of all chunks of a file; the chunks are emptied.

    `original_threads` maps an added thread to the thread whose events it holds.
    """
    strings: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    slices = _PreallocatedColumns(
        _STRING_CODE_COLUMNS_OF_SLICES, sum(_row_count(chunk.slices) for chunk in chunks)
    )
    groups = _preallocate_columns_by_group(chunks)
    halves: list[BeginOrEndEvent] = []
    spans: list[tuple[BeginOrEndEvent, str]] = []
    written: list[Ints] = []
    whole = FileEventColumns(pl.Series(), [], {}, {}, [], [], Counter())
    for chunk in chunks:
        codes = np.array([strings.setdefault(s, len(strings)) for s in chunk.strings], np.uint32)
        at_home = [original_threads.get(thread, thread) for thread in chunk.threads]
        places = np.array([threads.setdefault(t, len(threads)) for t in at_home], np.uint32)
        halves += [_recode_for_file(half, codes, places) for half in chunk.halves]
        spans += [(_recode_for_file(half, codes, places), span) for *half, span in chunk.spans]
        written.append(np.array(chunk.in_nanoseconds, np.int64) + slices.filled)
        whole.counters += [
            (time, at_home[thread], name, series, value)
            for time, thread, name, series, value in chunk.counters
        ]
        whole.labels += chunk.labels
        whole.phases += chunk.phases
        whole.faults += chunk.faults
        known = np.append(codes, np.uint32(NO_STRING_CODE))  # the last entry is for absent strings
        first = slices.filled
        slices.append_chunk(chunk.slices, known, places, first)
        for group, columns in chunk.groups.items():
            groups[group].append_chunk(columns, known, places, first)
        chunk.groups.clear()
    slices.append(slices_of_begins_and_ends(halves, strings.get(NO_NAME, -1), whole.faults))
    lasting, marks = slices_and_instants_of_spans(
        spans, StringAndThreadCodes(strings, threads), whole.faults
    )
    slices.append(lasting)
    groups["instants"].append(marks)
    whole.in_nanoseconds = np.concatenate([*written, whole.in_nanoseconds])
    whole.strings = pl.Series(list(strings), dtype=pl.String).cast(pl.Categorical)
    whole.threads = list(threads)
    whole.slices = slices.columns
    whole.groups = {group: table.columns for group, table in groups.items()}
    return whole


class _PreallocatedColumns:
    """Columns allocated with their final number of rows, and filled chunk by chunk."""

    def __init__(self, string_columns: frozenset[str], row_count: int) -> None:
        self.string_columns, self.row_count, self.filled = string_columns, row_count, 0
        self.columns: Columns = {}

    def append_chunk(
        self,
        columns: Columns,
        string_codes: NDArray[Any],
        thread_codes: NDArray[Any],
        first_row: int,
    ) -> None:
        """Appends a chunk's columns; converts its string, thread and row numbers to the file's.

        Args:
            columns: The columns, which are empty afterwards.
            string_codes: The file's code of each string of the chunk, then `NO_STRING_CODE`.
            thread_codes: The file's code of each thread of the chunk.
            first_row: The number of slices before the chunk.
        """
        size = _row_count(columns)
        for name in list(columns):
            column = columns.pop(name)
            numbers = (
                string_codes
                if name in self.string_columns
                else thread_codes
                if name == "thread"
                else None
            )
            if name not in self.columns:
                kind = column.dtype if numbers is None else np.dtype(np.uint32)
                self.columns[name] = np.empty((self.row_count, *column.shape[1:]), kind)
            part = self.columns[name][self.filled : self.filled + size]
            if not size:
                continue
            if numbers is not None:
                np.take(numbers, column, out=part, mode="clip")
            elif name == "row":
                np.add(column, first_row, out=part)
            else:
                part[:] = column
        self.filled += size

    def append(self, columns: Columns) -> None:
        """Appends columns whose string and thread codes are already those of the file."""
        if not self.columns:
            self.columns = columns
        elif _row_count(columns):
            self.columns = {
                name: np.concatenate([column, columns[name]])
                for name, column in self.columns.items()
            }


def _row_count(columns: Columns) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _preallocate_columns_by_group(
    chunks: list[ChunkEventColumns],
) -> dict[str, _PreallocatedColumns]:
    """Returns empty columns for each kind of event, with room for the rows of all chunks."""
    heights = Counter[str]({"instants": 0})
    for chunk in chunks:
        for group, columns in chunk.groups.items():
            heights[group] += _row_count(columns)
    return {
        group: _PreallocatedColumns(_string_code_columns_of_group(group), height)
        for group, height in heights.items()
    }


def _recode_for_file(
    event: Sequence[Any], string_codes: NDArray[Any], thread_codes: NDArray[Any]
) -> BeginOrEndEvent:
    """Returns a begin or end event, with its chunk's string and thread codes made the file's."""
    phase, time, name, category, thread = event
    return (
        phase,
        time,
        int(string_codes[name]),
        int(string_codes[category]),
        int(thread_codes[thread]),
    )


def _string_code_columns_of_group(group: str) -> frozenset[str]:
    if group == "instants":
        return _STRING_CODE_COLUMNS_OF_INSTANTS
    return frozenset(spec.name for spec in ARGUMENT_COLUMNS_BY_GROUP[group] if spec.kind == "text")
