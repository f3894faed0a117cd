"""Decodes one chunk of a trace file's events to columns, even if the chunk is damaged.

A chunk begins at an event. If msgspec parses all of it as a list of objects, its end lies between
two events too, whatever its strings or nested values look like: JSON is unambiguous.
"""

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from selftime.ingest.damage.ambiguous_json import (
    objects_without_duplicate_fields,
    restore_windows_paths,
    seems_to_have_duplicate_fields,
)
from selftime.ingest.damage.event_recovery import recover_events
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.damage.mistyped_events import events_of_mistyped_objects
from selftime.ingest.events.columns import (
    NO_NAME,
    ChunkEventColumns,
    chunk_columns,
    thread_key,
)
from selftime.ingest.events.event_types import (
    MALFORMED_JSON_ERRORS,
    exact_event_list_decoder,
    plain_event_list_decoder,
    untyped_decoder,
)
from selftime.ingest.times.nanosecond_conversion import InexactTimeError, to_nanoseconds_and_unit

EVENT_LIST_END: Final = re.compile(rb'\}\s*\]\s*(?:,\s*"|\}|\Z|\[\s*\{|\{)')
"""Matches the end of the last event, the end of the list, and the text that may follow the list."""
_MAX_EVENT_LIST_ENDS_TRIED: Final = 4
"""Largest number of possible ends of the event list that are tried. After that, the chunk is read
event by event.
"""
_EVENT_TIME_SINCE_EPOCH: Final = re.compile(rb'"ts"\s*:\s*"?\d{14}')
"""Matches a time since the Unix epoch, in us. Such times need more digits than a double has."""
_BYTES_SEARCHED_FOR_EPOCH_TIME: Final = 4096
_BYTES_CHECKED_FOR_TRAILING_SEPARATORS: Final = 1 << 10
_EVENT_SEPARATOR_BYTES: Final = b" \t\r\n,"
"""Bytes that may separate two events in a trace's text."""


def add_counter_samples(chunk: ChunkEventColumns, objects: Iterable[Any]) -> None:
    """Adds each counter sample (`ph` is `C`) in a list of JSON objects to a chunk's columns."""
    places = {thread: place for place, thread in enumerate(chunk.threads)}
    for value in objects:
        if not isinstance(value, dict) or value.get("ph") != "C":
            continue
        event: Any = events_of_mistyped_objects([value])[0][0]
        [time] = to_nanoseconds_and_unit([event.ts])[0].tolist()
        thread = thread_key(event)
        if thread not in places:
            places[thread] = len(chunk.threads)
            chunk.threads.append(thread)
        args = value.get("args")
        for series, sample in (args if isinstance(args, dict) else {}).items():
            number = _float_or_nan(sample)
            chunk.counter_samples.append(
                (time, places[thread], event.name or NO_NAME, str(series), number)
            )


def _float_or_nan(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return float("nan")


@dataclass(slots=True)
class DecodedChunk:
    """The event columns of a decoded chunk, the offset up to which it was read, and its faults."""

    columns: ChunkEventColumns
    unread_offset: int
    """The offset in the chunk of the first byte that was not read as events."""
    is_list_ended: bool
    """Whether the file's list of events ends at `unread_offset`."""
    faults: list[FileFault] = field(default_factory=list)
    digest: bytes = b""
    """The SHA-256 of the chunk, if the decoding process read the chunk from the file; else empty.
    """


def decode_chunk(chunk_text: bytes, *, is_last_chunk: bool) -> DecodedChunk:
    """Decodes the events in a chunk of text, which begins at an event, to columns.

    Args:
        chunk_text: The chunk: events separated by commas.
        is_last_chunk: Whether the file ends with the chunk, so that its last event may be cut off.
    """
    found = _event_columns_if_valid(chunk_text)
    if found is not None:
        return DecodedChunk(found, len(chunk_text), is_list_ended=False)
    for tried, list_end in enumerate(EVENT_LIST_END.finditer(chunk_text)):
        if tried == _MAX_EVENT_LIST_ENDS_TRIED:
            break
        found = _event_columns_if_valid(chunk_text[: list_end.start() + 1])
        if found is not None:
            rest = chunk_text.index(b"]", list_end.start()) + 1
            return DecodedChunk(found, rest, is_list_ended=True)
    recovered = recover_events(chunk_text, is_last_chunk=is_last_chunk)
    faults = [FileFault(*fault) for fault in recovered.faults]
    events, refused = events_of_mistyped_objects(recovered.objects)
    faults += [FileFault(reason, -1, 1, example) for reason, example in refused]
    columns = chunk_columns(events)
    restore_windows_paths(columns)
    add_counter_samples(columns, recovered.objects)
    return DecodedChunk(columns, recovered.unread_offset, recovered.is_list_ended, faults)


def _event_columns_if_valid(text: bytes) -> ChunkEventColumns | None:
    """Returns the columns of the events in a text; None if any of it is not a valid event."""
    events_json = _json_list_of_events(text)
    try:
        columns = (
            _event_columns_with_duplicate_fields_merged(events_json)
            if seems_to_have_duplicate_fields(text)
            else _event_columns_of_json_list(events_json)
        )
        if columns is None:
            return None
        if any(phase == "C" for phase, _ in columns.event_counts_by_phase_and_category):
            add_counter_samples(columns, untyped_decoder.decode(events_json))
    except MALFORMED_JSON_ERRORS:
        return None
    restore_windows_paths(columns)
    return columns


def _json_list_of_events(text: bytes) -> bytes:
    """Returns the text of several events, which commas separate, as the text of one JSON list."""
    tail = text[-_BYTES_CHECKED_FOR_TRAILING_SEPARATORS:].rstrip(_EVENT_SEPARATOR_BYTES)
    end = (
        len(text) - min(len(text), _BYTES_CHECKED_FOR_TRAILING_SEPARATORS) + len(tail)
        if tail
        else len(text.rstrip(_EVENT_SEPARATOR_BYTES))
    )
    return b"".join((b"[", memoryview(text)[:end], b"]"))


def _event_columns_of_json_list(events_json: bytes) -> ChunkEventColumns | None:
    """Returns the columns of the events in a JSON list; values may have an unexpected type."""
    try:
        if _EVENT_TIME_SINCE_EPOCH.search(events_json, 0, _BYTES_SEARCHED_FOR_EPOCH_TIME) is None:
            with suppress(InexactTimeError):
                return chunk_columns(plain_event_list_decoder.decode(events_json))
        return chunk_columns(exact_event_list_decoder.decode(events_json))
    except msgspec.ValidationError:
        return _event_columns_of_json_objects(untyped_decoder.decode(events_json))


def _event_columns_with_duplicate_fields_merged(events_json: bytes) -> ChunkEventColumns | None:
    """Returns the columns of the events in a JSON list; events may have duplicate fields."""
    twice = Counter[str]()
    columns = _event_columns_of_json_objects(objects_without_duplicate_fields(events_json, twice))
    if columns is not None:
        columns.fault_counts.update(twice)
    return columns


def _event_columns_of_json_objects(objects: list[Any]) -> ChunkEventColumns | None:
    """Returns the columns of events given as JSON objects; None if one of them is not an event."""
    events, refused = events_of_mistyped_objects(objects)
    return None if refused else chunk_columns(events)
