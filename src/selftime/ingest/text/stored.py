"""The text of a file that lies on this machine as it is: what is not looked at here is not read.

Chunks of events are handed on by where they lie, and read by the process that decodes them: who
reads a gigabyte to hand it on copies it three times.
"""

from collections.abc import Callable
from typing import Final

from selftime.ingest.text.hashed import HashedFile, Part
from selftime.ingest.text.sniff import container, wide_encoding
from selftime.ingest.text.window import Text

_HEAD: Final = 1 << 12
_BLOCK: Final = 1 << 18


class StoredText(Text):
    """A text that can be read from any place on."""

    def __init__(
        self, file: HashedFile, path: str, size: int, progress: Callable[[int, int], None] | None
    ) -> None:
        super().__init__(iter(()))
        self._file, self._path, self._size, self._progress = file, path, size, progress

    @property
    def ended(self) -> bool:
        return self.offset >= self._size

    def _next_block(self) -> bytes | None:
        at = self.offset + len(self._arrived) - self._read
        block = self._file.read_part(at, min(_BLOCK, self._size - at)) if at < self._size else b""
        self._tell(at + len(block))
        return block or None

    def ahead(self, begin: int, end: int) -> bytes | None:
        if self.offset + end >= self._size:
            return None
        return self._file.look(self.offset + begin, end - begin)

    def take(self, count: int) -> Part:
        part = Part(self._path, self.offset, count)
        self._go_to(self.offset + count)
        return part

    def was_read(self, taken: bytes | Part, digest: bytes) -> None:
        if isinstance(taken, Part):
            self._file.was_read(taken.offset, taken.size, digest)
            self._tell(taken.offset + taken.size)

    def give_back(self, taken: list[bytes | Part], offset: int, rest: int) -> None:  # noqa: ARG002 - it lies in the file
        self._go_to(offset + rest)

    def _go_to(self, offset: int) -> None:
        self._arrived, self._read = b"", 0
        self.offset = offset
        self.complete = False

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._size)


def stored_text(file: HashedFile, progress: Callable[[int, int], None] | None) -> StoredText | None:
    """The text of a file; None if it has to be fetched, unpacked, converted, or cut at its end.

    Args:
        file: The file.
        progress: Called with the bytes that were read and those to read.
    """
    if file.path is None or not file.size:
        return None
    head = file.look(0, _HEAD)
    if container(head) or wide_encoding(head) or file.look(file.size - 1, 1) == b"\x00":
        return None
    return StoredText(file, file.path, file.size, progress)
