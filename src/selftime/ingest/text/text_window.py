"""Buffers a text that arrives in blocks, and reads JSON values from it."""

import re
from collections.abc import Iterator
from typing import Final

from selftime.ingest.text.hashed_file import TextChunk

EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
"""Matches the key `traceEvents` and the bracket that opens its list."""

_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]+|\\.){0,4096}(")?|[{}\[\]]', re.DOTALL)
"""Matches a bracket or a string of JSON. Group 1 is the closing quote, which is missing if the
string is too long for one match.
"""
_PIECE_OF_JSON_STRING: Final = re.compile(rb'(?:[^"\\]+|\\.){1,4096}', re.DOTALL)
"""Matches up to 4,096 characters within a JSON string; a longer match would take too much memory.
"""
_JSON_NUMBER_OR_WORD: Final = re.compile(rb'[^,}\]\s"\[{]+')
_WHITESPACE: Final = re.compile(rb"\s*")
_OPENING_BRACKET_BYTES: Final = frozenset(b"{[")
_QUOTE_BYTE: Final = ord('"')


class TextWindow:
    """A buffer with the unread part of a text, which arrives in blocks."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._arrived, self._read = b"", 0
        self.offset = 0
        """The offset of the first unread byte in the whole text."""
        self.has_arrived_completely = False
        """Whether the text has arrived completely, up to its end."""

    @property
    def unread_text(self) -> bytes:
        """The unread text that has arrived, as bytes."""
        if self._read:
            self._arrived, self._read = self._arrived[self._read :], 0
        return self._arrived

    @property
    def is_read_completely(self) -> bool:
        """Whether the whole text has been read."""
        return self.has_arrived_completely and not self.unread_text

    def wait_for_more(self, min_bytes: int = 1) -> bool:
        """Reads at least `min_bytes` more bytes into the buffer; returns whether any arrived."""
        parts, got = [self.unread_text], 0
        while got < min_bytes and not self.has_arrived_completely:
            block = self._next_block_or_none(got)
            if block is None:
                self.has_arrived_completely = True
            else:
                parts.append(block)
                got += len(block)
        if got:
            self._arrived = b"".join(parts)
        return got > 0

    def skip_bytes(self, count: int) -> None:
        """Skips `count` bytes of the unread text."""
        count = min(count, len(self._arrived) - self._read)
        self._read += count
        self.offset += count

    def _next_block_or_none(self, bytes_ahead: int) -> bytes | None:  # noqa: ARG002 - blocks come in order
        """Returns the block after the buffer and the `bytes_ahead` bytes that follow it."""
        return next(self._blocks, None)

    def peek_range(self, begin_distance: int, end_distance: int) -> bytes | None:  # noqa: ARG002 - for texts in files
        """Returns the text between two distances (bytes) from the current offset, or None.

        Returns None if the text must be read in order, or ends before the second distance.
        """
        return None

    def take_bytes(self, count: int) -> TextChunk:
        """Consumes and returns `count` bytes; for a local file returns their `FilePart` instead."""
        taken = self.unread_text[:count]
        self.skip_bytes(len(taken))
        return taken

    def note_chunk_digest(self, chunk: TextChunk, digest: bytes) -> None:
        """Receives a chunk's SHA-256, computed by the process that has read the chunk."""

    def put_back(self, chunks: list[TextChunk], offset: int, bytes_to_skip: int) -> None:
        """Puts chunks back into the unread text, except for their first `bytes_to_skip` bytes.

        Args:
            chunks: The last chunks that were taken, in order.
            offset: The offset of the first chunk.
            bytes_to_skip: The number of its first bytes that stay read.
        """
        text = b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in chunks)
        self._arrived = text[bytes_to_skip:] + self.unread_text
        self.offset = offset + bytes_to_skip

    def peek_byte(self) -> bytes:
        """Skips white space and returns the next byte, which stays unread; b"" at the end."""
        while True:
            blank = _WHITESPACE.match(self._arrived, self._read)
            self.skip_bytes(blank.end() - self._read if blank else 0)
            mark = self._arrived[self._read : self._read + 1]
            if mark or not self.wait_for_more():
                return mark

    def take_value(self) -> bytes | None:
        """Reads the next JSON value and returns its text; None if the text ends within the value.

        Returns empty bytes, and reads nothing, if the value contains an array of events, which may
        be too large to be read at once.
        """
        if not self.peek_byte():
            return None
        while True:
            end = self._end_of_next_value_or_none()
            if end == 0:
                return b""
            if end is not None:
                value = self._arrived[self._read : end]
                self.skip_bytes(len(value))
                return value
            if not self.wait_for_more(max(len(self.unread_text), 1)):
                return None

    def _end_of_next_value_or_none(self) -> int | None:
        text, first = self._arrived, self._arrived[self._read]
        if first not in _OPENING_BRACKET_BYTES and first != _QUOTE_BYTE:
            scalar = _JSON_NUMBER_OR_WORD.match(text, self._read)
            if scalar is None:
                return None
            whole = scalar.end() < len(text) or self.has_arrived_completely
            return scalar.end() if whole else None
        return json_value_end(text, self._read, stop_pattern=EVENTS_KEY)


def json_value_end(
    text: bytes, offset: int, *, stop_pattern: re.Pattern[bytes] | None = None
) -> int | None:
    """Returns the offset where a JSON string, list or object ends; None if the end is missing.

    The value begins at `offset`. Returns 0 if `stop_pattern` matches within it, outside of a
    string.
    """
    depth = 0
    while True:
        for token in _STRING_OR_BRACKET.finditer(text, offset):
            mark, offset = text[token.start()], token.end()
            if mark == _QUOTE_BYTE:
                if token.lastindex is None:
                    offset = _end_of_string(text, offset)
                    break
                if depth and stop_pattern is not None and stop_pattern.match(text, token.start()):
                    return 0
            else:
                depth += 1 if mark in _OPENING_BRACKET_BYTES else -1
            if depth == 0:
                return offset
        else:
            return None
        if not offset or not depth:
            return offset or None


def _end_of_string(text: bytes, offset: int) -> int:
    """Returns the offset after the JSON string around `offset`; 0 if the string does not end."""
    while inside := _PIECE_OF_JSON_STRING.match(text, offset):
        offset = inside.end()
    return offset + 1 if text[offset : offset + 1] == b'"' else 0
