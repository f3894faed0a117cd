"""Reads the top-level keys of a JSON trace, and finds its events even if they are nested.

Kineto's events are the value of a top-level key. Other writers nest the whole trace in another
object, and damage can hide a key or its end: reading then resumes where events are found.
"""

import re
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from selftime.ingest.damage.event_recovery import EVENT_KEY_PATTERN
from selftime.ingest.damage.repair_json import repair_json
from selftime.ingest.events.event_types import MALFORMED_JSON_ERRORS
from selftime.ingest.text.text_window import EVENTS_KEY, TextWindow

_EVENT_LIST_KEY: Final = "traceEvents"
_MAX_SHOWN_KEY_CHARACTERS: Final = 80
_MAX_SEARCHED_NESTING_DEPTH: Final = 16
"""Largest depth of nested lists and objects that is searched for events."""
_MAX_CHANGED_BYTES_OF_EVENT_LIST_KEY: Final = 2
"""Largest number of bytes in which a damaged key may differ from `traceEvents`."""
_MAX_BYTES_BEFORE_FIRST_EVENT: Final = 256
"""Largest number of bytes between the key `traceEvents` and its first event (bracket and
indentation).
"""
_BYTES_SEARCHED_AGAIN_WITH_NEXT_BLOCK: Final = 64
"""Number of bytes at the end of a block of text that are searched again together with the next
block, for matches that span both.
"""

EVENT_START: Final = re.compile(
    rb'\{\s*(?:"[^"\\]{1,32}"\s*:\s*(?:"[^"\\]*"|[-\d.]+)\s*,\s*){0,8}"ph"\s*:\s*"'
)
"""Matches the start of an event: an object whose first keys include the phase `ph`."""

_DAMAGED_TEXT_BEFORE_FIRST_EVENT: Final = re.compile(
    rb'[^,:]{0,%d}?(?=\{\s*"%b"\s*:)' % (_MAX_BYTES_BEFORE_FIRST_EVENT, EVENT_KEY_PATTERN)
)
"""Matches damaged text between the key `traceEvents` and the first event."""

_START_OF_EVENT_OR_EVENT_LIST: Final = re.compile(
    rb'\{\s*"(?:ph|cat|name|pid|tid|ts)"\s*:|"traceEvents"\s*:\s*\['
)
"""Matches the start of an event, or the key `traceEvents`; reading resumes there after damaged
text.
"""


class TopLevelKeyReceiver(Protocol):
    """Receives the top-level keys of a trace and their faults, and reads its events."""

    def add_fault(self, message: str, *, lost_events: int = 0) -> None: ...

    def add_key(self, name: str, value: bytes) -> None:
        """Receives a key and its value; raises a JSON error if the value is not JSON."""

    def read_events(self) -> None: ...


class TopLevelKeyReader:
    """Reads the keys of a JSON object from a text, and passes keys and values to a receiver."""

    def __init__(
        self, text: TextWindow, receiver: TopLevelKeyReceiver, has_found_events: Callable[[], bool]
    ) -> None:
        self.text, self.receiver, self.has_found_events = text, receiver, has_found_events
        self.path: list[str] = []

    def read_keys(self) -> None:
        """Reads the keys of the JSON object whose `{` was just read, and the events among them."""
        while True:
            mark = self.text.peek_byte()
            if mark in (b"}", b""):
                if not mark:
                    self.receiver.add_fault("the file ends without `}`")
                self.text.skip_bytes(1)
                return
            if mark == b",":
                self.text.skip_bytes(1)
                continue
            key = self.text.take_value() if mark == b'"' else None
            if not key or self.text.peek_byte() != b":":
                if self.has_found_events() or not self._skip_to_events():
                    self.receiver.add_fault("the rest of the file is not JSON")
                    return
                continue
            self.text.skip_bytes(1)
            self._read_value(key)

    def _skip_to_events(self) -> bool:
        """Skips damaged text; returns whether events or the key `traceEvents` follow.

        If that key is damaged too, the events are read by this method.
        """
        while True:
            found = _START_OF_EVENT_OR_EVENT_LIST.search(self.text.unread_text)
            if found is not None:
                self.receiver.add_fault("text among the top-level keys that is not JSON: left out")
                self.text.skip_bytes(found.start())
                if found[0].startswith(b"{"):
                    self.receiver.read_events()
                return True
            self.text.skip_bytes(
                max(len(self.text.unread_text) - _BYTES_SEARCHED_AGAIN_WITH_NEXT_BLOCK, 0)
            )
            if not self.text.wait_for_more():
                return False

    def _read_value(self, key_json: bytes) -> None:
        name, mark = _decode_key(key_json), self.text.peek_byte()
        if name == _EVENT_LIST_KEY and mark == b"[":
            self._read_events(name, 1)
            return
        if _resembles_event_list_key(key_json):
            while (
                len(self.text.unread_text)
                < _BYTES_SEARCHED_AGAIN_WITH_NEXT_BLOCK * _MAX_SHOWN_KEY_CHARACTERS
                and self.text.wait_for_more()
            ):
                pass
            begin = _DAMAGED_TEXT_BEFORE_FIRST_EVENT.match(self.text.unread_text)
            if begin is not None:
                if name == _EVENT_LIST_KEY:
                    self.receiver.add_fault(
                        "the start of the list of events is damaged: its events are read"
                    )
                self._read_events(name, begin.end())
                return
        value = self.text.take_value()
        if value == b"":
            self._read_nested_value(name)
        elif value is None:
            self._recover_from_value_without_end(name)
        else:
            self._pass_on_key(name, value)

    def _read_events(self, key: str, bytes_before_events: int) -> None:
        """Skips `bytes_before_events` bytes, and reads the list of events that follows."""
        if key != _EVENT_LIST_KEY:
            self.receiver.add_fault(f"events under the key `{printable_json_key(key)}`: read")
        if self.path:
            path = ".".join(map(printable_json_key, self.path))
            self.receiver.add_fault(f"`traceEvents` is nested inside `{path}`: read from there")
        self.text.skip_bytes(bytes_before_events)
        self.receiver.read_events()

    def _read_nested_value(self, key: str) -> None:
        """Reads a value that has a list of events somewhere inside: these events and other keys."""
        if len(self.path) == _MAX_SEARCHED_NESTING_DEPTH:
            found = EVENTS_KEY.search(self.text.unread_text)
            self.text.skip_bytes(found.start() if found else 0)
            return
        self.path.append(key)
        opening = self.text.peek_byte()
        self.text.skip_bytes(1)
        if opening == b"{":
            self.read_keys()
        else:
            self._read_nested_list()
        self.path.pop()

    def _read_nested_list(self) -> None:
        while True:
            mark = self.text.peek_byte()
            if mark == b"{":
                self.text.skip_bytes(1)
                self.read_keys()
            elif mark == b",":
                self.text.skip_bytes(1)
            elif mark in (b"]", b"") or not self._skip_list_member():
                self.text.skip_bytes(1)
                return

    def _skip_list_member(self) -> bool:
        """Skips one list item; if a colon follows, the item is a key, and its value is read too."""
        member = self.text.take_value()
        if member and member.startswith(b'"') and self.text.peek_byte() == b":":
            self.text.skip_bytes(1)
            self._read_value(member)
        return bool(member)

    def _recover_from_value_without_end(self, key: str) -> None:
        if not self.has_found_events() and _START_OF_EVENT_OR_EVENT_LIST.search(
            self.text.unread_text
        ):
            self._skip_to_events()
            return
        self.receiver.add_fault(f"the file ends inside `{printable_json_key(key)}`")
        self.text.skip_bytes(len(self.text.unread_text))

    def _pass_on_key(self, key: str, value: bytes) -> None:
        try:
            self.receiver.add_key(key, value)
        except MALFORMED_JSON_ERRORS:
            mended, faults = repair_json(value)
            try:
                self.receiver.add_key(key, mended)
            except MALFORMED_JSON_ERRORS:
                self.receiver.add_fault(
                    f"the key `{printable_json_key(key)}` is not JSON: left out"
                )
            else:
                for fault in faults:
                    self.receiver.add_fault(f"the key `{printable_json_key(key)}`: {fault}")


def _resembles_event_list_key(key_json: bytes) -> bool:
    """Returns whether a key differs from `traceEvents` in at most two bytes."""
    wanted = b'"%b"' % _EVENT_LIST_KEY.encode()
    same = sum(a == b for a, b in zip(key_json, wanted, strict=False))
    return (
        len(key_json) == len(wanted) and same >= len(wanted) - _MAX_CHANGED_BYTES_OF_EVENT_LIST_KEY
    )


def printable_json_key(key: str) -> str:
    """Returns a key as shown in messages: shortened, with unprintable characters escaped."""
    return repr(key[:_MAX_SHOWN_KEY_CHARACTERS])[1:-1]


def _decode_key(key_json: bytes) -> str:
    try:
        return str(msgspec.json.decode(repair_json(key_json)[0]))
    except MALFORMED_JSON_ERRORS:
        return key_json.decode("utf-8", "backslashreplace")
