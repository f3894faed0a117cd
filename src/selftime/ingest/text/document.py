"""Parse a trace file's text: its top-level keys, and its events in independent chunks.

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
from selftime.ingest.damage.ambiguous import erase_ids, mixed_fault
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import ANOTHER_TRACE, BEFORE_EVENT, EVENT_KEYS, HEADER
from selftime.ingest.events.columns import ChunkColumns
from selftime.ingest.events.decode import Decoded
from selftime.ingest.text.hashed_file import FilePart
from selftime.ingest.text.sniff import foreign_format, is_unspecific
from selftime.ingest.text.top_level_keys import EVENT_START, Keys
from selftime.ingest.text.window import TextWindow
from selftime.ingest.workers import Decoder

CHUNK_BYTES: Final = 8 << 20
"""Size of a chunk of text that is decoded at once, in bytes."""

_CUT: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|args)"\s*:)')
_ANY_CUT: Final = re.compile(rb"\}\s*,\s*(?=\{)")
_CUT_WINDOW: Final = 1 << 18
_CUT_BEHIND: Final = 64
"""Bytes after a cut that are checked for the first key of an event."""
_HEAD: Final = 1 << 10
_EXAMPLE: Final = 80
_BOM: Final = b"\xef\xbb\xbf"
TEXT_AFTER_END: Final = "text after the end: left out"
_OVERLAP: Final = 1 << 8
"""Bytes at a window's end that are searched again with the next block: a match may span both."""

_LIST_OF_TRACES: Final = re.compile(rb"\[\s*(?=%b)" % HEADER.pattern)
_Waiting: TypeAlias = "tuple[int, bytes | FilePart, Future[Decoded]]"
"""A chunk being decoded: its offset in bytes, its text, and its result."""

_NEXT_TRACE_OR_EVENTS: Final = re.compile(rb"(?=%b)|%b" % (HEADER.pattern, BEFORE_EVENT.pattern))
"""What may follow the end of a trace: another trace, or more of its events."""
_TRACE_OR_EVENT_LIST: Final = re.compile(
    rb"(?=%b)|\[\s*(?=%b)" % (HEADER.pattern, EVENT_START.pattern)
)
"""What may follow an object without events: a trace, or a list of events."""

_TRACE_OR_EVENT: Final = re.compile(rb"(?=%b)|(?=%b)" % (HEADER.pattern, EVENT_START.pattern))
_BEGIN_SEARCHED: Final = 1 << 20
"""Bytes that are searched for a trace if the file does not begin with one."""
_ANOTHER_TRACE: Final = re.compile(
    rb'\{\s*"(?!%b"\s*:)[^"\\]{1,64}"\s*:|\[\s*\{\s*"%b"\s*:' % (EVENT_KEYS, EVENT_KEYS)
)
"""An object that is not an event, or a list of events: after a trace's end, another trace."""


@dataclass(slots=True)
class Document:
    """A parsed file: its events' columns by chunk, its other top-level keys, and its faults."""

    chunks: list[ChunkColumns] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    arrays: int = 0
    """The number of arrays of events in the file."""


class PartReceiver(Protocol):
    """Receives the parts of a file in the file's order."""

    def key(self, name: str, value: bytes) -> None:
        """Receive a top-level key and the text of its value, repaired if it was damaged."""

    def events(self, decoded: Decoded) -> None:
        """Receive the next chunk of decoded events."""


def read_document(
    blocks: Iterator[bytes], decoder: Decoder, parts: PartReceiver | None = None
) -> Document:
    """Read the first trace of a text; chunks go to `parts` if given, and are not kept.

    Further traces in the text are skipped, and counted in a fault.
    """
    text = TextWindow(blocks)
    faults = _skip_to_trace(text)
    reader = _Reader(text, decoder, parts)
    reader.document.faults += faults
    document = reader.read()
    if reader.leave_tail():
        reader.leave_rest("another trace follows: left out")
    return document


def read_documents(text: TextWindow, decoder: Decoder) -> list[Document]:
    """Read a text that may hold several traces, one after another."""
    faults = _skip_to_trace(text)
    documents: list[Document] = []
    more = True
    while more:
        reader = _Reader(text, decoder, None)
        reader.document.faults += [] if documents else faults
        found = reader.read()
        more = reader.leave_tail()
        if found.chunks or not documents:
            documents.append(found)
        else:
            documents[0].faults.append(Fault(TEXT_AFTER_END, text.offset))
    return documents


def is_chunked(size: int | None) -> bool:
    """Returns whether a text of this size in bytes is decoded in several chunks."""
    return size is not None and size > CHUNK_BYTES


def _skip_to_trace(text: TextWindow) -> list[Fault]:
    """Skip to what may be the start of a trace; returns faults for the text before it."""
    text.more(_HEAD)
    if text.window.startswith(_BOM):
        text.drop(len(_BOM))
    head = text.window[:_HEAD]
    if not text.peek():
        blank = "holds only white space" if text.offset else "is empty"
        raise UnreadableTrace(f"the file {blank}")
    what = foreign_format(head if head.strip() else text.window[:_HEAD])
    before = _skip_before_trace(text) if is_unspecific(what) else []
    if what and not before:
        raise UnreadableTrace(f"it is {what}")
    if _LIST_OF_TRACES.match(text.window):
        text.drop(1)
        text.peek()
    return before


def _skip_before_trace(text: TextWindow) -> list[Fault]:
    """Skip log lines or a damaged start before the first events or trace."""
    text.more(_BEGIN_SEARCHED)
    found = _TRACE_OR_EVENT.search(text.window, 0, _BEGIN_SEARCHED)
    if found is None:
        return []
    sample = text.window[:_EXAMPLE].decode("utf-8", "backslashreplace")
    fault = Fault("text before the trace: left out", text.offset, 0, sample)
    text.drop(found.start())
    return [fault]


class _Reader:
    """Reads one trace of a text."""

    def __init__(self, text: TextWindow, decoder: Decoder, parts: PartReceiver | None) -> None:
        self.text, self.decoder, self.parts = text, decoder, parts
        self.document = Document()
        self.keys = Keys(text, self, lambda: self.document.arrays > 0)
        self.least = CHUNK_BYTES

    def fault(self, what: str, *, lost: int = 0) -> None:
        sample = self.text.window[:_EXAMPLE].decode("utf-8", "backslashreplace")
        self.document.faults.append(Fault(what, self.text.offset, lost, sample))

    def keep_key(self, name: str, value: bytes) -> None:
        self.document.metadata[name] = msgspec.json.decode(value)
        if self.parts is not None:
            self.parts.key(name, value)

    def read(self) -> Document:
        """Returns the document that begins at the current offset."""
        mark = self.text.peek()
        if EVENT_START.match(self.text.window):  # a list without its `[`, or one event per line
            self.fault("the text begins within a list of events")
            self.read_events()
            return self.document
        self.text.drop(1)
        if mark == b"[":
            self.read_events()
        else:
            self.keys.read()
        return self.document

    def leave_tail(self) -> bool:
        """Skip the text after the trace; returns whether another trace follows.

        Events in that text are read: if several processes wrote to one file, the end of one trace
        stands among the events of the others.
        """
        while self.text.peek():
            mixed = self._is_mixed()
            if not mixed and _ANOTHER_TRACE.match(self.text.window):
                break
            again = _NEXT_TRACE_OR_EVENTS if self.document.arrays else _TRACE_OR_EVENT_LIST
            found = again.search(self.text.window)
            if found is None:
                self._skip(len(self.text.window) - (0 if self.text.complete else _OVERLAP))
                self.text.more()
                continue
            self._skip(found.end())
            if HEADER.match(self.text.window) is None:
                self.fault("events after the end of the trace: read")
                self.read_events()
            elif mixed:
                self.fault(ANOTHER_TRACE)
                self.text.drop(1)
                self.keys.read()
            else:
                break
        self._check_mixed()
        return bool(self.text.peek())

    def leave_rest(self, what: str) -> None:
        """Skip the rest of the text, and count the events in it as lost."""
        self.fault(what)
        while self.text.window:
            found = self.document.faults[-1]
            lost = len(BEFORE_EVENT.findall(self.text.window))
            self.document.faults[-1] = found._replace(lost=found.lost + lost)
            self.text.drop(len(self.text.window))
            self.text.more()

    def _skip(self, count: int) -> None:
        text = self.text.window[: max(count, 0)]
        if text.strip():
            nul = not text.strip(b"\x00 \t\r\n")
            what = "NUL bytes: left out" if nul else TEXT_AFTER_END
            if not self.document.faults or self.document.faults[-1].fault != what:
                self.fault(what)
        self.text.drop(len(text))

    def _is_mixed(self) -> bool:
        return mixed_fault(self.document.faults) is not None

    def _check_mixed(self) -> None:
        fault = mixed_fault(self.document.faults)
        if fault is not None:
            self.document.faults.append(fault)
            erase_ids(self.document.chunks)

    def read_events(self) -> None:
        """Read the events up to the end of their array, decoding several chunks in parallel."""
        self.document.arrays += 1
        waiting: deque[_Waiting] = deque()
        exhausted = False
        while True:
            while not exhausted and len(waiting) < 2 * self.decoder.width:
                offset, chunk = self.text.offset, self._take_chunk()
                if chunk:
                    waiting.append((offset, chunk, self._submit(chunk)))
                exhausted = not chunk
            if not waiting:
                self.fault("the file ends without `]`")
                return
            offset, chunk, future = waiting.popleft()
            decoded = future.result()
            self.text.note_read(chunk, decoded.digest)
            self._keep(decoded, offset)
            if decoded.ended:
                self._resume_in_chunk(chunk, offset, decoded.rest, waiting)
                return
            if decoded.rest:
                self.least = CHUNK_BYTES
            if decoded.rest < len(chunk):  # the cut was inside an event
                self._resume_in_chunk(chunk, offset, decoded.rest, waiting)
                exhausted = False
                if decoded.rest == 0:  # one event is longer than the chunk
                    self.least = 2 * max(self.least, len(chunk))

    def _submit(self, chunk: bytes | FilePart) -> "Future[Decoded]":
        return self.decoder.submit(chunk, last=self.text.ended)

    def _keep(self, decoded: Decoded, offset: int) -> None:
        if self.parts is None:
            self.document.chunks.append(decoded.columns)
        else:
            self.parts.events(decoded)
        self.document.faults += [
            fault._replace(offset=fault.offset + offset if fault.offset >= 0 else -1)
            for fault in decoded.faults
        ]

    def _resume_in_chunk(
        self, chunk: bytes | FilePart, offset: int, rest: int, waiting: "deque[_Waiting]"
    ) -> None:
        """Resume reading inside a chunk; the chunks taken after it are discarded."""
        self.text.put_back([chunk, *(later for _, later, _ in waiting)], offset, rest)
        waiting.clear()

    def _take_chunk(self) -> bytes | FilePart:
        """Returns about `CHUNK_BYTES` bytes of text, cut between two events; empty at the end."""
        text = self.text
        begin = max(0, self.least - _CUT_WINDOW)
        near = text.ahead(begin, self.least + _CUT_BEHIND)
        cut = _last_cut(near, self.least - begin) if near is not None else 0
        if cut:
            return text.take(begin + cut)
        while True:
            while len(text.window) < self.least and text.more(self.least - len(text.window)):
                pass
            if len(text.window) <= self.least and text.complete:
                break
            cut = _last_cut(text.window, self.least) or _last_cut(text.window, len(text.window))
            if cut:
                return text.take(cut)
            if not text.more(len(text.window)):
                break
        return text.take(len(text.window))


def _last_cut(window: bytes, upto: int) -> int:
    """Returns the last offset before `upto` that seems to lie between two events; 0 if none."""
    for pattern in (_CUT, _ANY_CUT):
        for begin in (max(0, upto - _CUT_WINDOW), 0):
            cut = 0
            for match in pattern.finditer(window, begin, upto + _CUT_BEHIND):
                if match.end() <= upto:
                    cut = match.end()
            if cut:
                return cut
    return 0
