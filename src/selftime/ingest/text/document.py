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
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from selftime.errors import UnreadableTrace
from selftime.ingest.damage.doubtful import mixed_fault, unlink
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import ANOTHER, EVENT_BEGIN, EVENT_KEYS, HEADER
from selftime.ingest.events.columns import ChunkColumns
from selftime.ingest.events.decode import Decoded
from selftime.ingest.text.hashed import Part
from selftime.ingest.text.keys import EVENT, Keys
from selftime.ingest.text.sniff import foreign, is_vague
from selftime.ingest.text.window import Text
from selftime.ingest.workers import Decoder

CHUNK: Final = 8 << 20
"""Bytes of text that are decoded at once."""

_CUT: Final = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|args)"\s*:)')
_ANY_CUT: Final = re.compile(rb"\}\s*,\s*(?=\{)")
_CUT_WINDOW: Final = 1 << 18
_CUT_BEHIND: Final = 64
"""Bytes behind a cut that are looked at: the key with which an event begins."""
_HEAD: Final = 1 << 10
_EXAMPLE: Final = 80
_BOM: Final = b"\xef\xbb\xbf"
AFTER_END: Final = "text after the end: left out"
_KEPT: Final = 1 << 8
"""Bytes of a window that are kept when more arrives: what is looked for may have begun in them."""

_LIST_OF_TRACES: Final = re.compile(rb"\[\s*(?=%b)" % HEADER.pattern)
_Waiting: TypeAlias = "tuple[int, bytes | Part, Future[Decoded]]"
"""A chunk in work: where it begins, and what it is."""

_AGAIN: Final = re.compile(rb"(?=%b)|%b" % (HEADER.pattern, EVENT_BEGIN.pattern))
"""What is read behind the end of a trace: another, or its events."""
_FIRST: Final = re.compile(rb"(?=%b)|\[\s*(?=%b)" % (HEADER.pattern, EVENT.pattern))
"""What is read behind an object without events: a trace, or a list of events."""

_BEGIN: Final = re.compile(rb"(?=%b)|(?=%b)" % (HEADER.pattern, EVENT.pattern))
_BEGINNING: Final = 1 << 20
"""Bytes in which a trace is looked for where a file does not begin with one."""
_ANY_TRACE: Final = re.compile(
    rb'\{\s*"(?!%b"\s*:)[^"\\]{1,64}"\s*:|\[\s*\{\s*"%b"\s*:' % (EVENT_KEYS, EVENT_KEYS)
)
"""An object that is no event, or a list of events: where a trace has just ended, another."""


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
    """Read the trace in a text; its chunks go to `parts` if that is given, and are not kept.

    Other traces behind the first are left out, and counted.
    """
    text = Text(blocks)
    faults = _begun(text)
    reader = _Reader(text, decoder, parts)
    reader.document.faults += faults
    document = reader.read()
    if reader.leave_tail():
        reader.leave_rest("another trace follows: left out")
    return document


def read_documents(text: Text, decoder: Decoder) -> list[Document]:
    """Read a whole text, which may hold several traces, one after another."""
    faults = _begun(text)
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
            documents[0].faults.append(Fault(AFTER_END, text.offset))
    return documents


def in_chunks(size: int | None) -> bool:
    """Whether a text of so many bytes, if known, is decoded in several chunks."""
    return size is not None and size > CHUNK


def _begun(text: Text) -> list[Fault]:
    """Read on to the begin of what may be a trace, and what stood before it."""
    text.more(_HEAD)
    if text.window.startswith(_BOM):
        text.drop(len(_BOM))
    head = text.window[:_HEAD]
    if not text.peek():
        blank = "holds only white space" if text.offset else "is empty"
        raise UnreadableTrace(f"the file {blank}")
    what = foreign(head if head.strip() else text.window[:_HEAD])
    before = _leave_beginning(text) if is_vague(what) else []
    if what and not before:
        raise UnreadableTrace(f"it is {what}")
    if _LIST_OF_TRACES.match(text.window):
        text.drop(1)
        text.peek()
    return before


def _leave_beginning(text: Text) -> list[Fault]:
    """Read on to where events or a trace begin, behind lines of a log or a lost beginning."""
    text.more(_BEGINNING)
    found = _BEGIN.search(text.window, 0, _BEGINNING)
    if found is None:
        return []
    sample = text.window[:_EXAMPLE].decode("utf-8", "backslashreplace")
    fault = Fault("text before the trace: left out", text.offset, 0, sample)
    text.drop(found.start())
    return [fault]


class _Reader:
    """Reads one trace of a text."""

    def __init__(self, text: Text, decoder: Decoder, parts: Parts | None) -> None:
        self.text, self.decoder, self.parts = text, decoder, parts
        self.document = Document()
        self.keys = Keys(text, self, lambda: self.document.arrays > 0)
        self.least = CHUNK

    def fault(self, what: str, *, lost: int = 0) -> None:
        sample = self.text.window[:_EXAMPLE].decode("utf-8", "backslashreplace")
        self.document.faults.append(Fault(what, self.text.offset, lost, sample))

    def keep_key(self, name: str, value: bytes) -> None:
        self.document.metadata[name] = msgspec.json.decode(value)
        if self.parts is not None:
            self.parts.key(name, value)

    def read(self) -> Document:
        """The document that begins here."""
        mark = self.text.peek()
        if EVENT.match(self.text.window):  # a list whose begin is missing, or an event on each line
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
        """Read to where another trace begins; whether one does. Nothing else should follow.

        Events that follow are read: where several processes wrote to one file, the end of one's
        trace stands among the events of the others.
        """
        while self.text.peek():
            mixed = self._is_mixed()
            if not mixed and _ANY_TRACE.match(self.text.window):
                break
            again = _AGAIN if self.document.arrays else _FIRST
            found = again.search(self.text.window)
            if found is None:
                self._leave_out(len(self.text.window) - (0 if self.text.complete else _KEPT))
                self.text.more()
                continue
            self._leave_out(found.end())
            if HEADER.match(self.text.window) is None:
                self.fault("events after the end of the trace: read")
                self.read_events()
            elif mixed:
                self.fault(ANOTHER)
                self.text.drop(1)
                self.keys.read()
            else:
                break
        self._judge()
        return bool(self.text.peek())

    def leave_rest(self, what: str) -> None:
        """Read the text to its end, for nothing but how many events it holds."""
        self.fault(what)
        while self.text.window:
            found = self.document.faults[-1]
            lost = len(EVENT_BEGIN.findall(self.text.window))
            self.document.faults[-1] = found._replace(lost=found.lost + lost)
            self.text.drop(len(self.text.window))
            self.text.more()

    def _leave_out(self, count: int) -> None:
        text = self.text.window[: max(count, 0)]
        if text.strip():
            nul = not text.strip(b"\x00 \t\r\n")
            what = "NUL bytes: left out" if nul else AFTER_END
            if not self.document.faults or self.document.faults[-1].fault != what:
                self.fault(what)
        self.text.drop(len(text))

    def _is_mixed(self) -> bool:
        return mixed_fault(self.document.faults) is not None

    def _judge(self) -> None:
        fault = mixed_fault(self.document.faults)
        if fault is not None:
            self.document.faults.append(fault)
            unlink(self.document.chunks)

    def read_events(self) -> None:
        """The events up to the end of their array, several chunks in work at once."""
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
            self.text.was_read(chunk, decoded.digest)
            self._keep(decoded, offset)
            if decoded.ended:
                self._give_back(chunk, offset, decoded.rest, waiting)
                return
            if decoded.rest:
                self.least = CHUNK
            if decoded.rest < len(chunk):  # the cut was inside an event
                self._give_back(chunk, offset, decoded.rest, waiting)
                exhausted = False
                if decoded.rest == 0:  # one event is longer than the chunk
                    self.least = 2 * max(self.least, len(chunk))

    def _submit(self, chunk: bytes | Part) -> "Future[Decoded]":
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

    def _give_back(
        self, chunk: bytes | Part, offset: int, rest: int, waiting: "deque[_Waiting]"
    ) -> None:
        """Read on from there, within a chunk; those that were taken after it are for nothing."""
        self.text.give_back([chunk, *(later for _, later, _ in waiting)], offset, rest)
        waiting.clear()

    def _take_chunk(self) -> bytes | Part:
        """Text up to between two events, about `CHUNK` bytes of it; empty at the end."""
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
    """The last place before `upto` that seems to lie between two events; 0 if there is none."""
    for pattern in (_CUT, _ANY_CUT):
        for begin in (max(0, upto - _CUT_WINDOW), 0):
            cut = 0
            for match in pattern.finditer(window, begin, upto + _CUT_BEHIND):
                if match.end() <= upto:
                    cut = match.end()
            if cut:
                return cut
    return 0
