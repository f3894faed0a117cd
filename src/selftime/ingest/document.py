"""A trace file's text from the top: its keys, and its events in chunks that are decoded apart.

Kineto writes one object with `traceEvents` among other keys, in any order; other writers write the
bare array. Nothing is assumed of lines or indentation: chunks are cut where one event seems to
end and another to begin, and decoding proves or refutes the cut.
"""

import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from selftime.errors import UnreadableTrace
from selftime.ingest.columns import ChunkColumns
from selftime.ingest.decode import Decoded
from selftime.ingest.events import MALFORMED
from selftime.ingest.faults import Fault
from selftime.ingest.mend import mend
from selftime.ingest.recover import EVENT_BEGIN
from selftime.ingest.sniff import foreign
from selftime.ingest.text import Text
from selftime.ingest.workers import Decoder

__all__ = ["CHUNK", "Document", "Parts", "read_document"]

CHUNK: Final = 8 << 20
"""Bytes of text that are decoded at once."""

_CUT: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|args)"\s*:)')
_ANY_CUT: Final = re.compile(rb"\}\s*,\s*(?=\{)")
_CUT_WINDOW: Final = 1 << 18
_EVENTS: Final = "traceEvents"
_HEAD: Final = 1 << 10
_EXAMPLE: Final = 80
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Document:
    """What a file holds: its events' columns chunk by chunk, its other keys, and its faults."""

    chunks: list[ChunkColumns] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    arrays: int = 0
    """How many arrays of events were found."""


class Parts(Protocol):
    """Takes what a file holds, part by part and in the file's order."""

    def key(self, name: str, value: bytes) -> None:
        """A top-level key and the text of its value, sound or mended."""

    def events(self, decoded: Decoded) -> None:
        """The next chunk of the events."""


def read_document(
    blocks: Iterator[bytes], decoder: Decoder, parts: Parts | None = None
) -> Document:
    """Read a whole text; its chunks go to `parts` if that is given, and are not kept."""
    text = Text(blocks)
    text.more(_HEAD)
    if text.window.startswith(_BOM):
        text.drop(len(_BOM))
    first = text.peek()
    if not first:
        blank = "holds only white space" if text.offset else "is empty"
        raise UnreadableTrace(f"the file {blank}")
    what = foreign(text.window[:_HEAD])
    if what:
        raise UnreadableTrace(f"it is {what}")
    document = Document()
    reader = _Reader(text, decoder, document, parts)
    text.drop(1)
    if first == b"[":
        reader.read_events()
    else:
        reader.read_keys()
    reader.read_tail()
    return document


class _Reader:
    def __init__(
        self, text: Text, decoder: Decoder, document: Document, parts: Parts | None
    ) -> None:
        self.text, self.decoder, self.document, self.parts = text, decoder, document, parts
        self.least = CHUNK

    def fault(self, what: str, *, lost: int = 0) -> None:
        sample = self.text.window[:_EXAMPLE].decode("utf-8", "backslashreplace")
        self.document.faults.append(Fault(what, self.text.offset, lost, sample))

    def read_keys(self) -> None:
        """The keys of the top-level object; its array of events when it comes."""
        while True:
            mark = self.text.peek()
            if mark in (b"}", b""):
                if not mark:
                    self.fault("the file ends without `}`")
                self.text.drop(1)
                return
            if mark == b",":
                self.text.drop(1)
                continue
            key = self.text.take_value() if mark == b'"' else None
            if key is None or self.text.peek() != b":":
                self.fault("the rest of the file is not JSON")
                return
            self.text.drop(1)
            name = _name(key)
            if name == _EVENTS and self.text.peek() == b"[":
                self.text.drop(1)
                self.read_events()
            else:
                self._read_key(name)

    def read_tail(self) -> None:
        """What follows the document: nothing, or damage; a container is read to its end, too."""
        follows = self.text.peek()
        if follows:
            nul = follows == b"\x00"
            self.fault("NUL bytes: left out" if nul else "text after the end: left out")
            while self.text.window:
                found = self.document.faults[-1]
                lost = len(EVENT_BEGIN.findall(self.text.window))
                self.document.faults[-1] = found._replace(lost=found.lost + lost)
                self.text.drop(len(self.text.window))
                self.text.more()

    def _read_key(self, name: str) -> None:
        value = self.text.take_value()
        if value is None:
            self.fault(f"the file ends inside `{_shown(name)}`")
            self.text.drop(len(self.text.window))
            return
        try:
            self._keep_key(name, value)
        except MALFORMED:
            self._read_damaged(name, value)

    def _keep_key(self, name: str, value: bytes) -> None:
        self.document.metadata[name] = msgspec.json.decode(value)
        if self.parts is not None:
            self.parts.key(name, value)

    def _read_damaged(self, name: str, value: bytes) -> None:
        mended, faults = mend(value)
        try:
            self._keep_key(name, mended)
        except MALFORMED:
            self.fault(f"the key `{_shown(name)}` is not JSON: left out")
        else:
            self.fault(f"the key `{_shown(name)}`: {'; '.join(faults)}")

    def read_events(self) -> None:
        """The events up to the end of their array, several chunks in work at once."""
        self.document.arrays += 1
        waiting: deque[tuple[int, bytes, Future[Decoded]]] = deque()
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
            self._keep(decoded, offset)
            if decoded.ended:
                taken = b"".join([chunk[decoded.rest :], *(c for _, c, _ in waiting)])
                self.text.push_back(taken, offset + decoded.rest)
                return
            if decoded.rest:
                self.least = CHUNK
            if decoded.rest < len(chunk):
                self._carry(chunk, offset, decoded.rest, waiting)
                exhausted = False

    def _submit(self, chunk: bytes) -> "Future[Decoded]":
        return self.decoder.submit(chunk, last=self.text.complete and not self.text.window)

    def _keep(self, decoded: Decoded, offset: int) -> None:
        if self.parts is None:
            self.document.chunks.append(decoded.columns)
        else:
            self.parts.events(decoded)
        self.document.faults += [
            fault._replace(offset=fault.offset + offset if fault.offset >= 0 else -1)
            for fault in decoded.faults
        ]

    def _carry(
        self,
        chunk: bytes,
        offset: int,
        rest: int,
        waiting: "deque[tuple[int, bytes, Future[Decoded]]]",
    ) -> None:
        """The cut was inside an event: read on from that event's begin."""
        taken = b"".join([chunk[rest:], *(c for _, c, _ in waiting)])
        waiting.clear()
        self.text.push_back(taken, offset + rest)
        if rest == 0:  # one event is longer than the chunk
            self.least = 2 * max(self.least, len(chunk))

    def _take_chunk(self) -> bytes:
        """Text up to between two events, about `CHUNK` bytes of it; empty at the end."""
        text = self.text
        while True:
            while len(text.window) < self.least and text.more(self.least - len(text.window)):
                pass
            if len(text.window) <= self.least and text.complete:
                break
            cut = _last_cut(text.window, self.least) or _last_cut(text.window, len(text.window))
            if cut:
                chunk = text.window[:cut]
                text.drop(cut)
                return chunk
            if not text.more(len(text.window)):
                break
        chunk = text.window
        text.drop(len(chunk))
        return chunk


def _shown(name: str) -> str:
    """A key as messages show it: short, and with escapes for what cannot be printed."""
    return repr(name[:_EXAMPLE])[1:-1]


def _name(key: bytes) -> str:
    try:
        return str(msgspec.json.decode(mend(key)[0]))
    except MALFORMED:
        return key.decode("utf-8", "backslashreplace")


def _last_cut(window: bytes, upto: int) -> int:
    """The last place before `upto` that seems to lie between two events; 0 if there is none."""
    for pattern in (_CUT, _ANY_CUT):
        for begin in (max(0, upto - _CUT_WINDOW), 0):
            cut = 0
            for match in pattern.finditer(window, begin, upto + 64):
                if match.end() <= upto:
                    cut = match.end()
            if cut:
                return cut
    return 0
