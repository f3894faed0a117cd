"""Read the top-level keys of a trace's text, and find its events wherever they stand.

Kineto's events are the value of a top-level key. Other writers nest the whole trace in another
object, and damage can hide a key or its end: reading then resumes where events are found.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from selftime.ingest.damage.recover import EVENT_KEYS
from selftime.ingest.damage.repair_json import repair_json
from selftime.ingest.events.event import MALFORMED
from selftime.ingest.text.window import EVENTS_KEY, TextWindow

_EVENTS: Final = "traceEvents"
_EXAMPLE: Final = 80
_DEEPEST: Final = 16
"""The most levels of nesting that are searched for events."""
_CHANGED: Final = 2
"""The most bytes in which a damaged key may differ from `traceEvents`."""
_MOST_BETWEEN: Final = 256
"""The most bytes between the key of the events and the first event: a bracket and indentation."""
_OVERLAP: Final = 64
"""Bytes at a window's end that are searched again with the next block: a match may span both."""

EVENT_START: Final = re.compile(
    rb'\{\s*(?:"[^"\\]{1,32}"\s*:\s*(?:"[^"\\]*"|[-\d.]+)\s*,\s*){0,8}"ph"\s*:\s*"'
)
"""The start of an event: an object with a phase among its first fields."""

_DAMAGED_BEGIN: Final = re.compile(rb'[^,:]{0,%d}?(?=\{\s*"%b"\s*:)' % (_MOST_BETWEEN, EVENT_KEYS))
"""Damaged text between the key of the events and the first event."""

_EVENT_OR_KEY: Final = re.compile(rb'\{\s*"(?:ph|cat|name|pid|tid|ts)"\s*:|"traceEvents"\s*:\s*\[')
"""Where reading can resume after damaged text."""


class KeyReceiver(Protocol):
    """Receives the keys' values and faults, and reads the events."""

    def fault(self, what: str, *, lost: int = 0) -> None: ...

    def keep_key(self, name: str, value: bytes) -> None:
        """Receive a key and its value; raises one of `MALFORMED` if the value is not JSON."""

    def read_events(self) -> None: ...


class Keys:
    """Reads an object's keys from a text, and passes them to a receiver."""

    def __init__(
        self, text: TextWindow, taker: KeyReceiver, found_events: Callable[[], bool]
    ) -> None:
        self.text, self.taker, self.found_events = text, taker, found_events
        self.path: list[str] = []

    def read(self) -> None:
        """Read the keys of the object whose `{` was just read, and its events when they come."""
        while True:
            mark = self.text.peek()
            if mark in (b"}", b""):
                if not mark:
                    self.taker.fault("the file ends without `}`")
                self.text.drop(1)
                return
            if mark == b",":
                self.text.drop(1)
                continue
            key = self.text.take_value() if mark == b'"' else None
            if not key or self.text.peek() != b":":
                if self.found_events() or not self._find_events():
                    self.taker.fault("the rest of the file is not JSON")
                    return
                continue
            self.text.drop(1)
            self._read_value(key)

    def _find_events(self) -> bool:
        """Skip damaged text; returns whether events or the key of the events follow.

        If the key of the events is damaged too, the events are read from here.
        """
        while True:
            found = _EVENT_OR_KEY.search(self.text.window)
            if found is not None:
                self.taker.fault("text among the keys that is not JSON: left out")
                self.text.drop(found.start())
                if found[0].startswith(b"{"):
                    self.taker.read_events()
                return True
            self.text.drop(max(len(self.text.window) - _OVERLAP, 0))
            if not self.text.more():
                return False

    def _read_value(self, key: bytes) -> None:
        name, mark = _name(key), self.text.peek()
        if name == _EVENTS and mark == b"[":
            self._read_events(name, 1)
            return
        if _resembles_events_key(key):
            while len(self.text.window) < _OVERLAP * _EXAMPLE and self.text.more():
                pass
            begin = _DAMAGED_BEGIN.match(self.text.window)
            if begin is not None:
                if name == _EVENTS:
                    self.taker.fault("the begin of the list of events is damaged: read")
                self._read_events(name, begin.end())
                return
        value = self.text.take_value()
        if value == b"":
            self._descend(name)
        elif value is None:
            self._read_unended(name)
        else:
            self._keep(name, value)

    def _read_events(self, name: str, behind: int) -> None:
        """Read the events that begin after `behind` bytes."""
        if name != _EVENTS:
            self.taker.fault(f"events under the key `{printable(name)}`: read")
        if self.path:
            path = ".".join(map(printable, self.path))
            self.taker.fault(f"`traceEvents` stands inside `{path}`: read from there")
        self.text.drop(behind)
        self.taker.read_events()

    def _descend(self, name: str) -> None:
        """Read the events nested somewhere inside a value, and the keys beside them."""
        if len(self.path) == _DEEPEST:
            found = EVENTS_KEY.search(self.text.window)
            self.text.drop(found.start() if found else 0)
            return
        self.path.append(name)
        opening = self.text.peek()
        self.text.drop(1)
        if opening == b"{":
            self.read()
        else:
            self._descend_list()
        self.path.pop()

    def _descend_list(self) -> None:
        while True:
            mark = self.text.peek()
            if mark == b"{":
                self.text.drop(1)
                self.read()
            elif mark == b",":
                self.text.drop(1)
            elif mark in (b"]", b"") or not self._skip_member():
                self.text.drop(1)
                return

    def _skip_member(self) -> bool:
        """Skip a list's member; or read the value of a key, if the list's end is missing."""
        member = self.text.take_value()
        if member and member.startswith(b'"') and self.text.peek() == b":":
            self.text.drop(1)
            self._read_value(member)
        return bool(member)

    def _read_unended(self, name: str) -> None:
        if not self.found_events() and _EVENT_OR_KEY.search(self.text.window):
            self._find_events()
            return
        self.taker.fault(f"the file ends inside `{printable(name)}`")
        self.text.drop(len(self.text.window))

    def _keep(self, name: str, value: bytes) -> None:
        try:
            self.taker.keep_key(name, value)
        except MALFORMED:
            mended, faults = repair_json(value)
            try:
                self.taker.keep_key(name, mended)
            except MALFORMED:
                self.taker.fault(f"the key `{printable(name)}` is not JSON: left out")
            else:
                for fault in faults:
                    self.taker.fault(f"the key `{printable(name)}`: {fault}")


def _resembles_events_key(key: bytes) -> bool:
    """Returns whether a key may be `traceEvents` with a byte or two changed."""
    wanted = b'"%b"' % _EVENTS.encode()
    same = sum(a == b for a, b in zip(key, wanted, strict=False))
    return len(key) == len(wanted) and same >= len(wanted) - _CHANGED


def printable(name: str) -> str:
    """Returns a key for messages: shortened, with escapes for unprintable characters."""
    return repr(name[:_EXAMPLE])[1:-1]


def _name(key: bytes) -> str:
    try:
        return str(msgspec.json.decode(repair_json(key)[0]))
    except MALFORMED:
        return key.decode("utf-8", "backslashreplace")
