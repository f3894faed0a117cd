"""The text of an uncompressed local file, of which only the parts in use are in memory.

Chunks of events are passed on as byte ranges, and read by the process that decodes them: reading a
gigabyte here to pass it on would copy it three times.
"""

from typing import Final

from selftime.ingest.text.format_detection import compression_format, utf16_or_utf32_codec
from selftime.ingest.text.hashed_file import FilePart, HashedFile, TextChunk
from selftime.ingest.text.text_window import TextWindow
from selftime.progress import ProgressCallback

_BYTES_READ_TO_DETECT_FORMAT: Final = 1 << 12
_READ_BLOCK_BYTES: Final = 1 << 18


class FileTextWindow(TextWindow):
    """The unread rest of a local file's text; reading can resume at any byte offset."""

    def __init__(
        self, file: HashedFile, path: str, size: int, progress: ProgressCallback | None
    ) -> None:
        super().__init__(iter(()))
        self._file, self._path, self._size, self._progress = file, path, size, progress

    @property
    def is_read_completely(self) -> bool:
        return self.offset >= self._size

    def _next_block_or_none(self, bytes_ahead: int) -> bytes | None:
        at = self.offset + len(self._arrived) - self._read + bytes_ahead
        block = (
            self._file.read_part(at, min(_READ_BLOCK_BYTES, self._size - at))
            if at < self._size
            else b""
        )
        self._report_progress(at + len(block))
        return block or None

    def peek_range(self, begin_distance: int, end_distance: int) -> bytes | None:
        if self.offset + end_distance >= self._size:
            return None
        return self._file.read_unhashed(self.offset + begin_distance, end_distance - begin_distance)

    def take_bytes(self, count: int) -> FilePart:
        part = FilePart(self._path, self.offset, count)
        self._seek_file(self.offset + count)
        return part

    def note_chunk_digest(self, chunk: TextChunk, digest: bytes) -> None:
        if isinstance(chunk, FilePart):
            self._file.add_part_digest(chunk.offset, chunk.size_bytes, digest)
            self._report_progress(chunk.offset + chunk.size_bytes)

    def put_back(self, chunks: list[TextChunk], offset: int, bytes_to_skip: int) -> None:  # noqa: ARG002 - it lies in the file
        self._seek_file(offset + bytes_to_skip)

    def _seek_file(self, offset: int) -> None:
        self._arrived, self._read = b"", 0
        self.offset = offset
        self.has_arrived_completely = False

    def _report_progress(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._size)


def open_file_text(file: HashedFile, progress: ProgressCallback | None) -> FileTextWindow | None:
    """Returns a file's text; None if the file is remote, compressed, not UTF-8, or NUL-padded.

    Args:
        file: The file.
        progress: Called with the bytes read so far and the total bytes.
    """
    if file.path is None or not file.size_bytes:
        return None
    head = file.read_unhashed(0, _BYTES_READ_TO_DETECT_FORMAT)
    if (
        compression_format(head)
        or utf16_or_utf32_codec(head)
        or file.read_unhashed(file.size_bytes - 1, 1) == b"\x00"
    ):
        return None
    return FileTextWindow(file, file.path, file.size_bytes, progress)
