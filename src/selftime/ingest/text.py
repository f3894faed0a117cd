"""A text that arrives in blocks, read from the front through a window."""

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["Text"]

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_SCALAR: Final = re.compile(rb"[^,}\]\s]+")
_OPEN: Final = frozenset(b"{[")


class Text:
    """The unread part of a text, as much of it as has arrived."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self.window = b""
        self.offset = 0
        """Where the window begins in the whole text."""
        self.complete = False
        """Whether all of the text has arrived."""

    def more(self, least: int = 1) -> bool:
        """Let at least so many more bytes arrive; whether any did."""
        parts, got = [self.window], 0
        while got < least and not self.complete:
            block = next(self._blocks, None)
            if block is None:
                self.complete = True
            else:
                parts.append(block)
                got += len(block)
        if got:
            self.window = b"".join(parts)
        return got > 0

    def drop(self, count: int) -> None:
        """Read on past so many bytes."""
        self.window = self.window[count:]
        self.offset += count

    def push_back(self, text: bytes, offset: int) -> None:
        """Put text that was taken before back in front."""
        self.window = text + self.window
        self.offset = offset

    def peek(self) -> bytes:
        """The next byte that is not white space; empty at the end."""
        while True:
            stripped = self.window.lstrip()
            self.drop(len(self.window) - len(stripped))
            if self.window or not self.more():
                return self.window[:1]

    def take_value(self) -> bytes | None:
        """The next JSON value's text; None if the text ends within it."""
        if not self.peek():
            return None
        while True:
            end = self._value_end()
            if end is not None:
                value = self.window[:end]
                self.drop(end)
                return value
            if not self.more(max(len(self.window), 1)):
                return None

    def _value_end(self) -> int | None:
        first = self.window[0]
        if first not in _OPEN and first != ord('"'):
            scalar = _SCALAR.match(self.window)
            if scalar is None:
                return None
            whole = scalar.end() < len(self.window) or self.complete
            return scalar.end() if whole else None
        depth = 0
        for token in _TOKEN.finditer(self.window):
            mark = self.window[token.start()]
            if mark == ord('"'):
                if depth == 0:
                    return token.end()
                continue
            depth += 1 if mark in _OPEN else -1
            if depth == 0:
                return token.end()
        return None
