"""Hash a file's bytes as they are read, in any process.

The resulting hash is the key of the file's cached tables. It also shows whether a file that has
grown still begins with the same bytes.
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FilePart:
    """A byte range of a local file."""

    path: str
    offset: int
    size: int

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """Returns the bytes; fewer if the file has been truncated."""
        with Path(self.path).open("rb", buffering=0) as file:
            return _read_at(file, self.offset, self.size)


class HashedFile:
    """An open file, read up to the size it had when it was opened, and hashed.

    It is read from its start, or, if it has a local path, in parts.
    """

    def __init__(self, file: IO[bytes], size: int | None, path: str | None = None) -> None:
        self.file, self.size = file, size
        self.path = _path_of(file, path) if path is not None and size is not None else None
        """The path by which other processes can open the same file; None if they cannot."""
        self.done = 0
        self._hash = sha256()
        self._parts: list[tuple[int, int, bytes]] = []

    def read(self, size: int) -> bytes:
        """Returns the next `size` bytes, fewer at the end."""
        left = size if self.size is None else min(size, self.size - self.done)
        block = self.file.read(left) if left > 0 else b""
        self.done += len(block)
        self._hash.update(block)
        return block

    def read_unhashed(self, offset: int, size: int) -> bytes:
        """Returns bytes at any offset without hashing them; `read` continues where it was."""
        before = self.file.tell()
        part = _read_at(self.file, offset, size)
        self.file.seek(before)
        return part

    def read_part(self, offset: int, size: int) -> bytes:
        """Returns bytes at any offset, and adds them to the hash."""
        part = self.read_unhashed(offset, size)
        self.note_read(offset, size, sha256_of(part))
        return part

    def note_read(self, offset: int, size: int, digest: bytes) -> None:
        """Add a part's digest to the hash; the part may have been read in another process."""
        self._parts.append((offset, size, digest))

    def content(self) -> str:
        """Returns the hash as hex; equal for equal bytes that were read in the same parts."""
        whole = self._hash.copy()
        for offset, size, digest in sorted(set(self._parts)):
            whole.update(b"%d %d %b" % (offset, size, digest))
        return whole.hexdigest()

    def has_grown(self, path: Path) -> bool:
        """Returns whether the file is longer now, and unchanged as far as it was read."""
        with path.open("rb") as file:
            again = HashedFile(file, self.done)
            while again.read(_BLOCK):
                pass
            for offset, size, _ in self._parts:
                again.read_part(offset, size)
            longer = os.fstat(file.fileno()).st_size > (self.size or 0)
        return longer and again.done == self.done and again.content() == self.content()


def sha256_of(part: bytes) -> bytes:
    """Returns the SHA-256 of the bytes."""
    return sha256(part).digest()


def _read_at(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    blocks, left = [], size
    while left and (block := file.read(left)):
        blocks.append(block)
        left -= len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def _path_of(file: IO[bytes], path: str) -> str | None:
    """Returns the resolved path if it leads to the open file; None if to another one."""
    real = os.path.realpath(path)
    try:
        there, here = Path(real).stat(), os.fstat(file.fileno())
    except OSError:
        return None
    return real if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino) else None
