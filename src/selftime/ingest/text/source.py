"""Decompress a file block by block, and note the faults on the way.

gzip (RFC 1952) of one or several members and zstd (RFC 8878) of one or several frames are
recognised by content. A damaged or truncated stream yields what can be decompressed.
"""

import codecs
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Final

from selftime.errors import UnreadableTrace
from selftime.ingest.damage.faults import Fault
from selftime.ingest.text.decompression import Decompressor
from selftime.ingest.text.sniff import compression_of, wide_encoding

_BLOCK: Final = 4 << 20
_COMPRESSED_BLOCK: Final = 1 << 15
"""Compressed bytes read at once: traces compress 10 to 20 times."""

MOST_EXPANSION: Final = 200
"""The most bytes of text per compressed byte: traces have 10 to 30, a gzip of one repeated byte
1,030. A higher ratio suggests a decompression bomb."""
_ALWAYS_READ: Final = 256 << 20
"""Bytes of text that are read at any ratio: they take less than a second."""
_SETTING: Final = "SELFTIME_MOST_EXPANSION"


@dataclass(slots=True)
class Source:
    """A file being read: its decompressed blocks, and the faults of its container."""

    file: IO[bytes]
    size: int | None
    """Bytes on disk; None if unknown."""
    progress: Callable[[int, int | None], None] | None = None
    faults: list[Fault] = field(default_factory=list)
    """Faults of the container, each with its offset in the text."""
    done: int = 0
    given: int = 0

    def blocks(self) -> Iterator[bytes]:
        """Yields the decompressed text, block by block.

        Raises:
            UnreadableTrace: The text is so much larger than the file that it cannot be a trace.
        """
        head = self._read(_COMPRESSED_BLOCK)
        packing = compression_of(head)
        blocks = self._inflated(packing, head) if packing else self._plain(head)
        for block in self._without_nul_tail(self._in_utf8(blocks)):
            self.given += len(block)
            yield block

    def _read(self, size: int) -> bytes:
        block = self.file.read(size)
        self.done += len(block)
        if self.progress is not None:
            self.progress(self.done, self.size)
        return block

    def _plain(self, block: bytes) -> Iterator[bytes]:
        while block:
            yield block
            block = self._read(_BLOCK)

    def _inflated(self, packing: str, head: bytes) -> Iterator[bytes]:
        inflating = Decompressor(packing, head, lambda: self._read(_COMPRESSED_BLOCK))
        most, given = _most_expansion(), 0
        for block in inflating.blocks():
            yield block
            given += len(block)
            if given > _ALWAYS_READ and given > most * self.done:
                raise UnreadableTrace(
                    f"it grows to more than {most:,} times its size when it is decompressed, which "
                    f"no trace does: if it is one, set {_SETTING} to a higher number"
                )
        self.faults += inflating.faults

    def _in_utf8(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the text in UTF-8; text in UTF-16, as PowerShell writes files, is converted.

        Halves of surrogate pairs become bytes that are invalid UTF-8, and are shown as escapes.
        """
        first = next(blocks, b"")
        encoding = wide_encoding(first)
        if not encoding:
            yield first
            yield from blocks
            return
        self.faults.append(Fault(f"the text is {encoding[:6].upper()}, not UTF-8: converted", 0))
        errors = "surrogatepass" if encoding.startswith("utf-16") else "replace"
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        for block in chain([first], blocks):
            yield decoder.decode(block).encode("utf-8", "surrogatepass")

    def _without_nul_tail(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the text without NUL bytes at its end: space allocated, never written."""
        pending, at = 0, 0
        for block in blocks:
            text = block.rstrip(b"\x00") if block.endswith(b"\x00") else block
            while pending and text:
                some = min(pending, _BLOCK)
                yield bytes(some)
                pending -= some
            if text:
                yield text
            at += len(block)
            pending += len(block) - len(text)
        if pending:
            what = f"{pending:,} NUL bytes at the end: left out"
            self.faults.append(Fault(what, at - pending))


def _most_expansion() -> int:
    setting = os.environ.get(_SETTING, "")
    return int(setting) if setting.isdigit() and int(setting) else MOST_EXPANSION
