"""Read a file as text, part by part, for rewriting it without keeping it in memory.

Sound events are passed on as they are written, to the last digit and unknown argument; damaged ones
as repaired. All text that is passed on is strict JSON, also where the reader of tables skips a
value without checking it.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Final, Protocol, cast

import fsspec
import msgspec

from selftime.errors import UnreadableTrace
from selftime.ingest.cache import file_stamp
from selftime.ingest.damage.ambiguous import (
    PATH_RESTORED,
    has_duplicate_fields,
    mixed_fault,
    restored_path,
    texts_without_duplicates,
)
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import recover
from selftime.ingest.events.columns import ChunkColumns
from selftime.ingest.events.decode import ARRAY_END, Decoded
from selftime.ingest.events.event import MALFORMED
from selftime.ingest.text.document import read_document
from selftime.ingest.text.hashed_file import FilePart
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source
from selftime.ingest.text.strings import string_replacer

_BETWEEN: Final = b" \t\r\n,\x00"
"""Bytes that may separate two events."""

_EVENTS: Final = "traceEvents"
_SEPARATOR: Final = b",\n  "
_ESCAPE: Final = re.compile(rb"\\[ntrbf]")
_GUESSES: Final = 4
"""Candidates for the array's end that are tried before the chunk is split event by event."""


class TextReceiver(Protocol):
    """Receives a file's top-level keys and events, in the file's order."""

    def key(self, name: str, value: bytes) -> None:
        """Receive a top-level key with its value as JSON; never the key of the events."""

    def events(self, text: bytes, count: int) -> None:
        """Receive `count` events as JSON objects separated by commas."""


@dataclass(slots=True)
class PartsSummary:
    """The result of reading a file as text: its number of events, and its faults."""

    events: int = 0
    faults: list[Fault] = field(default_factory=list)
    """Faults in the order in which they were found."""


def read_parts(
    place: str | os.PathLike[str],
    parts: TextReceiver,
    progress: Callable[[int, int | None], None] | None = None,
) -> PartsSummary:
    """Pass a trace's keys and events to `parts`.

    Args:
        place: A trace in JSON, plain, gzip or zstd; or the fsspec address of one.
        parts: The receiver. Several arrays of events reach it as one.
        progress: Called with the bytes read so far and the total bytes, None if unknown.

    Raises:
        UnreadableTrace: The file is missing, is not a trace, changed while it was read, or several
            ranks wrote to it at once, which a rewritten file would no longer show.
    """
    where = os.fspath(place)
    with open_unchanged(where) as (file, size):
        source = Source(file, size, progress)
        blocks = source.blocks()
        first = next(blocks, b"")
        handed = _Forwarder(parts)
        if is_pickle(first):
            raise UnreadableTrace(f"`{where}` is a memory snapshot: give a trace in JSON")
        try:
            document = read_document(chain([first], blocks), _TextDecoder(), handed)
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{where}` cannot be read: {error}") from error
    mixed = mixed_fault(document.faults)
    if mixed is not None:
        raise UnreadableTrace(f"`{where}` cannot be written anew: {mixed.fault}")
    faults = [*source.faults, *document.faults, *handed.faults]
    if document.arrays > 1:
        faults.append(Fault("`traceEvents` more than once: all are read"))
    if not handed.count:
        raise UnreadableTrace(f"`{where}` holds no event that is sound: give a whole trace")
    return PartsSummary(handed.count, faults)


def split_events(text: bytes) -> list[msgspec.Raw]:
    """Returns the JSON objects in a text of events, each as it is written."""
    return _RAW.decode(b"[%b]" % text)


_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw])


@contextmanager
def open_unchanged(place: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """Yields an open file and its size in bytes; a local file must not change until the end."""
    if "://" in place:
        try:
            with fsspec.open(place, "rb") as file:
                yield file, getattr(file, "size", None)
        except (OSError, ValueError, ImportError) as error:
            first = str(error).partition("\n")[0] or type(error).__name__
            raise UnreadableTrace(f"`{place}` cannot be read: {first}") from error
        return
    path = Path(place)
    try:
        if not path.is_file():
            why = "it is not a regular file" if path.exists() else "there is no such file"
            raise UnreadableTrace(f"`{place}` cannot be read: {why}")
        mark = file_stamp(path)
        with path.open("rb") as file:
            yield file, path.stat().st_size
        changed = file_stamp(path) != mark
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{place}` cannot be read: {why}") from error
    if changed:
        raise UnreadableTrace(
            f"`{place}` changed while it was read: read it again when it is whole"
        )


@dataclass(slots=True)
class _TextChunk(Decoded):
    """A decoded chunk as text."""

    text: bytes = b""
    count: int = 0


class _TextDecoder:
    """Decodes chunks to text, in this process: copying the text takes most of the time."""

    width = 1

    def submit(self, text: bytes | FilePart, *, last: bool) -> "Future[Decoded]":
        done: Future[Decoded] = Future()
        done.set_result(_decode(text if isinstance(text, bytes) else text.read(), last=last))
        return done


class _Forwarder:
    """Passes decoded chunks on as text."""

    def __init__(self, parts: TextReceiver) -> None:
        self.parts, self.count = parts, 0
        self.faults: list[Fault] = []

    def key(self, name: str, value: bytes) -> None:
        if name == _EVENTS:  # a second `traceEvents` would hide the events
            self.faults.append(Fault("`traceEvents` that is no list: left out"))
        else:
            self.parts.key(name, value)

    def events(self, decoded: Decoded) -> None:
        chunk = cast("_TextChunk", decoded)
        if chunk.count:
            self.count += chunk.count
            self.parts.events(chunk.text, chunk.count)


def _decode(text: bytes, *, last: bool) -> _TextChunk:
    """Returns the events of a chunk as text; `decode.decode` returns them as columns."""
    decoded = _decode_as_written(text, last=last)
    told = Counter[str]()
    if has_duplicate_fields(decoded.text):
        decoded.text = _SEPARATOR.join(texts_without_duplicates(b"[%b]" % decoded.text, told))
    if _ESCAPE.search(decoded.text) is not None:
        decoded.text = string_replacer(lambda _, string: _restore_path(string, told))(decoded.text)
    decoded.faults += [Fault(what) for what in told.elements()]
    return decoded


def _restore_path(string: str, told: Counter[str]) -> str:
    meant = restored_path(string)
    told[PATH_RESTORED] += meant != string
    return meant


def _decode_as_written(text: bytes, *, last: bool) -> _TextChunk:
    count = _event_count(text)
    if count is not None:
        return _chunk(text.strip(_BETWEEN), count, len(text), ended=False)
    for guess, end in enumerate(ARRAY_END.finditer(text)):
        if guess == _GUESSES:
            break
        body = text[: end.start() + 1]
        count = _event_count(body)
        if count is not None:
            rest = text.index(b"]", end.start()) + 1
            return _chunk(body.strip(_BETWEEN), count, rest, ended=True)
    return _decode_recovered(text, last=last)


def _chunk(text: bytes, count: int, rest: int, *, ended: bool) -> _TextChunk:
    return _TextChunk(ChunkColumns(), rest, ended, text=text, count=count)


class _Object(msgspec.Struct):
    """Any JSON object; none of its values is built."""


_OBJECTS: Final = msgspec.json.Decoder(list[_Object])


def _event_count(text: bytes) -> int | None:
    """Returns the number of events in the text; None if any of it is not sound.

    msgspec checks the values that it skips, except for valid UTF-8.
    """
    try:
        text.decode()
        return len(_OBJECTS.decode(b"[%b]" % text.strip(_BETWEEN)))
    except MALFORMED:
        return None


def _decode_recovered(text: bytes, *, last: bool) -> _TextChunk:
    parts = recover(text, last=last)
    faults = [Fault(*fault) for fault in parts.faults]
    texts: list[bytes] = []
    for piece in parts.texts:
        for one in split_events(piece.strip(_BETWEEN)):
            written = bytes(one)
            if written.startswith(b"{"):
                texts.append(written)
            else:
                example = written[:80].decode("utf-8", "backslashreplace")
                faults.append(Fault("not an object where an event should be", -1, 1, example))
    decoded = _chunk(_SEPARATOR.join(texts), len(texts), parts.rest, ended=parts.ended)
    decoded.faults = faults
    return decoded
