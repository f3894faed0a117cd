"""Caches parsed traces on disk, so that a trace loads faster the second time.

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

from selftime.ingest.table_file import TableFileLayout, read_tables, write_tables
from selftime.trace import Trace

CACHE_FORMAT_VERSION: Final = 10
"""Version of the tables and of the cache's file layout; any change of these needs a new version."""

_CACHE_ENTRY_PREFIX: Final = "tables-"
_MANIFEST_FILE_NAME: Final = "manifest.json"
_TABLES_FILE_NAME: Final = "tables.columns"
_GROUP_OR_OTHERS_CAN_WRITE_MODE_BITS: Final = stat.S_IWGRP | stat.S_IWOTH
_PRIVATE_FOLDER_MODE: Final = 0o700
_MAX_CACHE_BYTES: Final = 20 << 30
"""Size limit of the cache, in bytes; the least recently used entries are deleted first."""


def file_stamp(path: Path) -> str:
    """Returns a digest of a file's path, inode, size and modification time."""
    found = path.stat()
    address = f"{path.resolve()}\n{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
    return sha256(address.encode("utf-8", "surrogateescape")).hexdigest()


def can_only_user_write_to_folder(folder: Path) -> bool:
    """Returns whether a folder exists, belongs to the user, and only the user can write to it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):  # a link may lead to another user's folder
        return False
    if not hasattr(os, "geteuid"):  # Windows: a user's folders are private by default
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & _GROUP_OR_OTHERS_CAN_WRITE_MODE_BITS


def make_folder_only_user_can_write_to(folder: Path) -> None:
    """Creates a folder that only the user can write to; raises if it exists and others can.

    Raises:
        OSError: The folder cannot be created, or it exists and others may write into it.
    """
    folder.parent.mkdir(_PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    folder.mkdir(_PRIVATE_FOLDER_MODE, exist_ok=True)
    if not can_only_user_write_to_folder(folder):
        raise PermissionError(f"others may write into `{folder}`")


class TraceCache:
    """The user's disk cache of parsed traces; errors in reading or writing it are ignored."""

    def __init__(self) -> None:
        configured = os.environ.get("SELFTIME_CACHE")
        root = Path(configured) if configured else Path(platformdirs.user_cache_dir("selftime"))
        self.entries = root / f"{_CACHE_ENTRY_PREFIX}{CACHE_FORMAT_VERSION}"
        self.index = root / f"index-{CACHE_FORMAT_VERSION}"

    def find_by_file_stamp(self, stamp: str, source: str) -> Trace | None:
        """Returns the cached trace of the file with this `file_stamp`; None if it is not cached."""
        if not can_only_user_write_to_folder(self.index):
            return None
        try:
            content_hash = (self.index / stamp).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return self.read_by_content_hash(content_hash, source) if content_hash.isalnum() else None

    def read_by_content_hash(self, content_hash: str, source: str) -> Trace | None:
        """Returns the cached trace with a content hash, or None; deletes a damaged cache entry."""
        entry = self.entries / content_hash
        if not can_only_user_write_to_folder(self.entries) or not entry.is_dir():
            return None
        try:
            manifest = _read_manifest(entry)
            layout = msgspec.convert(manifest["layout"], TableFileLayout)
            tables: dict[str, Any] = read_tables(entry / _TABLES_FILE_NAME, layout)
        except (OSError, ValueError, KeyError, pl.exceptions.PolarsError):
            shutil.rmtree(entry, ignore_errors=True)
            return None
        _mark_entry_as_used(entry)
        metadata = MappingProxyType(manifest["metadata"])
        return Trace(**tables, metadata=metadata, origin=manifest["origin"], source=source)

    def write_trace(self, content_hash: str, stamp: str | None, trace: Trace) -> None:
        """Stores a trace's tables by content hash; does nothing if the cache is not writable."""
        try:
            make_folder_only_user_can_write_to(self.entries)
            make_folder_only_user_can_write_to(self.index)
            if not (self.entries / content_hash).is_dir():
                self._write_cache_entry(content_hash, trace)
            if stamp is not None:
                write_atomically(self.index / stamp, content_hash.encode("ascii"))
            self._delete_least_recently_used_entries(content_hash)
        except OSError:
            return

    def _write_cache_entry(self, content_hash: str, trace: Trace) -> None:
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=self.entries))
        try:
            layout = msgspec.to_builtins(write_tables(draft / _TABLES_FILE_NAME, trace.tables()))
            body = {"metadata": dict(trace.metadata), "origin": trace.origin, "layout": layout}
            text = json.dumps(body).encode()
            (draft / _MANIFEST_FILE_NAME).write_bytes(
                f"{isal_zlib.crc32(text):08x}\n".encode() + text
            )
            draft.rename(self.entries / content_hash)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _delete_least_recently_used_entries(self, kept_hash: str) -> None:
        """Deletes least recently used entries until the cache is at most as large as allowed."""
        kept = self.entries / kept_hash
        others = [
            entry
            for folder in self.entries.parent.glob(f"{_CACHE_ENTRY_PREFIX}*")
            if can_only_user_write_to_folder(folder)
            for entry in folder.iterdir()
            if entry != kept
        ]
        others.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
        total = 0
        for entry in [kept, *others]:
            total += sum(file.stat().st_size for file in entry.iterdir())
            if total > _MAX_CACHE_BYTES and entry != kept:
                shutil.rmtree(entry, ignore_errors=True)


def _read_manifest(entry_folder: Path) -> Mapping[str, Any]:
    checksum, _, text = (entry_folder / _MANIFEST_FILE_NAME).read_bytes().partition(b"\n")
    if int(checksum, 16) != isal_zlib.crc32(text):
        raise ValueError("the manifest does not agree with its checksum")
    found: Mapping[str, Any] = json.loads(text)
    return found


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file atomically, by renaming a temporary file."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(draft).replace(path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise


def _mark_entry_as_used(entry_folder: Path) -> None:
    try:
        os.utime(entry_folder)
    except OSError:
        return
