"""The top-level keys of a trace's text, and the way to its events, wherever they stand.

Kineto's events are the value of a top-level key. Other writers nest the whole trace in something
else, and damage hides a key or its end: then reading goes on where events are.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from selftime.ingest.damage.mend import mend
from selftime.ingest.damage.recover import EVENT_KEYS
from selftime.ingest.events.event import MALFORMED
from selftime.ingest.text.window import EVENTS_KEY, Text

_EVENTS: Final = "traceEvents"
_EXAMPLE: Final = 80
_DEEPEST: Final = 16
"""Levels that events are looked for in, key by key."""
_CHANGED: Final = 2
"""Characters in which a damaged key may differ from what it was."""
_MOST_BETWEEN: Final = 256
"""Bytes between the key of the events and the first of them: a bracket and some indentation."""
_KEPT: Final = 64
"""Bytes of a window that are kept when more arrives: what is looked for may have begun in them."""

EVENT: Final = re.compile(
    rb'\{\s*(?:"[^"\\]{1,32}"\s*:\s*(?:"[^"\\]*"|[-\d.]+)\s*,\s*){0,8}"ph"\s*:\s*"'
)
"""An event: it has a phase among its first fields."""

_DAMAGED_BEGIN: Final = re.compile(rb'[^,:]{0,%d}?(?=\{\s*"%b"\s*:)' % (_MOST_BETWEEN, EVENT_KEYS))
"""What may stand between the key of the events and the first of them."""

_EVENT_OR_KEY: Final = re.compile(rb'\{\s*"(?:ph|cat|name|pid|tid|ts)"\s*:|"traceEvents"\s*:\s*\[')
"""What may be read behind damaged text."""


class Taker(Protocol):
    """Takes the keys' values and faults; reads the events."""

    def fault(self, what: str, *, lost: int = 0) -> None: ...

    def keep_key(self, name: str, value: bytes) -> None:
        """Raises one of `MALFORMED` for a value that is no JSON."""

    def read_events(self) -> None: ...


class Keys:
    """Reads an object's keys from a text, and hands them to a taker."""

    def __init__(self, text: Text, taker: Taker, found_events: Callable[[], bool]) -> None:
        self.text, self.taker, self.found_events = text, taker, found_events
        self.path: list[str] = []

    def read(self) -> None:
        """The keys of the object whose begin was read, and its events where they come."""
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
        """Leave out damaged text; whether the key of the events follows it.

        Events whose key is damaged, too, are read from here.
        """
        while True:
            found = _EVENT_OR_KEY.search(self.text.window)
            if found is not None:
                self.taker.fault("text among the keys that is not JSON: left out")
                self.text.drop(found.start())
                if found[0].startswith(b"{"):
                    self.taker.read_events()
                return True
            self.text.drop(max(len(self.text.window) - _KEPT, 0))
            if not self.text.more():
                return False

    def _read_value(self, key: bytes) -> None:
        name, mark = _name(key), self.text.peek()
        if name == _EVENTS and mark == b"[":
            self._read_events(name, 1)
            return
        if _nearly(key):
            while len(self.text.window) < _KEPT * _EXAMPLE and self.text.more():
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
        """The events behind so many bytes."""
        if name != _EVENTS:
            self.taker.fault(f"events under the key `{shown(name)}`: read")
        if self.path:
            path = ".".join(map(shown, self.path))
            self.taker.fault(f"`traceEvents` stands inside `{path}`: read from there")
        self.text.drop(behind)
        self.taker.read_events()

    def _descend(self, name: str) -> None:
        """Read the events that stand somewhere inside a value, and the keys beside them."""
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
            elif mark in (b"]", b"") or not self._pass_member():
                self.text.drop(1)
                return

    def _pass_member(self) -> bool:
        """Read on behind a list's member; or behind a key, of a list whose end is lost."""
        member = self.text.take_value()
        if member and member.startswith(b'"') and self.text.peek() == b":":
            self.text.drop(1)
            self._read_value(member)
        return bool(member)

    def _read_unended(self, name: str) -> None:
        if not self.found_events() and _EVENT_OR_KEY.search(self.text.window):
            self._find_events()
            return
        self.taker.fault(f"the file ends inside `{shown(name)}`")
        self.text.drop(len(self.text.window))

    def _keep(self, name: str, value: bytes) -> None:
        try:
            self.taker.keep_key(name, value)
        except MALFORMED:
            mended, faults = mend(value)
            try:
                self.taker.keep_key(name, mended)
            except MALFORMED:
                self.taker.fault(f"the key `{shown(name)}` is not JSON: left out")
            else:
                for fault in faults:
                    self.taker.fault(f"the key `{shown(name)}`: {fault}")


def _nearly(key: bytes) -> bool:
    """Whether a key may be that of the events with a byte or two changed."""
    wanted = b'"%b"' % _EVENTS.encode()
    same = sum(a == b for a, b in zip(key, wanted, strict=False))
    return len(key) == len(wanted) and same >= len(wanted) - _CHANGED


def shown(name: str) -> str:
    """A key as messages show it: short, and with escapes for what cannot be printed."""
    return repr(name[:_EXAMPLE])[1:-1]


def _name(key: bytes) -> str:
    try:
        return str(msgspec.json.decode(mend(key)[0]))
    except MALFORMED:
        return key.decode("utf-8", "backslashreplace")
