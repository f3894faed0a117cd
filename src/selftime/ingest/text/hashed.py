"""A file whose bytes are hashed as they are read, in whichever process that happens.

What was read is known by one number, by which its tables are found again, and it can be told
whether a file that has become longer is otherwise as it was.
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a file on this machine, by where they lie in it."""

    path: str
    offset: int
    size: int

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """The bytes; fewer if the file has become shorter."""
        with Path(self.path).open("rb", buffering=0) as file:
            return _read_at(file, self.offset, self.size)


class HashedFile:
    """An open file, read up to the size that it had at first.

    It is read from its begin, or, where it has a path on this machine, in parts.
    """

    def __init__(self, file: IO[bytes], size: int | None, path: str | None = None) -> None:
        self.file, self.size = file, size
        self.path = _path_of(file, path) if path is not None and size is not None else None
        """Where other processes find the same file; None if they may not."""
        self.done = 0
        self._hash = sha256()
        self._parts: list[tuple[int, int, bytes]] = []

    def read(self, size: int) -> bytes:
        """The next bytes."""
        left = size if self.size is None else min(size, self.size - self.done)
        block = self.file.read(left) if left > 0 else b""
        self.done += len(block)
        self._hash.update(block)
        return block

    def look(self, offset: int, size: int) -> bytes:
        """Bytes from anywhere, which are not hashed; what `read` gives next does not change."""
        before = self.file.tell()
        part = _read_at(self.file, offset, size)
        self.file.seek(before)
        return part

    def read_part(self, offset: int, size: int) -> bytes:
        """Bytes from anywhere."""
        part = self.look(offset, size)
        self.was_read(offset, size, digest_of(part))
        return part

    def was_read(self, offset: int, size: int, digest: bytes) -> None:
        """Note that a part was read, here or elsewhere."""
        self._parts.append((offset, size, digest))

    def content(self) -> str:
        """The same for the same bytes, read in the same way."""
        whole = self._hash.copy()
        for offset, size, digest in sorted(set(self._parts)):
            whole.update(b"%d %d %b" % (offset, size, digest))
        return whole.hexdigest()

    def has_grown(self, path: Path) -> bool:
        """Whether the file has become longer, and is as it was as far as it was read."""
        with path.open("rb") as file:
            again = HashedFile(file, self.done)
            while again.read(_BLOCK):
                pass
            for offset, size, _ in self._parts:
                again.read_part(offset, size)
            longer = os.fstat(file.fileno()).st_size > (self.size or 0)
        return longer and again.done == self.done and again.content() == self.content()


def digest_of(part: bytes) -> bytes:
    """The SHA-256 of a part."""
    return sha256(part).digest()


def _read_at(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    blocks, left = [], size
    while left and (block := file.read(left)):
        blocks.append(block)
        left -= len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def _path_of(file: IO[bytes], path: str) -> str | None:
    """The path without links, if it leads to that file and not to whatever is open elsewhere."""
    real = os.path.realpath(path)
    try:
        there, here = Path(real).stat(), os.fstat(file.fileno())
    except OSError:
        return None
    return real if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino) else None
