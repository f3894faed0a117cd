"""Decode one chunk of event text to columns; a damaged chunk as far as it can be recovered.

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

from selftime.ingest.damage.ambiguous import (
    has_duplicate_fields,
    objects_without_duplicates,
    restore_paths,
)
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.lenient import lenient_events
from selftime.ingest.damage.recover import recover
from selftime.ingest.events.columns import NO_NAME, ChunkColumns, chunk_columns, thread_key
from selftime.ingest.events.event import (
    MALFORMED,
    exact_decoder,
    loose_decoder,
    plain_decoder,
)
from selftime.ingest.times.nanoseconds import InexactError, nanoseconds_and_unit

ARRAY_END: Final = re.compile(rb'\}\s*\]\s*(?:,\s*"|\}|\Z|\[\s*\{|\{)')
"""An object, the end of its array, and what may follow the array of events."""
_GUESSES: Final = 4
"""Candidates for the array's end that are tried before the chunk is split event by event."""
_LONG_TIME: Final = re.compile(rb'"ts"\s*:\s*"?\d{14}')
"""A time since the Unix epoch: if the first events have one, doubles are too inexact."""
_FIRST_EVENTS: Final = 4096
_TAIL: Final = 1 << 10
_BETWEEN: Final = b" \t\r\n,"
"""Bytes that may separate two events."""


def add_counters(chunk: ChunkColumns, objects: Iterable[Any]) -> None:
    """Add the counter samples among a chunk's JSON objects to its columns."""
    places = {thread: place for place, thread in enumerate(chunk.threads)}
    for value in objects:
        if not isinstance(value, dict) or value.get("ph") != "C":
            continue
        event: Any = lenient_events([value])[0][0]
        [time] = nanoseconds_and_unit([event.ts])[0].tolist()
        thread = thread_key(event)
        if thread not in places:
            places[thread] = len(chunk.threads)
            chunk.threads.append(thread)
        args = value.get("args")
        for series, sample in (args if isinstance(args, dict) else {}).items():
            number = _number(sample)
            chunk.counters.append(
                (time, places[thread], event.name or NO_NAME, str(series), number)
            )


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return float("nan")


@dataclass(slots=True)
class Decoded:
    """A decoded chunk: its columns, where it ended, and its faults."""

    columns: ChunkColumns
    rest: int
    """The offset in the chunk of the first byte that was not read as events."""
    ended: bool
    """Whether the array of events ends at `rest`."""
    faults: list[Fault] = field(default_factory=list)
    digest: bytes = b""
    """The SHA-256 of the chunk, if the decoding process read it from the file; else empty."""


def decode(text: bytes, *, last: bool) -> Decoded:
    """Returns the columns of a chunk that begins at an event.

    Args:
        text: The chunk: events separated by commas.
        last: Whether the file ends with the chunk, so that nothing can complete its last event.
    """
    found = _decode_valid(text)
    if found is not None:
        return Decoded(found, len(text), ended=False)
    for guess, end in enumerate(ARRAY_END.finditer(text)):
        if guess == _GUESSES:
            break
        found = _decode_valid(text[: end.start() + 1])
        if found is not None:
            rest = text.index(b"]", end.start()) + 1
            return Decoded(found, rest, ended=True)
    parts = recover(text, last=last)
    faults = [Fault(*fault) for fault in parts.faults]
    events, refused = lenient_events(parts.objects)
    faults += [Fault(reason, -1, 1, example) for reason, example in refused]
    columns = chunk_columns(events)
    restore_paths(columns)
    add_counters(columns, parts.objects)
    return Decoded(columns, parts.rest, parts.ended, faults)


def _decode_valid(text: bytes) -> ChunkColumns | None:
    """Returns the columns if all of the text is valid; else None."""
    listed = _as_list(text)
    try:
        columns = (
            _columns_without_duplicates(listed)
            if has_duplicate_fields(text)
            else _columns_of_list(listed)
        )
        if columns is None:
            return None
        if any(phase == "C" for phase, _ in columns.phases):
            add_counters(columns, loose_decoder.decode(listed))
    except MALFORMED:
        return None
    restore_paths(columns)
    return columns


def _as_list(text: bytes) -> bytes:
    """Returns the events as a JSON list, copying the text once."""
    tail = text[-_TAIL:].rstrip(_BETWEEN)
    end = len(text) - min(len(text), _TAIL) + len(tail) if tail else len(text.rstrip(_BETWEEN))
    return b"".join((b"[", memoryview(text)[:end], b"]"))


def _columns_of_list(listed: bytes) -> ChunkColumns | None:
    """Returns the columns of a valid list, also if some values have an unexpected type."""
    try:
        if _LONG_TIME.search(listed, 0, _FIRST_EVENTS) is None:
            with suppress(InexactError):
                return chunk_columns(plain_decoder.decode(listed))
        return chunk_columns(exact_decoder.decode(listed))
    except msgspec.ValidationError:
        return _lenient_columns(loose_decoder.decode(listed))


def _columns_without_duplicates(listed: bytes) -> ChunkColumns | None:
    """Returns the columns of a valid list in which some events have duplicate fields."""
    twice = Counter[str]()
    columns = _lenient_columns(objects_without_duplicates(listed, twice))
    if columns is not None:
        columns.faults.update(twice)
    return columns


def _lenient_columns(objects: list[Any]) -> ChunkColumns | None:
    """Returns the columns of JSON values; None if one of them is not an event."""
    events, refused = lenient_events(objects)
    return None if refused else chunk_columns(events)
