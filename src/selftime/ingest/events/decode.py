"""One chunk of event text to columns: the fast way if it is sound, else as much as can be had.

A chunk begins at an event. If msgspec reads all of it as a list of objects, its end lies between
two events too, whatever strings or nested values look like inside: JSON leaves no other reading.
"""

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from selftime.ingest.damage.doubtful import has_fields_twice, objects_once, restore_paths
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.loosen import loosen
from selftime.ingest.damage.recover import recover
from selftime.ingest.events.columns import NO_NAME, ChunkColumns, columns_of, thread_key
from selftime.ingest.events.event import (
    MALFORMED,
    exact_decoder,
    loose_decoder,
    plain_decoder,
)
from selftime.ingest.times.nanoseconds import InexactError, instants

ARRAY_END: Final = re.compile(rb'\}\s*\]\s*(?:,\s*"|\}|\Z|\[\s*\{|\{)')
"""An object, the end of its array, and what may follow the array of events."""
_GUESSES: Final = 4
"""How many candidates for the array's end are tried before the chunk is taken apart."""
_LONG_TIME: Final = re.compile(rb'"ts"\s*:\s*"?\d{14}')
"""A time since the epoch: where the first events have one, doubles need not be tried."""
_FIRST_EVENTS: Final = 4096
_TAIL: Final = 1 << 10
_BETWEEN: Final = b" \t\r\n,"
"""What stands between two events."""


def add_counters(chunk: ChunkColumns, objects: Iterable[Any]) -> None:
    """Add the samples among a chunk's JSON objects to its columns."""
    places = {thread: place for place, thread in enumerate(chunk.threads)}
    for value in objects:
        if not isinstance(value, dict) or value.get("ph") != "C":
            continue
        event: Any = loosen([value])[0][0]
        [time] = instants([event.ts])[0].tolist()
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
    """What a chunk holds."""

    columns: ChunkColumns
    rest: int
    """Where the text begins that was not read as events."""
    ended: bool
    """Whether the array of events ends at `rest`."""
    faults: list[Fault] = field(default_factory=list)
    digest: bytes = b""
    """The SHA-256 of the chunk, if it was read where it was decoded."""


def decode(text: bytes, *, last: bool) -> Decoded:
    """The columns of a chunk that begins at an event.

    Args:
        text: The chunk: events with commas between them.
        last: Whether the file ends with the chunk, so that nothing can complete its last event.
    """
    found = _sound(text)
    if found is not None:
        return Decoded(found, len(text), ended=False)
    for guess, end in enumerate(ARRAY_END.finditer(text)):
        if guess == _GUESSES:
            break
        found = _sound(text[: end.start() + 1])
        if found is not None:
            rest = text.index(b"]", end.start()) + 1
            return Decoded(found, rest, ended=True)
    parts = recover(text, last=last)
    faults = [Fault(*fault) for fault in parts.faults]
    events, refused = loosen(parts.objects)
    faults += [Fault(reason, -1, 1, example) for reason, example in refused]
    columns = columns_of(events)
    restore_paths(columns)
    add_counters(columns, parts.objects)
    return Decoded(columns, parts.rest, parts.ended, faults)


def _sound(text: bytes) -> ChunkColumns | None:
    """The columns, if all of the text can be read."""
    listed = _listed(text)
    try:
        columns = _with_fields_once(listed) if has_fields_twice(text) else _whole(listed)
        if columns is None:
            return None
        if any(phase == "C" for phase, _ in columns.phases):
            add_counters(columns, loose_decoder.decode(listed))
    except MALFORMED:
        return None
    restore_paths(columns)
    return columns


def _listed(text: bytes) -> bytes:
    """The events as a list; the text is copied once."""
    tail = text[-_TAIL:].rstrip(_BETWEEN)
    end = len(text) - min(len(text), _TAIL) + len(tail) if tail else len(text.rstrip(_BETWEEN))
    return b"".join((b"[", memoryview(text)[:end], b"]"))


def _whole(listed: bytes) -> ChunkColumns | None:
    """The columns of a sound list; a value of an unexpected type does not make it unsound."""
    try:
        if _LONG_TIME.search(listed, 0, _FIRST_EVENTS) is None:
            with suppress(InexactError):
                return columns_of(plain_decoder.decode(listed))
        return columns_of(exact_decoder.decode(listed))
    except msgspec.ValidationError:
        return _loosened(loose_decoder.decode(listed))


def _with_fields_once(listed: bytes) -> ChunkColumns | None:
    """The columns of a sound list in which some events have a field twice."""
    twice = Counter[str]()
    columns = _loosened(objects_once(listed, twice))
    if columns is not None:
        columns.faults.update(twice)
    return columns


def _loosened(objects: list[Any]) -> ChunkColumns | None:
    """The columns of JSON values, if all are events."""
    events, refused = loosen(objects)
    return None if refused else columns_of(events)
