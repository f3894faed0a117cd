"""Decompresses the members of gzip and zstd files, and records damaged members as faults.

A gzip file (RFC 1952) is one or several members, a zstd file (RFC 8878) one or several frames, each
with a checksum of its content. After damage, reading resumes at the next member, and a
`LOST_TEXT_MARK` stands in the text in between.
"""

import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import zstandard
from isal import isal_zlib

from selftime.ingest.damage.file_faults import LOST_TEXT_MARK, FileFault
from selftime.ingest.text.format_detection import MAGIC_BYTES_BY_COMPRESSION

_MAX_ZSTD_BLOCK_BYTES: Final = 128 << 10
"""Largest number of bytes of text in one zstd block."""
_ZSTD_BLOCK_HEADER_BYTES: Final = 3
_ZSTD_RUN_LENGTH_BLOCK_TYPE, _ZSTD_COMPRESSED_BLOCK_TYPE = 1, 2
"""Types of zstd block: run-length encoded, and compressed."""
_ZSTD_MAGIC_AND_FLAGS_BYTES: Final = 5
_ZSTD_DICTIONARY_ID_BYTES_BY_FLAG: Final = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES_BY_FLAG: Final = (0, 2, 4, 8)

_ZLIB_WINDOW_BITS_FOR_GZIP: Final = 31  # zlib's window bits for a gzip header and footer
_ISAL_ZLIB_ERROR: Any = (
    isal_zlib.error
)  # its stub says that it is an exception, not a class of them
_DECOMPRESSION_ERRORS: Final = (zlib.error, _ISAL_ZLIB_ERROR, zstandard.ZstdError)
_MAX_RETRIED_BYTES_PER_MEMBER: Final = 1 << 20
"""Largest number of compressed bytes of a damaged member that are decompressed again byte by byte,
to recover the text up to the damage."""
_MAX_COMPRESSED_BYTES_PER_CALL: Final = 1 << 14
"""Largest number of compressed bytes that are decompressed per call. If the call fails, the text of
all of them can be lost.
"""
_MAX_TEXT_BYTES_PER_CALL: Final = 4 << 20
"""Largest number of bytes of text that one call may produce; zstd can make that many from a hundred
bytes.
"""
_MAX_RETRIED_BYTES_OF_ALL_MEMBERS: Final = 1 << 20
"""Largest number of compressed bytes, over all damaged members, that are decompressed again."""
_GZIP_FOOTER_BYTES: Final = 8
"""Size in bytes of gzip's footer (checksum and length), which is decompressed in a call of its own.
"""


class ZstdBlockTracker:
    """Parses the block headers of one zstd frame, whose bytes arrive in several calls."""

    def __init__(self) -> None:
        self._head = b""
        """The first bytes of a header that has not fully arrived."""
        self._skip = 0
        """Number of compressed bytes to skip up to the next block header."""
        self._begun = False
        self._ended = False

    def piece_end(self, data: bytes, begin: int, max_end: int, max_text_bytes: int) -> int:
        """Returns up to which byte to decompress next, so that the resulting text is limited.

        Args:
            data: Compressed bytes.
            begin: Where the piece begins, which is where the last one ended.
            max_end: The latest offset where it may end.
            max_text_bytes: The most bytes of text in it, unless its first block has more.
        """
        offset, text_bytes = begin, 0
        while not self._ended and text_bytes < max_text_bytes:
            if offset + self._skip >= max_end:
                self._skip -= max_end - offset
                return max_end
            offset += self._skip
            self._skip = 0
            wanted = (
                _ZSTD_BLOCK_HEADER_BYTES if self._begun else self._frame_header_bytes()
            ) - len(self._head)
            taken = data[offset : min(offset + wanted, max_end)]
            self._head += taken
            offset += len(taken)
            if len(taken) == wanted:
                text_bytes += self._read_header()
        return max_end if self._ended else offset

    def _frame_header_bytes(self) -> int:
        if len(self._head) < _ZSTD_MAGIC_AND_FLAGS_BYTES:
            return _ZSTD_MAGIC_AND_FLAGS_BYTES
        flags = self._head[_ZSTD_MAGIC_AND_FLAGS_BYTES - 1]
        is_single = flags >> 5 & 1
        size = _ZSTD_CONTENT_SIZE_BYTES_BY_FLAG[flags >> 6] or is_single
        return (
            _ZSTD_MAGIC_AND_FLAGS_BYTES
            + 1
            - is_single
            + _ZSTD_DICTIONARY_ID_BYTES_BY_FLAG[flags & 3]
            + size
        )

    def _read_header(self) -> int:
        """Parses a frame or block header; returns the maximum decompressed block size in bytes."""
        if not self._begun:
            self._begun = len(self._head) == self._frame_header_bytes()
            self._head = b"" if self._begun else self._head
            return 0
        header = int.from_bytes(self._head, "little")
        self._head = b""
        self._ended = bool(header & 1)
        kind, size = header >> 1 & 3, header >> 3
        self._skip = 1 if kind == _ZSTD_RUN_LENGTH_BLOCK_TYPE else size
        return (
            _MAX_ZSTD_BLOCK_BYTES
            if kind == _ZSTD_COMPRESSED_BLOCK_TYPE
            else min(size, _MAX_ZSTD_BLOCK_BYTES)
        )


class FileDecompressor:
    """Decompresses a file; calls `read_more` for compressed bytes until it returns no bytes."""

    def __init__(
        self, compression: str, first_bytes: bytes, read_more: Callable[[], bytes]
    ) -> None:
        self.magic_bytes = MAGIC_BYTES_BY_COMPRESSION[compression]
        self.is_gzip = compression == "gzip"
        self.first_bytes, self.read_more = first_bytes, read_more
        self.faults: list[FileFault] = []
        self.yielded_byte_count = 0
        self.retriable_byte_count = _MAX_RETRIED_BYTES_OF_ALL_MEMBERS
        """Number of compressed bytes that may still be decompressed a second time."""
        self.is_last_member_damaged = False
        """Whether the last member was damaged, so that the start of the next member must be
        searched.
        """
        self.is_text_missing = False
        """Whether text is missing after the text yielded so far."""

    def text_blocks(self) -> Iterator[bytes]:
        """Yields the decompressed text of all members of the file."""
        block = self.first_bytes
        while block:
            rest = yield from self._decompress_member(block)
            block = (
                self._search_next_member(rest)
                if self.is_last_member_damaged
                else self._skip_to_next_member(rest)
            )

    def _new_decompressor(self) -> Any:
        if self.is_gzip:
            return isal_zlib.decompressobj(wbits=_ZLIB_WINDOW_BITS_FOR_GZIP)
        return zstandard.ZstdDecompressor().decompressobj()

    def _mark_lost_text_and_yield(self, text: bytes) -> Iterator[bytes]:
        if not text:
            return
        if self.is_text_missing:
            self.is_text_missing = False
            self.yielded_byte_count += len(LOST_TEXT_MARK)
            yield LOST_TEXT_MARK
        self.yielded_byte_count += len(text)
        yield text

    def _decompress_member(self, block: bytes) -> Generator[bytes, None, bytes]:
        """Yields the text of the next member; returns the compressed bytes after the member."""
        stream, taken, begun = self._new_decompressor(), b"", self.yielded_byte_count
        blocks = None if self.is_gzip else ZstdBlockTracker()
        self.is_last_member_damaged = False
        while block:
            for at, piece in _pieces_of_compressed_block(block, blocks):
                taken += piece if len(taken) < _MAX_RETRIED_BYTES_PER_MEMBER else b""
                try:
                    text = stream.decompress(piece)
                except _DECOMPRESSION_ERRORS as error:
                    self.retriable_byte_count -= len(taken)
                    again = (
                        taken
                        if len(taken) < _MAX_RETRIED_BYTES_PER_MEMBER
                        and self.retriable_byte_count > 0
                        else b""
                    )
                    yield from self._rest_of_text_before_damage(
                        again, self.yielded_byte_count - begun
                    )
                    self._add_damage_fault(error, begun)
                    unread = block[at + len(piece) :]
                    return (piece if self.yielded_byte_count > begun or not again else taken)[
                        1:
                    ] + unread
                yield from self._mark_lost_text_and_yield(text)
                if stream.eof:
                    return bytes(stream.unused_data) + block[at + len(piece) :]
            block = self.read_more()
        self.faults.append(FileFault("the compressed data ends too early", self.yielded_byte_count))
        return b""

    def _add_damage_fault(self, error: Exception, member_start: int) -> None:
        self.is_last_member_damaged = True
        if "checksum" in str(error):
            message = "the checksum of the compressed data differs: the content may be altered"
            self.faults.append(FileFault(message, self.yielded_byte_count))
        elif "too much memory" in str(error):
            message = "zstd with a window of more than 128 MiB: compress it again without `--long`"
            self.faults.append(FileFault(message, self.yielded_byte_count))
            self.is_text_missing = True
        elif (
            self.yielded_byte_count > member_start or not self.is_text_missing
        ):  # else it only looked like the start of a member
            message = (
                "the compressed data is damaged: its text up to the next undamaged part is lost"
            )
            self.faults.append(FileFault(message, self.yielded_byte_count))
            self.is_text_missing = True

    def _rest_of_text_before_damage(
        self, member_bytes: bytes, already_yielded: int
    ) -> Iterator[bytes]:
        """Yields the rest of a damaged member's text, decompressed byte by byte."""
        stream = self._new_decompressor()
        for at in range(len(member_bytes)):
            try:
                text = stream.decompress(member_bytes[at : at + 1])
            except _DECOMPRESSION_ERRORS:
                return
            yield from self._mark_lost_text_and_yield(text[already_yielded:])
            already_yielded = max(already_yielded - len(text), 0)

    def _skip_to_next_member(self, block: bytes) -> bytes:
        """Skips padding; returns the compressed bytes from the start of the next member on."""
        padded = False
        while not block.strip(b"\x00"):
            padded = padded or bool(block)
            block = self.read_more()
            if not block:
                break
        if block and not block.startswith(self.magic_bytes):
            message = "bytes after the end of the compressed data: ignored"
            self.faults.append(FileFault(message, self.yielded_byte_count, is_note=True))
            return self._search_next_member(block)
        if padded:
            message = "zero bytes after the end of the compressed data: ignored"
            self.faults.append(FileFault(message, self.yielded_byte_count, is_note=True))
        return block

    def _search_next_member(self, block: bytes) -> bytes:
        """Returns the bytes from the next member's magic bytes on; b"" if there is no member."""
        while block:
            at = block.find(self.magic_bytes)
            if at >= 0:
                return block[at:]
            more = self.read_more()
            block = block[-len(self.magic_bytes) + 1 :] + more if more else b""
        return b""


def _pieces_of_compressed_block(
    block: bytes, zstd_tracker: ZstdBlockTracker | None
) -> Iterator[tuple[int, bytes]]:
    """Yields (offset, bytes) of the parts in which a compressed block is decompressed."""
    body, at = max(len(block) - _GZIP_FOOTER_BYTES, 0), 0
    while at < body:
        end = min(at + _MAX_COMPRESSED_BYTES_PER_CALL, body)
        if zstd_tracker is not None:
            end = zstd_tracker.piece_end(block, at, end, _MAX_TEXT_BYTES_PER_CALL)
        yield at, block[at:end]
        at = end
    if zstd_tracker is not None:
        zstd_tracker.piece_end(block, body, len(block), _MAX_TEXT_BYTES_PER_CALL)
    yield body, block[body:]
