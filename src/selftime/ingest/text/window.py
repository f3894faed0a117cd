"""A text that arrives in blocks, read from the front through a window."""

import re
from collections.abc import Iterator
from typing import Final

from selftime.ingest.text.hashed import Part

EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
"""Where the array of events begins."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]+|\\.){0,4096}(")?|[{}\[\]]', re.DOTALL)
"""A bracket, or a string, its last quote the group; of one with thousands of escapes the begin."""
_INSIDE: Final = re.compile(rb'(?:[^"\\]+|\\.){1,4096}', re.DOTALL)
"""Text within a string; so much at once, as `re` keeps some hundred bytes for every escape."""
_SCALAR: Final = re.compile(rb'[^,}\]\s"\[{]+')
_SPACE: Final = re.compile(rb"\s*")
_OPEN: Final = frozenset(b"{[")
_QUOTE: Final = ord('"')


class Text:
    """The unread part of a text, as much of it as has arrived."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._arrived, self._read = b"", 0
        self.offset = 0
        """Where the window begins in the whole text."""
        self.complete = False
        """Whether all of the text has arrived."""

    @property
    def window(self) -> bytes:
        """The unread text; what was read is let go here, not at every step."""
        if self._read:
            self._arrived, self._read = self._arrived[self._read :], 0
        return self._arrived

    @property
    def ended(self) -> bool:
        """Whether nothing is left of the text."""
        return self.complete and not self.window

    def more(self, least: int = 1) -> bool:
        """Let at least so many more bytes arrive; whether any did."""
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
        """Read on past so many bytes."""
        count = min(count, len(self._arrived) - self._read)
        self._read += count
        self.offset += count

    def _next_block(self) -> bytes | None:
        return next(self._blocks, None)

    def ahead(self, begin: int, end: int) -> bytes | None:  # noqa: ARG002 - for texts in files
        """The text between two distances from here; None where what is before must be read too.

        Also None if the text ends before the second distance.
        """
        return None

    def take(self, count: int) -> bytes | Part:
        """Take so many bytes, themselves or by where they lie."""
        taken = self.window[:count]
        self.drop(len(taken))
        return taken

    def was_read(self, taken: bytes | Part, digest: bytes) -> None:
        """Note the SHA-256 of what was taken, by who has read it."""

    def give_back(self, taken: list[bytes | Part], offset: int, rest: int) -> None:
        """Put what was taken back in front, but for its first bytes.

        Args:
            taken: The last pieces that were taken, one after the other.
            offset: Where the first begins.
            rest: How many bytes of it stay taken.
        """
        text = b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in taken)
        self._arrived = text[rest:] + self.window
        self.offset = offset + rest

    def peek(self) -> bytes:
        """The next byte that is not white space; empty at the end."""
        while True:
            blank = _SPACE.match(self._arrived, self._read)
            self.drop(blank.end() - self._read if blank else 0)
            mark = self._arrived[self._read : self._read + 1]
            if mark or not self.more():
                return mark

    def take_value(self) -> bytes | None:
        """The next JSON value's text; None if the text ends within it.

        Empty if it holds an array of events, which is not for taking at once: nothing was read.
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
    """Where the string, list or object ends that begins there, of any depth; None if it does not.

    0 if what `stop` describes stands within it, and not within a string.
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
    """Where the string ends that goes on at that place; 0 if it does not."""
    while inside := _INSIDE.match(text, at):
        at = inside.end()
    return at + 1 if text[at : at + 1] == b'"' else 0
