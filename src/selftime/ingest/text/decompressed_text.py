"""Reads a file as decompressed UTF-8 text, block by block, and records the file's faults.

gzip (RFC 1952) of one or several members and zstd (RFC 8878) of one or several frames are
recognised by content. A damaged or truncated stream yields what can be decompressed.
"""

import codecs
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Final

from selftime.errors import UnreadableTrace
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.text.decompression import FileDecompressor
from selftime.ingest.text.format_detection import compression_format, utf16_or_utf32_codec
from selftime.progress import ProgressCallback

_UNCOMPRESSED_READ_BLOCK_BYTES: Final = 4 << 20
_COMPRESSED_READ_BLOCK_BYTES: Final = 1 << 15
"""Number of compressed bytes that are read at once; their text is 10 to 20 times as long."""

MAX_EXPANSION_RATIO: Final = 200
"""Largest number of bytes of text per compressed byte. More suggests a decompression bomb; traces
have 10 to 30.
"""
_BYTES_ALLOWED_AT_ANY_EXPANSION_RATIO: Final = 256 << 20
"""Number of bytes of text that are read before `MAX_EXPANSION_RATIO` is enforced."""
_EXPANSION_RATIO_ENV_VARIABLE: Final = "SELFTIME_MOST_EXPANSION"


@dataclass(slots=True)
class DecompressedFile:
    """A file that is read as decompressed text; records faults of its compression and encoding."""

    file: IO[bytes]
    file_size_bytes: int | None
    """The file's size on disk, in bytes; None if unknown."""
    progress: ProgressCallback | None = None
    faults: list[FileFault] = field(default_factory=list)
    """Faults of compression and encoding, each with its byte offset in the text."""
    read_byte_count: int = 0
    """Number of bytes read from the file so far."""
    yielded_byte_count: int = 0
    """Number of bytes of text yielded so far."""

    def text_blocks(self) -> Iterator[bytes]:
        """Yields the file's decompressed text, block by block.

        Raises:
            UnreadableTrace: The text is so much larger than the file that it cannot be a trace.
        """
        first_block = self._read(_COMPRESSED_READ_BLOCK_BYTES)
        compression = compression_format(first_block)
        blocks = (
            self._decompressed_blocks(compression, first_block)
            if compression
            else self._uncompressed_blocks(first_block)
        )
        for block in self._drop_trailing_nul_bytes(self._convert_blocks_to_utf8(blocks)):
            self.yielded_byte_count += len(block)
            yield block

    def _read(self, size: int) -> bytes:
        block = self.file.read(size)
        self.read_byte_count += len(block)
        if self.progress is not None:
            self.progress(self.read_byte_count, self.file_size_bytes)
        return block

    def _uncompressed_blocks(self, block: bytes) -> Iterator[bytes]:
        while block:
            yield block
            block = self._read(_UNCOMPRESSED_READ_BLOCK_BYTES)

    def _decompressed_blocks(self, compression: str, first_block: bytes) -> Iterator[bytes]:
        inflating = FileDecompressor(
            compression, first_block, lambda: self._read(_COMPRESSED_READ_BLOCK_BYTES)
        )
        most, given = _max_expansion_ratio(), 0
        for block in inflating.text_blocks():
            yield block
            given += len(block)
            if (
                given > _BYTES_ALLOWED_AT_ANY_EXPANSION_RATIO
                and given > most * self.read_byte_count
            ):
                raise UnreadableTrace(
                    f"it grows to more than {most:,} times its size when it is decompressed, which "
                    f"no trace does: if it is one, set {_EXPANSION_RATIO_ENV_VARIABLE} to a higher "
                    "number"
                )
        self.faults += inflating.faults

    def _convert_blocks_to_utf8(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the text in UTF-8; converts text in UTF-16 or UTF-32, as PowerShell writes it.

        Halves of surrogate pairs become bytes that are invalid UTF-8, and are shown as escapes.
        """
        first = next(blocks, b"")
        encoding = utf16_or_utf32_codec(first)
        if not encoding:
            yield first
            yield from blocks
            return
        self.faults.append(
            FileFault(f"the text is {encoding[:6].upper()}, not UTF-8: converted", 0)
        )
        errors = "surrogatepass" if encoding.startswith("utf-16") else "replace"
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        for block in chain([first], blocks):
            yield decoder.decode(block).encode("utf-8", "surrogatepass")

    def _drop_trailing_nul_bytes(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the text without NUL bytes at its end, which is space that was never written."""
        pending, at = 0, 0
        for block in blocks:
            text = block.rstrip(b"\x00") if block.endswith(b"\x00") else block
            while pending and text:
                some = min(pending, _UNCOMPRESSED_READ_BLOCK_BYTES)
                yield bytes(some)
                pending -= some
            if text:
                yield text
            at += len(block)
            pending += len(block) - len(text)
        if pending:
            what = f"{pending:,} NUL bytes at the end: left out"
            self.faults.append(FileFault(what, at - pending))


def _max_expansion_ratio() -> int:
    setting = os.environ.get(_EXPANSION_RATIO_ENV_VARIABLE, "")
    return int(setting) if setting.isdigit() and int(setting) else MAX_EXPANSION_RATIO
