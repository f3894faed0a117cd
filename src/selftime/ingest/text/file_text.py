"""Text of an uncompressed local file, of which only the parts in use are read.

Chunks of events are passed on as byte ranges, and read by the process that decodes them: reading a
gigabyte here to pass it on would copy it three times.
"""

from collections.abc import Callable
from typing import Final

from selftime.ingest.text.hashed_file import FilePart, HashedFile
from selftime.ingest.text.sniff import compression_of, wide_encoding
from selftime.ingest.text.window import TextWindow

_HEAD: Final = 1 << 12
_BLOCK: Final = 1 << 18


class FileText(TextWindow):
    """A text in a file, which can be read from any offset."""

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
        self._report_progress(at + len(block))
        return block or None

    def ahead(self, begin: int, end: int) -> bytes | None:
        if self.offset + end >= self._size:
            return None
        return self._file.read_unhashed(self.offset + begin, end - begin)

    def take(self, count: int) -> FilePart:
        part = FilePart(self._path, self.offset, count)
        self._seek(self.offset + count)
        return part

    def note_read(self, taken: bytes | FilePart, digest: bytes) -> None:
        if isinstance(taken, FilePart):
            self._file.note_read(taken.offset, taken.size, digest)
            self._report_progress(taken.offset + taken.size)

    def put_back(self, taken: list[bytes | FilePart], offset: int, rest: int) -> None:  # noqa: ARG002 - it lies in the file
        self._seek(offset + rest)

    def _seek(self, offset: int) -> None:
        self._arrived, self._read = b"", 0
        self.offset = offset
        self.complete = False

    def _report_progress(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._size)


def file_text(file: HashedFile, progress: Callable[[int, int], None] | None) -> FileText | None:
    """Returns a file's text; None if it is remote, compressed, not UTF-8, or NUL-padded.

    Args:
        file: The file.
        progress: Called with the bytes read so far and the total bytes.
    """
    if file.path is None or not file.size:
        return None
    head = file.read_unhashed(0, _HEAD)
    if (
        compression_of(head)
        or wide_encoding(head)
        or file.read_unhashed(file.size - 1, 1) == b"\x00"
    ):
        return None
    return FileText(file, file.path, file.size, progress)
