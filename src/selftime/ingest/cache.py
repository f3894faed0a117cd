"""Tables kept on disk after the first read, so that a trace opens at once the next time.

An entry is a folder named by the hash of the trace's bytes and the version of the tables: one file
of columns, read by mapping, and a manifest that tells where each lies, the file's length and its
checksum. An index tells the hash of a file that has not been touched since (by its path, inode,
size and time), as git does. What does not agree with its manifest is thrown away and built anew.

The folders are the user's alone. One that somebody else owns or may write into is not used: who can
put tables there could tell any answer.
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

from selftime.ingest.mapped import Layout, read_tables, write_tables
from selftime.trace import Trace

FORMAT: Final = 8
"""Version of the tables and of this layout: raised with each change of either."""

_ENTRIES: Final = "tables-"
_MANIFEST: Final = "manifest.json"
_TABLES: Final = "tables.columns"
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OURS_ALONE: Final = 0o700
_LIMIT: Final = 20 << 30
"""Bytes of tables that are kept; the longest unused go first."""


def stamp(path: Path) -> str:
    """What changes when a file is written: its address on this machine, size and times."""
    found = path.stat()
    address = f"{path.resolve()}\n{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
    return sha256(address.encode("utf-8", "surrogateescape")).hexdigest()


def is_private(folder: Path) -> bool:
    """Whether a folder is there, is the user's own, and nobody else may write into it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):  # a link may lead to anybody's
        return False
    if not hasattr(os, "geteuid"):  # Windows: folders of a user are the user's alone
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def make_private(folder: Path) -> None:
    """Make a folder that is the user's alone, or find it to be.

    Raises:
        OSError: It cannot be made, or is there and may be written into by others.
    """
    folder.parent.mkdir(_OURS_ALONE, parents=True, exist_ok=True)
    folder.mkdir(_OURS_ALONE, exist_ok=True)
    if not is_private(folder):
        raise PermissionError(f"others may write into `{folder}`")


class Cache:
    """The user's cache of tables; every failure to read or write it is a miss, never an error."""

    def __init__(self) -> None:
        told = os.environ.get("SELFTIME_CACHE")
        root = Path(told) if told else Path(platformdirs.user_cache_dir("selftime"))
        self.entries = root / f"{_ENTRIES}{FORMAT}"
        self.index = root / f"index-{FORMAT}"

    def find(self, mark: str, source: str) -> Trace | None:
        """The trace of the file with that stamp, if its tables are here and sound."""
        if not is_private(self.index):
            return None
        try:
            content = (self.index / mark).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return self.read(content, source) if content.isalnum() else None

    def read(self, content: str, source: str) -> Trace | None:
        """The trace of that content; an entry that is not sound is removed."""
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
        """Keep a trace's tables; a cache that cannot be written is left alone."""
        try:
            make_private(self.entries)
            make_private(self.index)
            if not (self.entries / content).is_dir():
                self._write_entry(content, trace)
            if mark is not None:
                write_whole(self.index / mark, content.encode("ascii"))
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
        """Remove the longest unused entries beyond the limit, those of other versions too."""
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


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there with all of its bytes or not at all."""
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
