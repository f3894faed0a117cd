"""Reads what a file of lines has got since it was read last, as `tail -f` does."""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Final

_CHUNK_BYTES: Final = 8 << 20
_MAX_FIRST_LINE_BYTES: Final = 1 << 20
_MAX_LINE_BYTES: Final = 64 << 20
"""Size from which on a line without an end is left out."""


class FollowedFile:
    """A file that grows by whole lines; the last one may be half written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written_ns = 0
        """When the file was changed last, in ns since the Unix epoch; 0 before it was looked at."""
        self.failure: str | None = None
        """Why the file cannot be read; None if it can."""
        self._offset = self._size = self._read_size = 0
        self._identity: tuple[int, int] | None = None

    def first_line(self) -> bytes | None:
        """Returns the first line without its end, if it is whole; it stays to be read."""
        if not self.look():
            return None
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            with os.fdopen(descriptor, "rb", buffering=0) as file:
                line, end, _ = (file.read(_MAX_FIRST_LINE_BYTES) or b"").partition(b"\n")
        except OSError as error:
            self.failure = error.strerror or str(error)
            return None
        return line if end else None

    def new_lines(self) -> Iterator[bytes]:
        """Yields each complete line that was not yielded before, without its end.

        A file that became shorter, or another one, is read from its beginning. What cannot be read
        now is tried again at the next call.
        """
        if not self.look() or self._size == self._read_size:
            return
        try:
            yield from self._lines_from_offset()
            self._read_size = self._size
        except OSError as error:
            self.failure = error.strerror or str(error)

    def look(self) -> bool:
        """Notes size and time of the file; returns whether it can be read."""
        try:
            status = self.path.stat()
        except OSError as error:
            self.failure = error.strerror or str(error)
            return False
        if not S_ISREG(status.st_mode):  # a pipe of that name would be waited for
            self.failure = "it is no file"
            return False
        identity = status.st_dev, status.st_ino
        if identity != self._identity or status.st_size < self._offset:
            self._offset = self._read_size = 0
        self._identity, self._size = identity, status.st_size
        self.written_ns, self.failure = status.st_mtime_ns, None
        return True

    def _lines_from_offset(self) -> Iterator[bytes]:
        descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            size = _CHUNK_BYTES
            while True:
                file.seek(self._offset)
                data = file.read(size)
                end = data.rfind(b"\n") + 1
                if end:
                    self._offset += end
                    yield from data[: end - 1].split(b"\n")
                    size = _CHUNK_BYTES
                elif len(data) < size:
                    return
                elif size < _MAX_LINE_BYTES:
                    size *= 2
                else:
                    self._offset += len(data)
                if len(data) < size and end:
                    return
