"""Computes a file's hash while the file is read, even if several processes read parts of it.

The resulting hash is the key of the file's cached tables. It also shows whether a file that has
grown still begins with the same bytes.
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Final, TypeAlias

_REHASH_BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FilePart:
    """A byte range of a local file, which any process can read."""

    path: str
    offset: int
    size_bytes: int

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        """Returns the bytes of the range; fewer if the file has been truncated."""
        with Path(self.path).open("rb", buffering=0) as file:
            return _read_bytes_at(file, self.offset, self.size_bytes)


TextChunk: TypeAlias = bytes | FilePart
"""A part of a trace's text: the bytes themselves, or the byte range of a file with them."""


class HashedFile:
    """An open file whose bytes are hashed as they are read, up to its size when it was opened.

    It is read from its start, or, if it has a local path, in any parts.
    """

    def __init__(self, file: IO[bytes], size: int | None, path: str | None = None) -> None:
        self.file, self.size_bytes = file, size
        self.path = (
            _resolved_path_of_open_file(file, path)
            if path is not None and size is not None
            else None
        )
        """The path at which other processes can open the same file; None if there is no such path.
        """
        self.bytes_read = 0
        self._hash = sha256()
        self._parts: list[tuple[int, int, bytes]] = []

    def read(self, size: int) -> bytes:
        """Returns the next `size` bytes of the file; fewer at the end."""
        left = size if self.size_bytes is None else min(size, self.size_bytes - self.bytes_read)
        block = self.file.read(left) if left > 0 else b""
        self.bytes_read += len(block)
        self._hash.update(block)
        return block

    def read_unhashed(self, offset: int, size: int) -> bytes:
        """Returns bytes at any offset without hashing them; the next `read` is not affected."""
        before = self.file.tell()
        part = _read_bytes_at(self.file, offset, size)
        self.file.seek(before)
        return part

    def read_part(self, offset: int, size: int) -> bytes:
        """Returns bytes at any offset, and adds their digest to the file's hash."""
        part = self.read_unhashed(offset, size)
        self.add_part_digest(offset, size, sha256_of(part))
        return part

    def add_part_digest(self, offset: int, size: int, digest: bytes) -> None:
        """Adds the SHA-256 of a byte range, which another process may have read, to the hash."""
        self._parts.append((offset, size, digest))

    def hash_hex(self) -> str:
        """Returns, as hex digits, the hash of all bytes read and of the digests of file parts."""
        whole = self._hash.copy()
        for offset, size, digest in sorted(set(self._parts)):
            whole.update(b"%d %d %b" % (offset, size, digest))
        return whole.hexdigest()

    def has_grown_unchanged(self, path: Path) -> bool:
        """Returns whether the file is longer now, and still begins with the bytes read before."""
        with path.open("rb") as file:
            again = HashedFile(file, self.bytes_read)
            while again.read(_REHASH_BLOCK_BYTES):
                pass
            for offset, size, _ in self._parts:
                again.read_part(offset, size)
            longer = os.fstat(file.fileno()).st_size > (self.size_bytes or 0)
        return (
            longer and again.bytes_read == self.bytes_read and again.hash_hex() == self.hash_hex()
        )


def sha256_of(data: bytes) -> bytes:
    """Returns the SHA-256 of the bytes."""
    return sha256(data).digest()


def _read_bytes_at(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    blocks, left = [], size
    while left and (block := file.read(left)):
        blocks.append(block)
        left -= len(block)
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def _resolved_path_of_open_file(file: IO[bytes], path: str) -> str | None:
    """Returns an open file's real path; None if another file has since replaced it there."""
    real = os.path.realpath(path)
    try:
        there, here = Path(real).stat(), os.fstat(file.fileno())
    except OSError:
        return None
    return real if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino) else None
