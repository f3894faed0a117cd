"""A file read as text, part by part, for who writes it anew: nothing of it is kept in memory.

Sound events are handed on as they are written, to the last digit and unknown argument; damaged
ones as they were mended. What is handed on is JSON in the strict sense, also where reading for
tables skips a value without a look.
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
from selftime.ingest.cache import stamp
from selftime.ingest.damage.doubtful import (
    RESTORED,
    has_fields_twice,
    meant_as_path,
    mixed_fault,
    texts_once,
)
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import recover
from selftime.ingest.events.columns import ChunkColumns
from selftime.ingest.events.decode import ARRAY_END, Decoded
from selftime.ingest.events.event import MALFORMED
from selftime.ingest.text.document import read_document
from selftime.ingest.text.hashed import Part
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source
from selftime.ingest.text.strings import with_strings

_BETWEEN: Final = b" \t\r\n,\x00"
"""What stands between two events."""

_EVENTS: Final = "traceEvents"
_SEPARATOR: Final = b",\n  "
_ESCAPE: Final = re.compile(rb"\\[ntrbf]")
_GUESSES: Final = 4
"""How many candidates for the array's end are tried before the chunk is taken apart."""


class TextParts(Protocol):
    """Takes a file's top-level keys and events, in its order."""

    def key(self, name: str, value: bytes) -> None:
        """A top-level key with its value as JSON; the events are no such key."""

    def events(self, text: bytes, count: int) -> None:
        """So many events as JSON objects, with commas between them."""


@dataclass(slots=True)
class PartsRead:
    """What was read: how many events, and what was wrong with the file."""

    events: int = 0
    faults: list[Fault] = field(default_factory=list)
    """In the order in which they were met."""


def read_parts(
    place: str | os.PathLike[str],
    parts: TextParts,
    progress: Callable[[int, int | None], None] | None = None,
) -> PartsRead:
    """Hand a trace's keys and events to `parts`.

    Args:
        place: A trace in JSON, plain, gzip or zstd; or the address of one as fsspec writes it.
        parts: What takes them. Several arrays of events reach it as one.
        progress: Called with the bytes read and the bytes to read, if known.

    Raises:
        UnreadableTrace: There is no such file, it is no trace, it changed meanwhile, or several
            ranks wrote to it at once: read anew, it would no longer show that.
    """
    where = os.fspath(place)
    with opened(where) as (file, size):
        source = Source(file, size, progress)
        blocks = source.blocks()
        first = next(blocks, b"")
        handed = _Handed(parts)
        if is_pickle(first):
            raise UnreadableTrace(f"`{where}` is a memory snapshot: give a trace in JSON")
        try:
            document = read_document(chain([first], blocks), _Texts(), handed)
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
    return PartsRead(handed.count, faults)


def split(text: bytes) -> list[msgspec.Raw]:
    """The objects of an events' text, one by one, as they are written."""
    return _RAW.decode(b"[%b]" % text)


_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw])


@contextmanager
def opened(place: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """An open file and its size; a file here must not change until the end."""
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
        mark = stamp(path)
        with path.open("rb") as file:
            yield file, path.stat().st_size
        changed = stamp(path) != mark
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{place}` cannot be read: {why}") from error
    if changed:
        raise UnreadableTrace(
            f"`{place}` changed while it was read: read it again when it is whole"
        )


@dataclass(slots=True)
class _Decoded(Decoded):
    """A chunk as text."""

    text: bytes = b""
    count: int = 0


class _Texts:
    """Decodes chunks to text, at once and in this process: most of the time is in copying."""

    width = 1

    def submit(self, text: bytes | Part, *, last: bool) -> "Future[Decoded]":
        done: Future[Decoded] = Future()
        done.set_result(_decode(text if isinstance(text, bytes) else text.read(), last=last))
        return done


class _Handed:
    """Hands chunks on as their text."""

    def __init__(self, parts: TextParts) -> None:
        self.parts, self.count = parts, 0
        self.faults: list[Fault] = []

    def key(self, name: str, value: bytes) -> None:
        if name == _EVENTS:  # beside the list of events that is written, it would stand for it
            self.faults.append(Fault("`traceEvents` that is no list: left out"))
        else:
            self.parts.key(name, value)

    def events(self, decoded: Decoded) -> None:
        chunk = cast("_Decoded", decoded)
        if chunk.count:
            self.count += chunk.count
            self.parts.events(chunk.text, chunk.count)


def _decode(text: bytes, *, last: bool) -> _Decoded:
    """The events of a chunk as text, as `decode.decode` reads them as columns."""
    decoded = _as_it_stands(text, last=last)
    told = Counter[str]()
    if has_fields_twice(decoded.text):
        decoded.text = _SEPARATOR.join(texts_once(b"[%b]" % decoded.text, told))
    if _ESCAPE.search(decoded.text) is not None:
        decoded.text = with_strings(lambda _, string: _path(string, told))(decoded.text)
    decoded.faults += [Fault(what) for what in told.elements()]
    return decoded


def _path(string: str, told: Counter[str]) -> str:
    meant = meant_as_path(string)
    told[RESTORED] += meant != string
    return meant


def _as_it_stands(text: bytes, *, last: bool) -> _Decoded:
    count = _count(text)
    if count is not None:
        return _chunk(text.strip(_BETWEEN), count, len(text), ended=False)
    for guess, end in enumerate(ARRAY_END.finditer(text)):
        if guess == _GUESSES:
            break
        body = text[: end.start() + 1]
        count = _count(body)
        if count is not None:
            rest = text.index(b"]", end.start()) + 1
            return _chunk(body.strip(_BETWEEN), count, rest, ended=True)
    return _recovered(text, last=last)


def _chunk(text: bytes, count: int, rest: int, *, ended: bool) -> _Decoded:
    return _Decoded(ChunkColumns(), rest, ended, text=text, count=count)


class _Object(msgspec.Struct):
    """Any JSON object, none of whose values is built."""


_OBJECTS: Final = msgspec.json.Decoder(list[_Object])


def _count(text: bytes) -> int | None:
    """How many events the text holds; None if any of it is not sound.

    msgspec checks what it skips, all but its being UTF-8.
    """
    try:
        text.decode()
        return len(_OBJECTS.decode(b"[%b]" % text.strip(_BETWEEN)))
    except MALFORMED:
        return None


def _recovered(text: bytes, *, last: bool) -> _Decoded:
    parts = recover(text, last=last)
    faults = [Fault(*fault) for fault in parts.faults]
    texts: list[bytes] = []
    for piece in parts.texts:
        for one in split(piece.strip(_BETWEEN)):
            written = bytes(one)
            if written.startswith(b"{"):
                texts.append(written)
            else:
                example = written[:80].decode("utf-8", "backslashreplace")
                faults.append(Fault("not an object where an event should be", -1, 1, example))
    decoded = _chunk(_SEPARATOR.join(texts), len(texts), parts.rest, ended=parts.ended)
    decoded.faults = faults
    return decoded
