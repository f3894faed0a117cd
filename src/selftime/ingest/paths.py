"""Find the trace files that a path, folder, glob or fsspec address names."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from glob import glob, has_magic
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import fsspec
import polars as pl

from selftime.errors import UnreadableTrace
from selftime.trace import Trace

_NULL: Final = -(1 << 63)
"""The value that stands for null in the digest."""

_SUFFIXES: Final = (".json", ".json.gz", ".json.zst")
"""File name suffixes of traces: only such files of a folder are read."""
_UNMATCHED: Final = "it matches no file"
_SINGLE_FILE_PROTOCOLS: Final = frozenset({"http", "https", "data"})
"""Protocols of single files: `*` and `?` are literal, and folders cannot be listed."""
_STORAGE_ERRORS: Final = {
    "botocore.exceptions": "BotoCoreError",
    "google.auth.exceptions": "GoogleAuthError",
    "azure.core.exceptions": "AzureError",
    "aiohttp": "ClientError",
}
"""Base exceptions of storage packages that are not an OSError, by module."""


def content_digest(trace: Trace) -> str:
    """Returns a digest of a trace's content, the same each time it is computed.

    It covers the header, the number of rows of each table, every time, every amount of memory, and
    how often each name occurs.
    """
    counted = trace.slices["name"].cast(pl.String).value_counts().sort("name").rows()
    rows = {name: table.height for name, table in trace.tables().items()}
    header = [dict(trace.metadata), trace.origin, rows, counted]
    digest = blake2b(json.dumps(header, sort_keys=True, default=str).encode(), digest_size=16)
    for column in (*trace.slices["start", "duration"], *trace.memory["time", "bytes"]):
        digest.update(column.fill_null(_NULL).rechunk().to_numpy().data)
    return digest.hexdigest()


def duplicates(contents: Mapping[str, str]) -> dict[str, str]:
    """Returns the reason to skip each path whose content an earlier path already has."""
    firsts: dict[str, str] = {}
    why: dict[str, str] = {}
    for path, content in contents.items():
        first = firsts.setdefault(content, path)
        if first != path:
            why[path] = f"`{path}` holds the same trace as `{first}`: it is counted once"
    return why


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """The trace files that a path names, each once."""

    description: str
    """The path as a phrase for messages: "the folder `runs`"."""
    root: str
    """The folder that contains all files; ranks are not read from the path above it."""
    files: tuple[str, ...]
    """Paths or addresses, sorted by their path components."""
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The reason by path for files named like a trace that cannot be read."""
    empty_reason: str = "no name in it ends in .json, .json.gz or .json.zst"
    """The reason to state if there are no files."""
    is_collection: bool = True
    """Whether the path is a folder or glob, of any number of files; False for one named file."""

    def no_trace_error(self, refused: Mapping[str, str]) -> UnreadableTrace:
        """Returns the error that no file is a trace, with the first refusal as its reason."""
        why = next(iter(refused.values()), self.empty_reason)
        return UnreadableTrace(f"{self.description} holds no trace: {why}")


def trace_files(path: str | os.PathLike[str]) -> TraceFiles:
    """Returns the trace files that a path names.

    Args:
        path: A file; a folder, of which all files below it with a trace's suffix are taken; a glob
            such as `runs/*rank1*.json.gz`, or `**` for folders below; or an fsspec address of any
            of these. A local file of exactly this name takes precedence.

    Raises:
        UnreadableTrace: The address does not answer, or its fsspec package is not installed.
    """
    place = os.fspath(path)
    there, is_folder = _exists_and_is_folder(place)
    if is_folder:
        return _files_in_folder(Path(place))
    if there or ("://" not in place and not has_magic(place)):
        return _single_file(place)
    return _files_at_address(place) if "://" in place else _files_of_glob(place)


def is_local(place: str) -> bool:
    """Returns whether a local file or folder has exactly this name, even if it is an address."""
    return _exists_and_is_folder(place)[0]


def address_errors() -> tuple[type[Exception], ...]:
    """Returns the exceptions of unreachable addresses, including those of loaded packages."""
    loaded = ((sys.modules.get(module), name) for module, name in _STORAGE_ERRORS.items())
    own = (getattr(module, name, None) for module, name in loaded if module is not None)
    return (OSError, ValueError, ImportError, *(error for error in own if error is not None))


def files_below(address: str) -> Iterator[tuple[str, str, int | None]]:
    """Yields each file's address, its folder below `address`, and its size in bytes or None.

    Raises:
        UnreadableTrace: The address does not answer, or its fsspec package is not installed.
    """
    try:
        system, root = _filesystem_of(address)
        for folder, _, files in system.walk(root, detail=True):
            below = folder[len(root) :].strip("/")
            for entry in files.values():
                place = system.unstrip_protocol(entry["name"])
                yield place, below, entry.get("size")
    except address_errors() as error:
        raise address_error(address, error) from error


def _exists_and_is_folder(place: str) -> tuple[bool, bool]:
    """Returns whether the local path exists, and whether it is a folder."""
    try:
        return Path(place).exists(), Path(place).is_dir()
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{place}` cannot be read: {why}") from error


def _single_file(place: str) -> TraceFiles:
    return TraceFiles(f"`{place}`", place, (place,), is_collection=False)


def _files_in_folder(folder: Path) -> TraceFiles:
    files, refused = _named_as_traces(folder.rglob("*"))
    return TraceFiles(f"the folder `{folder}`", str(folder), tuple(files), refused)


def _named_as_traces(paths: Iterable[Path]) -> tuple[list[str], dict[str, str]]:
    """Returns the files with a trace's suffix, and the reasons why others cannot be read."""
    named = sorted(path for path in paths if path.name.endswith(_SUFFIXES))
    refused = {str(path): why for path in named if (why := _refusal(path))}
    return [str(path) for path in named if str(path) not in refused and path.is_file()], refused


def _refusal(path: Path) -> str | None:
    """Returns why a path cannot be read; None if it can."""
    try:
        if path.is_symlink() and not path.exists():
            return f"`{path}` cannot be read: it is a link that leads nowhere"
        path.stat()
    except OSError as error:  # a network share that is gone can raise at any call
        return f"`{path}` cannot be read: {error.strerror or error}"
    return None


def _files_of_glob(pattern: str) -> TraceFiles:
    """Returns files that match a local glob, by any suffix; matched folders are searched."""
    found = [Path(path) for path in glob(pattern, recursive=True)]  # noqa: PTH207 - `Path.glob` wants the folder apart
    named = {str(path) for path in found if path.is_file()}
    refused: dict[str, str] = {}
    for folder in (path for path in found if path.is_dir()):
        below, unseen = _named_as_traces(folder.rglob("*"))
        named.update(below)
        refused |= unseen
    fixed = _literal_prefix(pattern, os.sep)
    return TraceFiles(f"the pattern `{pattern}`", fixed, _sorted_paths(named), refused, _UNMATCHED)


def _literal_prefix(pattern: str, separator: str) -> str:
    """Returns the literal directory prefix of a glob: the parts before the first wildcard."""
    parts = pattern.split(separator)
    first = next(number for number, part in enumerate(parts) if has_magic(part))
    return separator.join(parts[:first])


def _files_at_address(address: str) -> TraceFiles:
    if "::" in address or address.partition("://")[0] in _SINGLE_FILE_PROTOCOLS:
        return _single_file(address)
    try:
        system, root = _filesystem_of(address)
        if has_magic(root):
            named = _glob_address(system, root)
            fixed = system.unstrip_protocol(_literal_prefix(root, "/"))
            return TraceFiles(
                f"the pattern `{address}`", fixed, _sorted_paths(named), empty_reason=_UNMATCHED
            )
        if not system.isdir(root):
            return _single_file(address)
        start = system.unstrip_protocol(root)
    except address_errors() as error:
        raise address_error(address, error) from error
    named = {place for place, _, _ in files_below(address) if place.endswith(_SUFFIXES)}
    return TraceFiles(f"the folder `{address}`", start, _sorted_paths(named))


def _glob_address(system: Any, pattern: str) -> set[str]:
    named: set[str] = set()
    for entry in system.glob(pattern, detail=True).values():
        if entry["type"] == "file":
            named.add(system.unstrip_protocol(entry["name"]))
        else:
            below = map(system.unstrip_protocol, system.find(entry["name"]))
            named.update(place for place in below if place.endswith(_SUFFIXES))
    return named


def _filesystem_of(address: str) -> tuple[Any, str]:
    """Returns the file system of an address with its cache cleared, and the path in it."""
    system, root = fsspec.core.url_to_fs(address)
    system.invalidate_cache()
    return system, root


def _sorted_paths(named: Iterable[str]) -> tuple[str, ...]:
    """Returns paths sorted component by component."""
    return tuple(sorted(named, key=lambda place: place.replace(os.sep, "/").split("/")))


def address_error(address: str, error: Exception) -> UnreadableTrace:
    """Returns the error that an address cannot be read, with the reason."""
    first = str(error).partition("\n")[0] or type(error).__name__
    if isinstance(error, FileNotFoundError) and first in address:
        first = "there is no such file or folder"
    return UnreadableTrace(f"`{address}` cannot be read: {first}")
