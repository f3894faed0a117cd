"""Parses the text of a trace file: its top-level keys, and its events, chunk by chunk.

Kineto writes one object with `traceEvents` among other keys, in any order; other writers write a
bare array. Nothing is assumed of line breaks or indentation: a chunk is cut where one event seems
to end and the next to begin, and decoding then confirms or refutes the cut.
"""

import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from selftime.errors import UnreadableTrace
from selftime.ingest.damage.ambiguous_json import erase_ids_within_processes, several_writers_fault
from selftime.ingest.damage.event_recovery import (
    ANOTHER_TRACE_FAULT,
    EVENT_KEY_PATTERN,
    TEXT_BEFORE_EVENT,
    TRACE_START,
)
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.decoding_workers import ChunkDecoder
from selftime.ingest.events.chunk_decoding import DecodedChunk
from selftime.ingest.events.columns import ChunkEventColumns
from selftime.ingest.text.format_detection import (
    description_of_other_format,
    is_generic_format_description,
)
from selftime.ingest.text.hashed_file import TextChunk
from selftime.ingest.text.text_window import TextWindow
from selftime.ingest.text.top_level_keys import EVENT_START, TopLevelKeyReader

EVENT_CHUNK_BYTES: Final = 8 << 20
"""Target size, in bytes, of a chunk of text that is decoded at once."""

_TEXT_BETWEEN_EVENTS: Final = re.compile(
    rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|args)"\s*:)'
)
_TEXT_BETWEEN_OBJECTS: Final = re.compile(rb"\}\s*,\s*(?=\{)")
_BYTES_SEARCHED_FOR_EVENT_BORDER: Final = 1 << 18
"""Number of bytes at the end of a chunk that are searched first for a border between two events."""
_BYTES_CHECKED_AFTER_BORDER: Final = 64
"""Number of bytes after a possible border between events that must show the first key of an event.
"""
_BYTES_READ_TO_DETECT_FORMAT: Final = 1 << 10
_FAULT_EXAMPLE_BYTES: Final = 80
_UTF8_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
TEXT_AFTER_TRACE_FAULT: Final = "text after the end: left out"
_BYTES_SEARCHED_AGAIN_WITH_NEXT_BLOCK: Final = 1 << 8
"""Number of bytes at the end of a block of text that are searched again together with the next
block, for matches that span both.
"""

_START_OF_LIST_OF_TRACES: Final = re.compile(rb"\[\s*(?=%b)" % TRACE_START.pattern)
_PendingChunk: TypeAlias = "tuple[int, TextChunk, Future[DecodedChunk]]"
"""A chunk that is being decoded: its offset in bytes, its text, and its future result."""

_START_OF_NEXT_TRACE_OR_EVENT: Final = re.compile(
    rb"(?=%b)|%b" % (TRACE_START.pattern, TEXT_BEFORE_EVENT.pattern)
)
"""Matches the start of what may follow the end of a trace: another trace, or more of its events."""
_START_OF_TRACE_OR_EVENT_LIST: Final = re.compile(
    rb"(?=%b)|\[\s*(?=%b)" % (TRACE_START.pattern, EVENT_START.pattern)
)
"""Matches the start of a trace or of a list of events, after an object without events."""

_START_OF_TRACE_OR_EVENT: Final = re.compile(
    rb"(?=%b)|(?=%b)" % (TRACE_START.pattern, EVENT_START.pattern)
)
_BYTES_SEARCHED_FOR_TRACE_START: Final = 1 << 20
"""Number of bytes that are searched for a trace if the file does not begin with one."""
_START_OF_NEXT_TRACE: Final = re.compile(
    rb'\{\s*"(?!%b"\s*:)[^"\\]{1,64}"\s*:|\[\s*\{\s*"%b"\s*:'
    % (EVENT_KEY_PATTERN, EVENT_KEY_PATTERN)
)
"""Matches the start of another trace after a trace: an object that is no event, or a list of
events.
"""


@dataclass(slots=True)
class ParsedTrace:
    """A parsed trace: columns of each chunk of events, the other top-level keys, and faults."""

    chunks: list[ChunkEventColumns] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    faults: list[FileFault] = field(default_factory=list)
    event_list_count: int = 0
    """The number of lists of events in the trace's text."""


class DecodedChunkReceiver(Protocol):
    """Receives a trace's top-level keys and decoded chunks, in the file's order."""

    def receive_key(self, name: str, value: bytes) -> None:
        """Receives a top-level key and its value as JSON text, repaired if it was damaged."""

    def receive_events(self, decoded: DecodedChunk) -> None:
        """Receives the next chunk of decoded events."""


def parse_first_trace(
    text_blocks: Iterator[bytes],
    decoder: ChunkDecoder,
    event_receiver: DecodedChunkReceiver | None = None,
) -> ParsedTrace:
    """Parses the first trace in a text; passes its events to `event_receiver` if that is given.

    Further traces in the text are skipped; a fault counts their events.
    """
    text = TextWindow(text_blocks)
    faults = _skip_to_trace_start(text)
    reader = _TraceReader(text, decoder, event_receiver)
    reader.document.faults += faults
    document = reader.read_trace()
    if reader.skip_text_after_trace():
        reader.skip_rest_and_count_lost_events("another trace follows: left out")
    return document


def parse_all_traces(text: TextWindow, decoder: ChunkDecoder) -> list[ParsedTrace]:
    """Parses every trace in a text, and returns them in the text's order."""
    faults = _skip_to_trace_start(text)
    traces: list[ParsedTrace] = []
    has_more = True
    while has_more:
        reader = _TraceReader(text, decoder, None)
        reader.document.faults += [] if traces else faults
        trace = reader.read_trace()
        has_more = reader.skip_text_after_trace()
        if trace.chunks or not traces:
            traces.append(trace)
        else:
            traces[0].faults.append(FileFault(TEXT_AFTER_TRACE_FAULT, text.offset))
    return traces


def is_decoded_in_chunks(text_bytes: int | None) -> bool:
    """Returns whether a text of `text_bytes` bytes is decoded in more than one chunk."""
    return text_bytes is not None and text_bytes > EVENT_CHUNK_BYTES


def _skip_to_trace_start(text: TextWindow) -> list[FileFault]:
    """Skips to the start of the first trace; returns faults that describe the text before it."""
    text.wait_for_more(_BYTES_READ_TO_DETECT_FORMAT)
    if text.unread_text.startswith(_UTF8_BYTE_ORDER_MARK):
        text.skip_bytes(len(_UTF8_BYTE_ORDER_MARK))
    head = text.unread_text[:_BYTES_READ_TO_DETECT_FORMAT]
    if not text.peek_byte():
        raise UnreadableTrace(
            "the file holds only white space" if text.offset else "the file is empty"
        )
    what = description_of_other_format(
        head if head.strip() else text.unread_text[:_BYTES_READ_TO_DETECT_FORMAT]
    )
    before = _skip_text_before_trace(text) if is_generic_format_description(what) else []
    if what and not before:
        raise UnreadableTrace(f"it is {what}")
    if _START_OF_LIST_OF_TRACES.match(text.unread_text):
        text.skip_bytes(1)
        text.peek_byte()
    return before


def _skip_text_before_trace(text: TextWindow) -> list[FileFault]:
    """Skips text before the first trace or event; returns a fault for it, if there was any."""
    text.wait_for_more(_BYTES_SEARCHED_FOR_TRACE_START)
    found = _START_OF_TRACE_OR_EVENT.search(text.unread_text, 0, _BYTES_SEARCHED_FOR_TRACE_START)
    if found is None:
        return []
    sample = text.unread_text[:_FAULT_EXAMPLE_BYTES].decode("utf-8", "backslashreplace")
    fault = FileFault("text before the trace: left out", text.offset, 0, sample)
    text.skip_bytes(found.start())
    return [fault]


class _TraceReader:
    """Reads one trace of a text: its top-level keys, and its events chunk by chunk."""

    def __init__(
        self, text: TextWindow, decoder: ChunkDecoder, event_receiver: DecodedChunkReceiver | None
    ) -> None:
        self.text, self.decoder, self.event_receiver = text, decoder, event_receiver
        self.document = ParsedTrace()
        self.key_reader = TopLevelKeyReader(text, self, lambda: self.document.event_list_count > 0)
        self.chunk_bytes = EVENT_CHUNK_BYTES

    def add_fault(self, message: str, *, lost_events: int = 0) -> None:
        sample = self.text.unread_text[:_FAULT_EXAMPLE_BYTES].decode("utf-8", "backslashreplace")
        self.document.faults.append(FileFault(message, self.text.offset, lost_events, sample))

    def add_key(self, name: str, value: bytes) -> None:
        self.document.metadata[name] = msgspec.json.decode(value)
        if self.event_receiver is not None:
            self.event_receiver.receive_key(name, value)

    def read_trace(self) -> ParsedTrace:
        """Returns the trace that begins at the current offset of the text."""
        mark = self.text.peek_byte()
        if EVENT_START.match(
            self.text.unread_text
        ):  # a list without its `[`, or one event per line
            self.add_fault("the text begins within a list of events")
            self.read_events()
            return self.document
        self.text.skip_bytes(1)
        if mark == b"[":
            self.read_events()
        else:
            self.key_reader.read_keys()
        return self.document

    def skip_text_after_trace(self) -> bool:
        """Skips the text after a trace; returns whether another trace follows.

        Events in that text are read: if several processes wrote to one file, the end of one trace
        stands among the events of the others.
        """
        while self.text.peek_byte():
            has_several_writers = self._has_several_writers()
            if not has_several_writers and _START_OF_NEXT_TRACE.match(self.text.unread_text):
                break
            continuation = (
                _START_OF_NEXT_TRACE_OR_EVENT
                if self.document.event_list_count
                else _START_OF_TRACE_OR_EVENT_LIST
            )
            match = continuation.search(self.text.unread_text)
            if match is None:
                self._skip_and_report_text(
                    len(self.text.unread_text)
                    - (
                        0
                        if self.text.has_arrived_completely
                        else _BYTES_SEARCHED_AGAIN_WITH_NEXT_BLOCK
                    )
                )
                self.text.wait_for_more()
                continue
            self._skip_and_report_text(match.end())
            if TRACE_START.match(self.text.unread_text) is None:
                self.add_fault("events after the end of the trace: read")
                self.read_events()
            elif has_several_writers:
                self.add_fault(ANOTHER_TRACE_FAULT)
                self.text.skip_bytes(1)
                self.key_reader.read_keys()
            else:
                break
        self._handle_several_writers()
        return bool(self.text.peek_byte())

    def skip_rest_and_count_lost_events(self, message: str) -> None:
        """Skips the rest of the text, and adds a fault that counts the events in it as lost."""
        self.add_fault(message)
        while self.text.unread_text:
            found = self.document.faults[-1]
            lost = len(TEXT_BEFORE_EVENT.findall(self.text.unread_text))
            self.document.faults[-1] = found._replace(lost=found.lost + lost)
            self.text.skip_bytes(len(self.text.unread_text))
            self.text.wait_for_more()

    def _skip_and_report_text(self, byte_count: int) -> None:
        text = self.text.unread_text[: max(byte_count, 0)]
        if text.strip():
            is_nul = not text.strip(b"\x00 \t\r\n")
            message = "NUL bytes: left out" if is_nul else TEXT_AFTER_TRACE_FAULT
            if not self.document.faults or self.document.faults[-1].fault != message:
                self.add_fault(message)
        self.text.skip_bytes(len(text))

    def _has_several_writers(self) -> bool:
        return several_writers_fault(self.document.faults) is not None

    def _handle_several_writers(self) -> None:
        fault = several_writers_fault(self.document.faults)
        if fault is not None:
            self.document.faults.append(fault)
            erase_ids_within_processes(self.document.chunks)

    def read_events(self) -> None:
        """Reads the events up to the end of their list, decoding several chunks in parallel."""
        self.document.event_list_count += 1
        waiting: deque[_PendingChunk] = deque()
        exhausted = False
        while True:
            while not exhausted and len(waiting) < 2 * self.decoder.width:
                offset, chunk = self.text.offset, self._take_next_chunk()
                if chunk:
                    waiting.append((offset, chunk, self._start_decoding(chunk)))
                exhausted = not chunk
            if not waiting:
                self.add_fault("the file ends without `]`")
                return
            offset, chunk, future = waiting.popleft()
            decoded = future.result()
            self.text.note_chunk_digest(chunk, decoded.digest)
            self._add_decoded_chunk(decoded, offset)
            if decoded.is_list_ended:
                self._resume_in_chunk(chunk, offset, decoded.unread_offset, waiting)
                return
            if decoded.unread_offset:
                self.chunk_bytes = EVENT_CHUNK_BYTES
            if decoded.unread_offset < len(chunk):  # the cut was inside an event
                self._resume_in_chunk(chunk, offset, decoded.unread_offset, waiting)
                exhausted = False
                if decoded.unread_offset == 0:  # one event is longer than the chunk
                    self.chunk_bytes = 2 * max(self.chunk_bytes, len(chunk))

    def _start_decoding(self, chunk: TextChunk) -> "Future[DecodedChunk]":
        return self.decoder.submit(chunk, is_last_chunk=self.text.is_read_completely)

    def _add_decoded_chunk(self, decoded: DecodedChunk, chunk_offset: int) -> None:
        if self.event_receiver is None:
            self.document.chunks.append(decoded.columns)
        else:
            self.event_receiver.receive_events(decoded)
        self.document.faults += [
            fault._replace(offset=fault.offset + chunk_offset if fault.offset >= 0 else -1)
            for fault in decoded.faults
        ]

    def _resume_in_chunk(
        self,
        chunk: TextChunk,
        chunk_offset: int,
        resume_at: int,
        waiting: "deque[_PendingChunk]",
    ) -> None:
        """Makes the rest of a chunk, and all chunks in `waiting`, unread again."""
        self.text.put_back(
            [chunk, *(later_chunk for _, later_chunk, _ in waiting)], chunk_offset, resume_at
        )
        waiting.clear()

    def _take_next_chunk(self) -> TextChunk:
        """Consumes about `EVENT_CHUNK_BYTES` of text, cut between two events; b"" at the end."""
        text = self.text
        begin = max(0, self.chunk_bytes - _BYTES_SEARCHED_FOR_EVENT_BORDER)
        near = text.peek_range(begin, self.chunk_bytes + _BYTES_CHECKED_AFTER_BORDER)
        cut = _last_event_border(near, self.chunk_bytes - begin) if near is not None else 0
        if cut:
            return text.take_bytes(begin + cut)
        while True:
            while len(text.unread_text) < self.chunk_bytes and text.wait_for_more(
                self.chunk_bytes - len(text.unread_text)
            ):
                pass
            if len(text.unread_text) <= self.chunk_bytes and text.has_arrived_completely:
                break
            cut = _last_event_border(text.unread_text, self.chunk_bytes) or _last_event_border(
                text.unread_text, len(text.unread_text)
            )
            if cut:
                return text.take_bytes(cut)
            if not text.wait_for_more(len(text.unread_text)):
                break
        return text.take_bytes(len(text.unread_text))


def _last_event_border(text: bytes, end_offset: int) -> int:
    """Returns the last offset up to `end_offset` that seems to be between events; 0 if none."""
    for border_pattern in (_TEXT_BETWEEN_EVENTS, _TEXT_BETWEEN_OBJECTS):
        for search_start in (max(0, end_offset - _BYTES_SEARCHED_FOR_EVENT_BORDER), 0):
            border = 0
            for match in border_pattern.finditer(
                text, search_start, end_offset + _BYTES_CHECKED_AFTER_BORDER
            ):
                if match.end() <= end_offset:
                    border = match.end()
            if border:
                return border
    return 0
