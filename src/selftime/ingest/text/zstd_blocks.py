"""Where the blocks of zstd data end, so that no more are decompressed at once than is meant.

A block of four bytes can hold 128 KiB of text: a piece that is small when compressed may be
thousands of times as large in memory. Blocks tell their length before they are decompressed
(RFC 8878, sections 3.1.1.1 and 3.1.1.2).
"""

from typing import Final

_LARGEST: Final = 128 << 10
"""Bytes of text in a block at most."""
_HEADER: Final = 3
_RUN, _PACKED = 1, 2
"""Types of block: one byte over and over, and compressed ones."""
_MAGIC_AND_FLAGS: Final = 5
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_SIZE_BYTES: Final = (0, 2, 4, 8)


class Blocks:
    """Follows the blocks of one frame from its begin, piece by piece."""

    def __init__(self) -> None:
        self._head = b""
        """What has come of a header that is not whole."""
        self._skip = 0
        """Bytes up to the next header."""
        self._begun = False
        self._ended = False

    def piece(self, data: bytes, at: int, end: int, most_text: int) -> int:
        """Where to end the piece of data that begins there.

        Args:
            data: Compressed bytes.
            at: Where the piece begins: where the last one ended.
            end: Where it ends at the latest.
            most_text: Bytes of text that it may hold, unless its first block holds more.
        """
        place, text = at, 0
        while not self._ended and text < most_text:
            if place + self._skip >= end:
                self._skip -= end - place
                return end
            place += self._skip
            self._skip = 0
            wanted = (_HEADER if self._begun else self._frame_header()) - len(self._head)
            taken = data[place : min(place + wanted, end)]
            self._head += taken
            place += len(taken)
            if len(taken) == wanted:
                text += self._read_header()
        return end if self._ended else place

    def _frame_header(self) -> int:
        if len(self._head) < _MAGIC_AND_FLAGS:
            return _MAGIC_AND_FLAGS
        flags = self._head[_MAGIC_AND_FLAGS - 1]
        is_single = flags >> 5 & 1
        size = _SIZE_BYTES[flags >> 6] or is_single
        return _MAGIC_AND_FLAGS + 1 - is_single + _DICTIONARY_BYTES[flags & 3] + size

    def _read_header(self) -> int:
        """Read on behind a whole header; the bytes of text that its block may hold."""
        if not self._begun:
            self._begun = len(self._head) == self._frame_header()
            self._head = b"" if self._begun else self._head
            return 0
        told = int.from_bytes(self._head, "little")
        self._head = b""
        self._ended = bool(told & 1)
        kind, size = told >> 1 & 3, told >> 3
        self._skip = 1 if kind == _RUN else size
        return _LARGEST if kind == _PACKED else min(size, _LARGEST)
