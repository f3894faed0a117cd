"""A window on the unread part of a text that arrives in blocks."""

import re
from collections.abc import Iterator
from typing import Final

from selftime.ingest.text.hashed_file import FilePart

EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
"""The key `traceEvents` and the bracket that opens its array."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]+|\\.){0,4096}(")?|[{}\[\]]', re.DOTALL)
"""A bracket or a string. Group 1 is the closing quote; it is missing in a string so long that it
is matched in pieces."""
_INSIDE: Final = re.compile(rb'(?:[^"\\]+|\\.){1,4096}', re.DOTALL)
"""Text within a string; in limited pieces, as `re` needs some hundred bytes per escape."""
_SCALAR: Final = re.compile(rb'[^,}\]\s"\[{]+')
_SPACE: Final = re.compile(rb"\s*")
_OPEN: Final = frozenset(b"{[")
_QUOTE: Final = ord('"')


class TextWindow:
    """The unread part of a text, as much of it as has arrived."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._arrived, self._read = b"", 0
        self.offset = 0
        """The window's first byte as an offset in the whole text."""
        self.complete = False
        """Whether the text has arrived to its end."""

    @property
    def window(self) -> bytes:
        """The unread text; bytes that were read are freed here, not at every step."""
        if self._read:
            self._arrived, self._read = self._arrived[self._read :], 0
        return self._arrived

    @property
    def ended(self) -> bool:
        """Whether the whole text has been read."""
        return self.complete and not self.window

    def more(self, least: int = 1) -> bool:
        """Wait for at least `least` more bytes; returns whether any arrived."""
        parts, got = [self.window], 0
        while got < least and not self.complete:
            block = self._next_block()
            if block is None:
                self.complete = True
            else:
                parts.append(block)
                got += len(block)
        if got:
            self._arrived = b"".join(parts)
        return got > 0

    def drop(self, count: int) -> None:
        """Skip `count` bytes."""
        count = min(count, len(self._arrived) - self._read)
        self._read += count
        self.offset += count

    def _next_block(self) -> bytes | None:
        return next(self._blocks, None)

    def ahead(self, begin: int, end: int) -> bytes | None:  # noqa: ARG002 - for texts in files
        """Returns the text between two distances from here; None if it must be read in order.

        Also None if the text ends before the second distance.
        """
        return None

    def take(self, count: int) -> bytes | FilePart:
        """Read `count` bytes; returns the bytes, or their place in a file."""
        taken = self.window[:count]
        self.drop(len(taken))
        return taken

    def note_read(self, taken: bytes | FilePart, digest: bytes) -> None:
        """Note the SHA-256 of a chunk, computed by the process that has read it."""

    def put_back(self, taken: list[bytes | FilePart], offset: int, rest: int) -> None:
        """Return chunks to the front of the window, except for their first bytes.

        Args:
            taken: The last chunks that were taken, in order.
            offset: The offset of the first chunk.
            rest: The number of its first bytes that are not returned.
        """
        text = b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in taken)
        self._arrived = text[rest:] + self.window
        self.offset = offset + rest

    def peek(self) -> bytes:
        """Returns the next byte that is not white space; empty at the end."""
        while True:
            blank = _SPACE.match(self._arrived, self._read)
            self.drop(blank.end() - self._read if blank else 0)
            mark = self._arrived[self._read : self._read + 1]
            if mark or not self.more():
                return mark

    def take_value(self) -> bytes | None:
        """Returns the next JSON value's text; None if the text ends within it.

        Returns empty bytes, and reads nothing, if the value contains an array of events, which may
        be too large to be read at once.
        """
        if not self.peek():
            return None
        while True:
            end = self._value_end()
            if end == 0:
                return b""
            if end is not None:
                value = self._arrived[self._read : end]
                self.drop(len(value))
                return value
            if not self.more(max(len(self.window), 1)):
                return None

    def _value_end(self) -> int | None:
        text, first = self._arrived, self._arrived[self._read]
        if first not in _OPEN and first != _QUOTE:
            scalar = _SCALAR.match(text, self._read)
            if scalar is None:
                return None
            whole = scalar.end() < len(text) or self.complete
            return scalar.end() if whole else None
        return value_end(text, self._read, stop=EVENTS_KEY)


def value_end(text: bytes, at: int, *, stop: re.Pattern[bytes] | None = None) -> int | None:
    """Returns where the JSON string, list or object at `at` ends; None if it is incomplete.

    Returns 0 if `stop` matches within it, outside of a string.
    """
    depth = 0
    while True:
        for token in _TOKEN.finditer(text, at):
            mark, at = text[token.start()], token.end()
            if mark == _QUOTE:
                if token.lastindex is None:
                    at = _string_end(text, at)
                    break
                if depth and stop is not None and stop.match(text, token.start()):
                    return 0
            else:
                depth += 1 if mark in _OPEN else -1
            if depth == 0:
                return at
        else:
            return None
        if not at or not depth:
            return at or None


def _string_end(text: bytes, at: int) -> int:
    """Returns the end of the string that continues at `at`; 0 if it is incomplete."""
    while inside := _INSIDE.match(text, at):
        at = inside.end()
    return at + 1 if text[at : at + 1] == b'"' else 0
