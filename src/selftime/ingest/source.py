"""The bytes of a file, decompressed, in blocks; with what went wrong on the way.

gzip (RFC 1952) of one or several members and zstd (RFC 8878) of one or several frames are told by
content. A damaged or truncated stream gives what can be decompressed.
"""

import codecs
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Any, Final

import zstandard
from isal import isal_zlib

from selftime.ingest.faults import Fault
from selftime.ingest.sniff import container

__all__ = ["Source"]

_BLOCK: Final = 4 << 20
_COMPRESSED_BLOCK: Final = 1 << 15
"""Compressed bytes taken at once: traces shrink 10 to 20 times."""
_AGAIN: Final = 1 << 20
"""Compressed bytes of a damaged member that are read again, one by one, up to the damage."""
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP: Final = 31  # zlib's window bits for a gzip header and footer
_ISAL_ERROR: Any = isal_zlib.error  # its stub says that it is an exception, not a class of them
_DAMAGED: Final = (zlib.error, _ISAL_ERROR, zstandard.ZstdError)


@dataclass(slots=True)
class Source:
    """A file being read: its blocks, and the faults of its container."""

    file: IO[bytes]
    size: int | None
    """Bytes on disk, if known."""
    progress: Callable[[int, int | None], None] | None = None
    faults: list[Fault] = field(default_factory=list)
    """What is wrong with the container, and at which byte of the text."""
    done: int = 0
    given: int = 0

    def blocks(self) -> Iterator[bytes]:
        """The decompressed text, block by block."""
        head = self._read(_COMPRESSED_BLOCK)
        match container(head):
            case "gzip":
                blocks = self._inflate(head, lambda: isal_zlib.decompressobj(wbits=_GZIP))
            case "zstd":
                blocks = self._inflate(head, zstandard.ZstdDecompressor().decompressobj)
            case _:
                blocks = self._plain(head)
        for block in self._in_utf8(blocks):
            self.given += len(block)
            yield block

    def _in_utf8(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The text as it is; a text in UTF-16, as PowerShell writes files, in UTF-8."""
        first = next(blocks, b"")
        if not first.startswith(_UTF16):
            yield first
            yield from blocks
            return
        self.faults.append(Fault("the text is UTF-16, not UTF-8: converted", 0))
        decoder = codecs.getincrementaldecoder("utf-16")("replace")
        for block in chain([first], blocks):
            yield decoder.decode(block).encode("utf-8", "replace")

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

    def _inflate(self, block: bytes, member: Callable[[], Any]) -> Iterator[bytes]:
        """Decompress member after member; stop at the first that is damaged."""
        stream, taken, begun = member(), b"", self.given
        while block:
            taken += block if len(taken) < _AGAIN else b""
            try:
                text = stream.decompress(block)
            except _DAMAGED as error:
                yield from self._up_to_damage(member(), taken, self.given - begun)
                self.faults.append(Fault(f"the compressed data is damaged ({error})", self.given))
                return
            if text:
                yield text
            block = stream.unused_data if stream.eof else b""
            if stream.eof and not block:
                block = self._read(_COMPRESSED_BLOCK)
            if stream.eof:
                if not self._begins_member(block):
                    return
                stream, taken, begun = member(), b"", self.given
            block = block or self._read(_COMPRESSED_BLOCK)
        if not stream.eof:
            self.faults.append(Fault("the compressed data ends too early", self.given))

    def _up_to_damage(self, stream: Any, taken: bytes, given: int) -> Iterator[bytes]:
        """What a damaged member holds beyond the text that it gave before the damage."""
        for at in range(len(taken)):
            try:
                text = stream.decompress(taken[at : at + 1])
            except _DAMAGED:
                return
            if len(text) > given:
                yield text[given:]
            given = max(given - len(text), 0)

    def _begins_member(self, block: bytes) -> bool:
        """Whether another member follows; padding and garbage after the last are ignored."""
        if not block.strip(b"\x00"):
            return False
        if container(block):
            return True
        what = "bytes after the end of the compressed data: ignored"
        self.faults.append(Fault(what, self.given, note=True))
        return False
