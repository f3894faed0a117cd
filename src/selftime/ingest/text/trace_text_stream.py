"""Reads a trace file as JSON text, chunk by chunk, for code that rewrites the file.

Sound events are passed on as they are written, to the last digit and unknown argument; damaged ones
as repaired. All text that is passed on is strict JSON, also where the reader of tables skips a
value without checking it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Final, Protocol, cast

import fsspec
import msgspec

from selftime.errors import UnreadableTrace
from selftime.ingest.damage.ambiguous_json import (
    PATH_RESTORED_FAULT,
    seems_to_have_duplicate_fields,
    several_writers_fault,
    texts_without_duplicate_fields,
    with_windows_path_restored,
)
from selftime.ingest.damage.event_recovery import recover_events
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.events.chunk_decoding import EVENT_LIST_END, DecodedChunk
from selftime.ingest.events.columns import ChunkEventColumns
from selftime.ingest.events.event_types import MALFORMED_JSON_ERRORS
from selftime.ingest.text.decompressed_text import DecompressedFile
from selftime.ingest.text.format_detection import is_pickle
from selftime.ingest.text.hashed_file import TextChunk
from selftime.ingest.text.json_strings import json_string_replacer
from selftime.ingest.text.trace_parsing import parse_first_trace
from selftime.ingest.trace_cache import file_stamp
from selftime.progress import ProgressCallback

_EVENT_SEPARATOR_BYTES: Final = b" \t\r\n,\x00"
"""Bytes that may separate two events in a trace's text."""

_EVENT_LIST_KEY: Final = "traceEvents"
_SEPARATOR_BETWEEN_WRITTEN_EVENTS: Final = b",\n  "
_JSON_CONTROL_CHARACTER_ESCAPE: Final = re.compile(rb"\\[ntrbf]")
_MAX_EVENT_LIST_ENDS_TRIED: Final = 4
"""Largest number of possible ends of the event list that are tried. After that, the chunk is read
event by event.
"""


class TraceTextReceiver(Protocol):
    """Receives a file's top-level keys and its events as JSON text, in the file's order."""

    def receive_key(self, name: str, value: bytes) -> None:
        """Receives a top-level key with its value as JSON text; never the key `traceEvents`."""

    def receive_events(self, text: bytes, count: int) -> None:
        """Receives `count` events as JSON objects separated by commas."""


@dataclass(slots=True)
class TraceTextSummary:
    """The number of events that `stream_trace_text` read from a file, and the file's faults."""

    event_count: int = 0
    faults: list[FileFault] = field(default_factory=list)
    """The file's faults, in the order in which they were detected."""


def stream_trace_text(
    path: str | os.PathLike[str],
    receiver: TraceTextReceiver,
    progress: ProgressCallback | None = None,
) -> TraceTextSummary:
    """Reads a trace file and passes its top-level keys and events to `receiver` as JSON text.

    Args:
        path: A trace in JSON, plain, gzip or zstd; or the fsspec address of one.
        receiver: Gets the keys and events. Several lists of events reach it as one.
        progress: Called with the bytes read so far and the total bytes, None if unknown.

    Raises:
        UnreadableTrace: The file is missing, is not a trace, changed while it was read, or several
            ranks wrote to it at once, which a rewritten file would no longer show.
    """
    path_text = os.fspath(path)
    with open_checking_for_changes(path_text) as (file, size):
        source = DecompressedFile(file, size, progress)
        blocks = source.text_blocks()
        first = next(blocks, b"")
        forwarder = _DecodedTextForwarder(receiver)
        if is_pickle(first):
            raise UnreadableTrace(f"`{path_text}` is a memory snapshot: give a trace in JSON")
        try:
            document = parse_first_trace(chain([first], blocks), _ChunkTextDecoder(), forwarder)
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{path_text}` cannot be read: {error}") from error
    writers_fault = several_writers_fault(document.faults)
    if writers_fault is not None:
        raise UnreadableTrace(f"`{path_text}` cannot be rewritten: {writers_fault.fault}")
    faults = [*source.faults, *document.faults, *forwarder.faults]
    if document.event_list_count > 1:
        faults.append(FileFault("`traceEvents` more than once: all are read"))
    if not forwarder.event_count:
        raise UnreadableTrace(f"`{path_text}` has no undamaged event: give a whole trace")
    return TraceTextSummary(forwarder.event_count, faults)


def split_into_events(text: bytes) -> list[msgspec.Raw]:
    """Splits a text of comma-separated JSON events into the unchanged text of each event."""
    return _RAW_LIST_DECODER.decode(b"[%b]" % text)


_RAW_LIST_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw])


@contextmanager
def open_checking_for_changes(path_text: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """Yields an open file and its size (bytes); raises if the file changes in the `with` block."""
    if "://" in path_text:
        try:
            with fsspec.open(path_text, "rb") as file:
                yield file, getattr(file, "size", None)
        except (OSError, ValueError, ImportError) as error:
            first = str(error).partition("\n")[0] or type(error).__name__
            raise UnreadableTrace(f"`{path_text}` cannot be read: {first}") from error
        return
    local_path = Path(path_text)
    try:
        if not local_path.is_file():
            why = "it is not a regular file" if local_path.exists() else "there is no such file"
            raise UnreadableTrace(f"`{path_text}` cannot be read: {why}")
        stamp_before = file_stamp(local_path)
        with local_path.open("rb") as file:
            yield file, local_path.stat().st_size
        changed = file_stamp(local_path) != stamp_before
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{path_text}` cannot be read: {why}") from error
    if changed:
        raise UnreadableTrace(
            f"`{path_text}` changed while it was read: read it again when it is whole"
        )


@dataclass(slots=True)
class _DecodedChunkAsText(DecodedChunk):
    """A decoded chunk that holds the JSON text of its events instead of columns."""

    text: bytes = b""
    event_count: int = 0


class _ChunkTextDecoder:
    """A decoder of chunks that returns the JSON text of their events, in this process."""

    width = 1

    def submit(self, chunk: TextChunk, *, is_last_chunk: bool) -> "Future[DecodedChunk]":
        future: Future[DecodedChunk] = Future()
        future.set_result(
            _decode_and_repair_chunk_text(
                chunk if isinstance(chunk, bytes) else chunk.read(), is_last_chunk=is_last_chunk
            )
        )
        return future


class _DecodedTextForwarder:
    """Passes the top-level keys and the text of decoded chunks to a `TraceTextReceiver`."""

    def __init__(self, receiver: TraceTextReceiver) -> None:
        self.receiver, self.event_count = receiver, 0
        self.faults: list[FileFault] = []

    def receive_key(self, name: str, value: bytes) -> None:
        if name == _EVENT_LIST_KEY:  # a second `traceEvents` would hide the events
            self.faults.append(FileFault("`traceEvents` that is no list: left out"))
        else:
            self.receiver.receive_key(name, value)

    def receive_events(self, decoded: DecodedChunk) -> None:
        chunk = cast("_DecodedChunkAsText", decoded)
        if chunk.event_count:
            self.event_count += chunk.event_count
            self.receiver.receive_events(chunk.text, chunk.event_count)


def _decode_and_repair_chunk_text(chunk_text: bytes, *, is_last_chunk: bool) -> _DecodedChunkAsText:
    """Returns the events of a chunk as JSON text; repairs duplicate fields and Windows paths."""
    decoded = _decode_chunk_text(chunk_text, is_last_chunk=is_last_chunk)
    repair_counts = Counter[str]()
    if seems_to_have_duplicate_fields(decoded.text):
        decoded.text = _SEPARATOR_BETWEEN_WRITTEN_EVENTS.join(
            texts_without_duplicate_fields(b"[%b]" % decoded.text, repair_counts)
        )
    if _JSON_CONTROL_CHARACTER_ESCAPE.search(decoded.text) is not None:
        decoded.text = json_string_replacer(
            lambda _, string: _restore_and_count_windows_path(string, repair_counts)
        )(decoded.text)
    decoded.faults += [FileFault(what) for what in repair_counts.elements()]
    return decoded


def _restore_and_count_windows_path(text: str, repair_counts: Counter[str]) -> str:
    restored = with_windows_path_restored(text)
    repair_counts[PATH_RESTORED_FAULT] += restored != text
    return restored


def _decode_chunk_text(chunk_text: bytes, *, is_last_chunk: bool) -> _DecodedChunkAsText:
    count = _event_count_if_valid(chunk_text)
    if count is not None:
        return _make_chunk_text(
            chunk_text.strip(_EVENT_SEPARATOR_BYTES), count, len(chunk_text), ended=False
        )
    for tried, list_end in enumerate(EVENT_LIST_END.finditer(chunk_text)):
        if tried == _MAX_EVENT_LIST_ENDS_TRIED:
            break
        body = chunk_text[: list_end.start() + 1]
        count = _event_count_if_valid(body)
        if count is not None:
            rest = chunk_text.index(b"]", list_end.start()) + 1
            return _make_chunk_text(body.strip(_EVENT_SEPARATOR_BYTES), count, rest, ended=True)
    return _recover_chunk_text(chunk_text, is_last_chunk=is_last_chunk)


def _make_chunk_text(text: bytes, count: int, rest: int, *, ended: bool) -> _DecodedChunkAsText:
    return _DecodedChunkAsText(ChunkEventColumns(), rest, ended, text=text, event_count=count)


class _AnyJsonObject(msgspec.Struct):
    """A JSON object that is only checked for validity, without creating Python objects."""


_JSON_OBJECT_LIST_DECODER: Final = msgspec.json.Decoder(list[_AnyJsonObject])


def _event_count_if_valid(events_text: bytes) -> int | None:
    """Returns the number of events in a text; None if some of the text is not valid JSON.

    msgspec checks the values that it skips, except for valid UTF-8.
    """
    try:
        events_text.decode()
        return len(
            _JSON_OBJECT_LIST_DECODER.decode(b"[%b]" % events_text.strip(_EVENT_SEPARATOR_BYTES))
        )
    except MALFORMED_JSON_ERRORS:
        return None


def _recover_chunk_text(chunk_text: bytes, *, is_last_chunk: bool) -> _DecodedChunkAsText:
    recovered = recover_events(chunk_text, is_last_chunk=is_last_chunk)
    faults = [FileFault(*fault) for fault in recovered.faults]
    texts: list[bytes] = []
    for piece in recovered.texts:
        for event in split_into_events(piece.strip(_EVENT_SEPARATOR_BYTES)):
            event_text = bytes(event)
            if event_text.startswith(b"{"):
                texts.append(event_text)
            else:
                example = event_text[:80].decode("utf-8", "backslashreplace")
                faults.append(
                    FileFault("a value that is not an object among the events", -1, 1, example)
                )
    decoded = _make_chunk_text(
        _SEPARATOR_BETWEEN_WRITTEN_EVENTS.join(texts),
        len(texts),
        recovered.unread_offset,
        ended=recovered.is_list_ended,
    )
    decoded.faults = faults
    return decoded
