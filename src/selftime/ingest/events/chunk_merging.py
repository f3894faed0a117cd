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
    columns_by_group: dict[str, Columns]
    """Columns of each group of events, such as `op`, `device` or `memory`, by the group's name."""
    process_and_thread_labels: list[tuple[str, str, str, str]]
    counter_samples: list[tuple[int, tuple[str, str], str, str, float]]
    event_counts_by_phase_and_category: Counter[tuple[str, str]]
    """Number of events by phase (`ph`) and category; an absent category is an empty text."""
    fault_counts: Counter[str] = field(default_factory=Counter)
    oddity_counts: Counter[str] = field(default_factory=Counter)
    """How often each harmless oddity occurs, by the message that describes it."""
    invalidating_fault_counts: Counter[str] = field(default_factory=Counter)
    """How often each fault occurs that makes every conclusion from the trace invalid, by message.
    """
    rows_written_in_ns: Ints = field(default_factory=lambda: np.empty(0, np.int64))
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
    begin_end_events: list[BeginOrEndEvent] = []
    async_span_events: list[tuple[BeginOrEndEvent, str]] = []
    written: list[Ints] = []
    whole = FileEventColumns(pl.Series(), [], {}, {}, [], [], Counter())
    for chunk in chunks:
        codes = np.array([strings.setdefault(s, len(strings)) for s in chunk.strings], np.uint32)
        at_home = [original_threads.get(thread, thread) for thread in chunk.threads]
        places = np.array([threads.setdefault(t, len(threads)) for t in at_home], np.uint32)
        begin_end_events += [
            _recode_for_file(event, codes, places) for event in chunk.begin_end_events
        ]
        async_span_events += [
            (_recode_for_file(event, codes, places), span)
            for *event, span in chunk.async_span_events
        ]
        written.append(np.array(chunk.rows_written_in_ns, np.int64) + slices.filled_row_count)
        _add_samples_labels_and_counts(whole, chunk, at_home)
        known = np.append(codes, np.uint32(NO_STRING_CODE))  # the last entry is for absent strings
        first = slices.filled_row_count
        slices.append_chunk(chunk.slices, known, places, first)
        for group, columns in chunk.columns_by_group.items():
            groups[group].append_chunk(columns, known, places, first)
        chunk.columns_by_group.clear()
    slices.append(
        slices_of_begins_and_ends(begin_end_events, strings.get(NO_NAME, -1), whole.fault_counts)
    )
    lasting, marks = slices_and_instants_of_spans(
        async_span_events, StringAndThreadCodes(strings, threads), whole.fault_counts
    )
    slices.append(lasting)
    groups["instants"].append(marks)
    whole.rows_written_in_ns = np.concatenate([*written, whole.rows_written_in_ns])
    whole.strings = pl.Series(list(strings), dtype=pl.String).cast(pl.Categorical)
    whole.threads = list(threads)
    whole.slices = slices.columns
    whole.columns_by_group = {group: table.columns for group, table in groups.items()}
    return whole


def _add_samples_labels_and_counts(
    whole: FileEventColumns, chunk: ChunkEventColumns, threads: Sequence[tuple[str, str]]
) -> None:
    """Adds a chunk's counter samples, labels and counts to those of the file.

    `threads` holds the process and thread ids of each thread code of the chunk.
    """
    whole.counter_samples += [
        (time, threads[thread], name, series, value)
        for time, thread, name, series, value in chunk.counter_samples
    ]
    whole.process_and_thread_labels += chunk.process_and_thread_labels
    whole.event_counts_by_phase_and_category += chunk.event_counts_by_phase_and_category
    whole.fault_counts += chunk.fault_counts


class _PreallocatedColumns:
    """Columns allocated with their final number of rows, and filled chunk by chunk."""

    def __init__(self, string_columns: frozenset[str], row_count: int) -> None:
        self.string_columns, self.row_count, self.filled_row_count = string_columns, row_count, 0
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
            part = self.columns[name][self.filled_row_count : self.filled_row_count + size]
            if not size:
                continue
            if numbers is not None:
                np.take(numbers, column, out=part, mode="clip")
            elif name == "row":
                np.add(column, first_row, out=part)
            else:
                part[:] = column
        self.filled_row_count += size

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
        for group, columns in chunk.columns_by_group.items():
            heights[group] += _row_count(columns)
    return {
        group: _PreallocatedColumns(_string_code_columns_of_group(group), height)
        for group, height in heights.items()
    }


def _recode_for_file(
    event: Sequence[Any], string_codes: NDArray[Any], thread_codes: NDArray[Any]
) -> BeginOrEndEvent:
    """Converts a begin or end event's string and thread codes from the chunk's to the file's."""
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
