"""Decompress gzip and zstd data member by member, and note the faults on the way.

A gzip file (RFC 1952) is one or several members, a zstd file (RFC 8878) one or several frames, each
with a checksum of its content. After damage, reading resumes at the next member, with a `HOLE_MARK`
in the text in between.
"""

import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import zstandard
from isal import isal_zlib

from selftime.ingest.damage.faults import HOLE_MARK, Fault
from selftime.ingest.text.sniff import MAGIC

_LARGEST: Final = 128 << 10
"""The most bytes of text in one zstd block."""
_HEADER: Final = 3
_RUN, _PACKED = 1, 2
"""Types of zstd block: run-length encoded, and compressed."""
_MAGIC_AND_FLAGS: Final = 5
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_SIZE_BYTES: Final = (0, 2, 4, 8)

_GZIP: Final = 31  # zlib's window bits for a gzip header and footer
_ISAL_ERROR: Any = isal_zlib.error  # its stub says that it is an exception, not a class of them
_DAMAGED: Final = (zlib.error, _ISAL_ERROR, zstandard.ZstdError)
_MOST_RETRIED: Final = 1 << 20
"""The most compressed bytes of a damaged member that are decompressed again byte by byte, to
recover the text up to the damage."""
_PIECE: Final = 1 << 14
"""Compressed bytes per call: in a member too long to be decompressed again, the text of the whole
damaged piece is lost."""
_TEXT_AT_ONCE: Final = 4 << 20
"""The most bytes of text per call: zstd can produce as much from a hundred bytes."""
_MOST_RETRIED_IN_ALL: Final = 1 << 20
"""The most compressed bytes of all damaged members together that are decompressed again: bytes that
look like the start of a member may occur thousands of times before the same damage."""
_FOOTER: Final = 8
"""Bytes of gzip's checksum and length, which are decompressed separately at the file's end."""


class ZstdBlocks:
    """Follows the block headers of one zstd frame, piece by piece."""

    def __init__(self) -> None:
        self._head = b""
        """The bytes so far of an incomplete header."""
        self._skip = 0
        """Compressed bytes to skip up to the next block header."""
        self._begun = False
        self._ended = False

    def piece(self, data: bytes, at: int, end: int, most_text: int) -> int:
        """Returns the offset where the piece of data that begins at `at` should end.

        Args:
            data: Compressed bytes.
            at: Where the piece begins, which is where the last one ended.
            end: The latest offset where it may end.
            most_text: The most bytes of text that it may hold, unless its first block holds more.
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
        """Parse a complete header; returns the most bytes of text its block can hold."""
        if not self._begun:
            self._begun = len(self._head) == self._frame_header()
            self._head = b"" if self._begun else self._head
            return 0
        header = int.from_bytes(self._head, "little")
        self._head = b""
        self._ended = bool(header & 1)
        kind, size = header >> 1 & 3, header >> 3
        self._skip = 1 if kind == _RUN else size
        return _LARGEST if kind == _PACKED else min(size, _LARGEST)


class Decompressor:
    """Decompresses a file, whose compressed bytes come from `more` until it returns none."""

    def __init__(self, packing: str, head: bytes, more: Callable[[], bytes]) -> None:
        self.magic = MAGIC[packing]
        self.gzip = packing == "gzip"
        self.head, self.more = head, more
        self.faults: list[Fault] = []
        self.given = 0
        self.again = _MOST_RETRIED_IN_ALL
        """Compressed bytes that may still be decompressed again."""
        self.damaged = False
        """Whether the last member was damaged, so that the next one must be searched for."""
        self.hole = False
        """Whether text is missing between what was yielded and what comes next."""

    def blocks(self) -> Iterator[bytes]:
        """Yields the text of all members."""
        block = self.head
        while block:
            rest = yield from self._member(block)
            block = self._find_member(rest) if self.damaged else self._next_member(rest)

    def _stream(self) -> Any:
        if self.gzip:
            return isal_zlib.decompressobj(wbits=_GZIP)
        return zstandard.ZstdDecompressor().decompressobj()

    def _yield_text(self, text: bytes) -> Iterator[bytes]:
        if not text:
            return
        if self.hole:
            self.hole = False
            self.given += len(HOLE_MARK)
            yield HOLE_MARK
        self.given += len(text)
        yield text

    def _member(self, block: bytes) -> Generator[bytes, None, bytes]:
        """Yields the text of the next member; returns the bytes that follow it."""
        stream, taken, begun = self._stream(), b"", self.given
        blocks = None if self.gzip else ZstdBlocks()
        self.damaged = False
        while block:
            for at, piece in _pieces(block, blocks):
                taken += piece if len(taken) < _MOST_RETRIED else b""
                try:
                    text = stream.decompress(piece)
                except _DAMAGED as error:
                    self.again -= len(taken)
                    again = taken if len(taken) < _MOST_RETRIED and self.again > 0 else b""
                    yield from self._up_to_damage(again, self.given - begun)
                    self._note_damage(error, begun)
                    unread = block[at + len(piece) :]
                    return (piece if self.given > begun or not again else taken)[1:] + unread
                yield from self._yield_text(text)
                if stream.eof:
                    return bytes(stream.unused_data) + block[at + len(piece) :]
            block = self.more()
        self.faults.append(Fault("the compressed data ends too early", self.given))
        return b""

    def _note_damage(self, error: Exception, begun: int) -> None:
        self.damaged = True
        if "checksum" in str(error):
            what = "the checksum of the compressed data differs: the content may be altered"
            self.faults.append(Fault(what, self.given))
        elif "too much memory" in str(error):
            what = "zstd with a window of more than 128 MiB: compress it again without `--long`"
            self.faults.append(Fault(what, self.given))
            self.hole = True
        elif self.given > begun or not self.hole:  # else it only looked like the start of a member
            what = "the compressed data is damaged: what it held up to the next sound part is lost"
            self.faults.append(Fault(what, self.given))
            self.hole = True

    def _up_to_damage(self, taken: bytes, given: int) -> Iterator[bytes]:
        """Yields the rest of a damaged member's text, byte by byte up to the damage."""
        stream = self._stream()
        for at in range(len(taken)):
            try:
                text = stream.decompress(taken[at : at + 1])
            except _DAMAGED:
                return
            yield from self._yield_text(text[given:])
            given = max(given - len(text), 0)

    def _next_member(self, block: bytes) -> bytes:
        """Returns the start of the next member; padding and garbage before it are skipped."""
        padded = False
        while not block.strip(b"\x00"):
            padded = padded or bool(block)
            block = self.more()
            if not block:
                break
        if block and not block.startswith(self.magic):
            what = "bytes after the end of the compressed data: ignored"
            self.faults.append(Fault(what, self.given, note=True))
            return self._find_member(block)
        if padded:
            what = "zero bytes after the end of the compressed data: ignored"
            self.faults.append(Fault(what, self.given, note=True))
        return block

    def _find_member(self, block: bytes) -> bytes:
        """Returns the bytes from where a member seems to begin; empty at the end."""
        while block:
            at = block.find(self.magic)
            if at >= 0:
                return block[at:]
            more = self.more()
            block = block[-len(self.magic) + 1 :] + more if more else b""
        return b""


def _pieces(block: bytes, blocks: ZstdBlocks | None) -> Iterator[tuple[int, bytes]]:
    """Yields the pieces of a block with their offsets; the last bytes, maybe a footer, apart."""
    body, at = max(len(block) - _FOOTER, 0), 0
    while at < body:
        end = min(at + _PIECE, body)
        if blocks is not None:
            end = blocks.piece(block, at, end, _TEXT_AT_ONCE)
        yield at, block[at:end]
        at = end
    if blocks is not None:
        blocks.piece(block, body, len(block), _TEXT_AT_ONCE)
    yield body, block[body:]
