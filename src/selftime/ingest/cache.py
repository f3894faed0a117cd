"""The disk cache of parsed tables, so that a trace opens at once the second time.

An entry is a folder named by the hash of the trace's bytes and the version of the tables. It holds
one memory-mapped file of columns, and a manifest with each column's offset, the file's length and
its checksum. An index maps the stamp of an untouched file (path, inode, size and time, as git does)
to the hash of its bytes. An entry that does not agree with its manifest is deleted and rebuilt.

The cache folders belong to the user alone. A folder that another user owns or can write into is not
used: whoever can put tables there could forge any answer.
"""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import platformdirs
import polars as pl
from isal import isal_zlib

from selftime.ingest.table_file import Layout, read_tables, write_tables
from selftime.trace import Trace

FORMAT: Final = 8
"""Version of the tables and of this layout: raised with each change of either."""

_ENTRIES: Final = "tables-"
_MANIFEST: Final = "manifest.json"
_TABLES: Final = "tables.columns"
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OURS_ALONE: Final = 0o700
_LIMIT: Final = 20 << 30
"""Size limit of the cache in bytes; the least recently used entries are deleted first."""


def file_stamp(path: Path) -> str:
    """Returns a digest of a file's path, device, inode, size and time; it changes on each write."""
    found = path.stat()
    address = f"{path.resolve()}\n{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
    return sha256(address.encode("utf-8", "surrogateescape")).hexdigest()


def is_private(folder: Path) -> bool:
    """Returns whether the folder exists, belongs to the user, and nobody else can write into it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):  # a link may lead to another user's folder
        return False
    if not hasattr(os, "geteuid"):  # Windows: a user's folders are private by default
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def make_private(folder: Path) -> None:
    """Create a folder that only the user can read and write, or check that it is one.

    Raises:
        OSError: The folder cannot be created, or it exists and others may write into it.
    """
    folder.parent.mkdir(_OURS_ALONE, parents=True, exist_ok=True)
    folder.mkdir(_OURS_ALONE, exist_ok=True)
    if not is_private(folder):
        raise PermissionError(f"others may write into `{folder}`")


class Cache:
    """The user's cache of tables; a failure to read or write it is a miss, never an error."""

    def __init__(self) -> None:
        told = os.environ.get("SELFTIME_CACHE")
        root = Path(told) if told else Path(platformdirs.user_cache_dir("selftime"))
        self.entries = root / f"{_ENTRIES}{FORMAT}"
        self.index = root / f"index-{FORMAT}"

    def find(self, mark: str, source: str) -> Trace | None:
        """Returns the cached trace of the file with this stamp; None if it is absent or damaged."""
        if not is_private(self.index):
            return None
        try:
            content = (self.index / mark).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return self.read(content, source) if content.isalnum() else None

    def read(self, content: str, source: str) -> Trace | None:
        """Returns the cached trace with this content hash; a damaged entry is deleted."""
        entry = self.entries / content
        if not is_private(self.entries) or not entry.is_dir():
            return None
        try:
            manifest = _manifest(entry)
            layout = msgspec.convert(manifest["layout"], Layout)
            tables = read_tables(entry / _TABLES, layout)
        except (OSError, ValueError, KeyError, pl.exceptions.PolarsError):
            shutil.rmtree(entry, ignore_errors=True)
            return None
        _touch(entry)
        metadata = MappingProxyType(manifest["metadata"])
        return Trace(**tables, metadata=metadata, origin=manifest["origin"], source=source)

    def write(self, content: str, mark: str | None, trace: Trace) -> None:
        """Store a trace's tables; does nothing if the cache cannot be written."""
        try:
            make_private(self.entries)
            make_private(self.index)
            if not (self.entries / content).is_dir():
                self._write_entry(content, trace)
            if mark is not None:
                write_atomically(self.index / mark, content.encode("ascii"))
            self._prune(content)
        except OSError:
            return

    def _write_entry(self, content: str, trace: Trace) -> None:
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self.entries))
        try:
            layout = msgspec.to_builtins(write_tables(draft / _TABLES, trace.tables()))
            body = {"metadata": dict(trace.metadata), "origin": trace.origin, "layout": layout}
            text = json.dumps(body).encode()
            (draft / _MANIFEST).write_bytes(f"{isal_zlib.crc32(text):08x}\n".encode() + text)
            draft.rename(self.entries / content)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _prune(self, keep: str) -> None:
        """Delete the least recently used entries, of other versions too, beyond the size limit."""
        kept = self.entries / keep
        others = [
            entry
            for folder in self.entries.parent.glob(f"{_ENTRIES}*")
            if is_private(folder)
            for entry in folder.iterdir()
            if entry != kept
        ]
        others.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
        total = 0
        for entry in [kept, *others]:
            total += sum(file.stat().st_size for file in entry.iterdir())
            if total > _LIMIT and entry != kept:
                shutil.rmtree(entry, ignore_errors=True)


def _manifest(entry: Path) -> Mapping[str, Any]:
    checksum, _, text = (entry / _MANIFEST).read_bytes().partition(b"\n")
    if int(checksum, 16) != isal_zlib.crc32(text):
        raise ValueError("the manifest does not agree with its checksum")
    found: Mapping[str, Any] = json.loads(text)
    return found


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically: all of its bytes, or no file at all."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(draft).replace(path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise


def _touch(entry: Path) -> None:
    try:
        os.utime(entry)
    except OSError:
        return
