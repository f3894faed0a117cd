"""Finds the trace files that a path, a folder, a glob or an fsspec URL refers to."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import fsspec
import polars as pl

from selftime.errors import UnreadableTrace
from selftime.ledger_format import LEDGER_SUFFIX, is_slow_step_file
from selftime.names import rank_in_file_name
from selftime.run import Run
from selftime.trace import Trace

_VALUE_OF_NULL_IN_DIGEST: Final = -(1 << 63)
"""The number that replaces null where a column's digest is computed."""

_TRACE_FILE_SUFFIXES: Final = (".json", ".json.gz", ".json.zst")
"""File name suffixes of traces; of a folder, only files with such a suffix are read."""
_NO_MATCHING_FILE_REASON: Final = "it matches no file"
_HOW_FILES_COME: Final = (
    "`selftime run SCRIPT` records a program, and says at its end where its files are"
)
NO_SUCH_FILE: Final = f"there is no such file or folder; {_HOW_FILES_COME}"
"""Reason why a local path cannot be read that does not exist."""
_SINGLE_FILE_PROTOCOLS: Final = frozenset({"http", "https", "data"})
"""URL protocols of single files, for which `*` and `?` are no wildcards and folders cannot be
listed.
"""
_BASE_EXCEPTION_BY_STORAGE_MODULE: Final = {
    "botocore.exceptions": "BotoCoreError",
    "google.auth.exceptions": "GoogleAuthError",
    "azure.core.exceptions": "AzureError",
    "aiohttp": "ClientError",
}
"""Maps a storage package's module to its base exception, for packages that do not raise OSError."""


def content_digest(trace: Trace) -> str:
    """Returns a digest of a trace's header, times, memory amounts and names.

    The digest covers the header, the number of rows of each table, every time, every amount of
    memory, and how often each name occurs. Of a ledger without a trace it covers the run.
    """
    if trace.run.source == trace.source != "":
        return _digest_of_run(trace.run)
    counts = trace.slices["name"].value_counts()  # before the cast: names are few, slices many
    counted = counts.with_columns(pl.col("name").cast(pl.String)).sort("name").rows()
    rows = {name: table.height for name, table in trace.tables().items()}
    header = [dict(trace.metadata), trace.origin, rows, counted]
    digest = blake2b(json.dumps(header, sort_keys=True, default=str).encode(), digest_size=16)
    for column in (*trace.slices["start", "duration"], *trace.memory["time", "bytes"]):
        digest.update(column.fill_null(_VALUE_OF_NULL_IN_DIGEST).rechunk().to_numpy().data)
    return digest.hexdigest()


def _digest_of_run(run: Run) -> str:
    """Returns a digest of a run's process, start, segments and stack samples."""
    tables = [table.rows() for table in (run.segments, run.readings, run.compilations)]
    content = [dict(run.facts), run.began_at, run.startup_ns, run.is_whole, tables]
    text = json.dumps(content, sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def skip_reasons_of_duplicates(digest_by_path: Mapping[str, str]) -> dict[str, str]:
    """Returns, by path, why a trace is skipped: its content equals that of an earlier path."""
    first_paths: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for path, digest in digest_by_path.items():
        first = first_paths.setdefault(digest, path)
        if first != path:
            reasons[path] = f"`{path}` holds the same trace as `{first}`: it is counted once"
    return reasons


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """The trace files that a path, a folder, a glob or an fsspec URL refers to."""

    description: str
    """The path as a phrase for messages, such as "the folder `runs`"."""
    root: str
    """The folder that contains all files; ranks are read only from the part of a path below it."""
    files: tuple[str, ...]
    """Paths or addresses of the trace files, sorted by their path components."""
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Maps each file that is named like a trace but cannot be read to the reason."""
    empty_reason: str = "no name in it ends in .json, .json.gz or .json.zst"
    """The reason that an error message gives if none of the files is a trace."""
    is_collection: bool = True
    """Whether the path is a folder or a glob, with any number of files; false for a single file."""
    is_local_folder: bool = False

    def no_trace_error(self, skip_reasons: Mapping[str, str]) -> UnreadableTrace:
        """Returns an error that says that no file is a trace, and why the first file is none."""
        why = next(iter(skip_reasons.values()), self.empty_reason)
        return UnreadableTrace(f"{self.description} holds no trace: {why}")


def trace_files(path: str | os.PathLike[str]) -> TraceFiles:
    """Finds the trace files that a path, a folder, a glob or an fsspec URL refers to.

    Args:
        path: A file; a folder, of which all files below it with a trace's suffix are taken; a glob
            such as `runs/*rank1*.json.gz`, or `**` for folders below; or an fsspec address of any
            of these. A local file of exactly this name takes precedence.

    Raises:
        UnreadableTrace: The address does not answer, or its fsspec package is not installed; or
            the path is empty, which Python takes for the working folder.
    """
    path_text = os.fspath(path)
    if not path_text:
        raise UnreadableTrace("the path is empty; name a file, or a folder: `.` is this one")
    exists, is_folder = _does_path_exist_and_is_it_folder(path_text)
    if is_folder:
        return _trace_files_in_folder(Path(path_text))
    if exists or ("://" not in path_text and not has_magic(path_text)):
        return _trace_files_of_single_file(path_text)
    return (
        _trace_files_at_address(path_text)
        if "://" in path_text
        else _trace_files_of_glob(path_text)
    )


def is_existing_local_path(path: str) -> bool:
    """Returns whether a local file or folder has exactly this path, even if it looks like a URL."""
    return _does_path_exist_and_is_it_folder(path)[0]


def storage_exceptions() -> tuple[type[Exception], ...]:
    """Returns the exception types that fsspec and imported storage packages raise."""
    loaded = (
        (sys.modules.get(module), name)
        for module, name in _BASE_EXCEPTION_BY_STORAGE_MODULE.items()
    )
    own = (getattr(module, name, None) for module, name in loaded if module is not None)
    return (OSError, ValueError, ImportError, *(error for error in own if error is not None))


def files_below_address(address: str) -> Iterator[tuple[str, str, int | None]]:
    """Yields (URL, folder relative to `address`, bytes or None) of each file below `address`.

    Raises:
        UnreadableTrace: The address does not answer, or its fsspec package is not installed.
    """
    try:
        system, root = _filesystem_and_path_of_address(address)
        for folder, _, files in system.walk(root, detail=True):
            below = folder[len(root) :].strip("/")
            for entry in files.values():
                place = system.unstrip_protocol(entry["name"])
                yield place, below, entry.get("size")
    except storage_exceptions() as error:
        raise unreadable_address_error(address, error) from error


def _does_path_exist_and_is_it_folder(path: str) -> tuple[bool, bool]:
    """Returns whether a local path exists, and whether it is a folder."""
    try:
        return Path(path).exists(), Path(path).is_dir()
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{path}` cannot be read: {why}") from error


def _trace_files_of_single_file(path: str) -> TraceFiles:
    return TraceFiles(f"`{path}`", path, (path,), is_collection=False)


def _trace_files_in_folder(folder: Path) -> TraceFiles:
    files, refused = _find_files_with_trace_suffix(folder.rglob("*"))
    told = TraceFiles(
        f"the folder `{folder}`", str(folder), tuple(files), refused, is_local_folder=True
    )
    if not any(folder.iterdir()):
        return replace(told, empty_reason=f"it is empty; {_HOW_FILES_COME}")
    if not files and any(is_slow_step_file(path.name) for path in folder.rglob("*")):
        return replace(told, empty_reason="it has those of slow steps alone; name one of them")
    return told


def _find_files_with_trace_suffix(paths: Iterable[Path]) -> tuple[list[str], dict[str, str]]:
    """Returns readable files with a trace suffix, and for each unreadable file the reason."""
    found = sorted(paths)
    named = [path for path in found if _is_named_as_trace(path.name)]
    if not named:  # a trace names its ledger; one without a trace stands for itself
        named = [path for path in found if path.name.endswith(LEDGER_SUFFIX)]
    refused = {str(path): why for path in named if (why := _unreadable_reason(path))}
    return [str(path) for path in named if str(path) not in refused and path.is_file()], refused


def _is_named_as_trace(name: str) -> bool:
    """Returns whether a file of a folder is named as a trace; one of a slow step is left out.

    That one is of a step that differs from those of the program, and is read by its own path.
    """
    return name.endswith(_TRACE_FILE_SUFFIXES) and not is_slow_step_file(name)


def ledgers_without_trace(paths: Iterable[Path], traces: Iterable[Path]) -> list[Path]:
    """Returns the paths of ledgers that have no trace beside them.

    The file names of a process's ledger and traces begin with its host and number, so that a ledger
    is recognised as a trace's own without opening the trace.
    """
    processes = {folder_and_process(path) for path in traces}
    ledgers = [path for path in paths if path.name.endswith(LEDGER_SUFFIX)]
    return [path for path in ledgers if folder_and_process(path) not in processes]


def folder_and_process(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Returns the folder of a file, and the parts of its name before the time, without the rank."""
    suffixes = (LEDGER_SUFFIX, *_TRACE_FILE_SUFFIXES)
    stem = next((path.name.removesuffix(s) for s in suffixes if path.name.endswith(s)), path.name)
    parts = stem.removesuffix(".pt.trace").split("_")[:-1]
    return path.parent, tuple(part for part in parts if rank_in_file_name(part) is None)


def _unreadable_reason(path: Path) -> str | None:
    """Returns the reason why a path cannot be read; None if it can be read."""
    try:
        if path.is_symlink() and not path.exists():
            return f"`{path}` cannot be read: it is a link that leads nowhere"
        path.stat()
    except OSError as error:  # a network share that is gone can raise at any call
        return f"`{path}` cannot be read: {error.strerror or error}"
    return None


def _trace_files_of_glob(pattern: str) -> TraceFiles:
    """Returns the files that match a local glob, and the traces in the folders that match it."""
    found = [Path(path) for path in glob(pattern, recursive=True)]  # noqa: PTH207 - `Path.glob` wants the folder apart
    named = {str(path) for path in found if path.is_file() and _is_meant_by(pattern, path.name)}
    refused: dict[str, str] = {}
    for folder in (path for path in found if path.is_dir()):
        below, unseen = _find_files_with_trace_suffix(folder.rglob("*"))
        named.update(below)
        refused |= unseen
    fixed = _directory_before_wildcards(pattern, os.sep)
    return TraceFiles(
        f"the pattern `{pattern}`",
        fixed,
        _sort_paths_by_component(named),
        refused,
        _NO_MATCHING_FILE_REASON,
    )


def _is_meant_by(pattern: str, name: str) -> bool:
    """Returns False for the trace of a slow step that matches a glob for other traces, too."""
    return is_slow_step_file(pattern) or not is_slow_step_file(name)


def _directory_before_wildcards(pattern: str, separator: str) -> str:
    """Returns the directory prefix of a glob: its parts before the first wildcard."""
    parts = pattern.split(separator)
    first = next(number for number, part in enumerate(parts) if has_magic(part))
    return separator.join(parts[:first])


def _trace_files_at_address(address: str) -> TraceFiles:
    if "::" in address or address.partition("://")[0] in _SINGLE_FILE_PROTOCOLS:
        return _trace_files_of_single_file(address)
    try:
        system, root = _filesystem_and_path_of_address(address)
        if has_magic(root):
            named = _addresses_of_glob(system, root)
            fixed = system.unstrip_protocol(_directory_before_wildcards(root, "/"))
            return TraceFiles(
                f"the pattern `{address}`",
                fixed,
                _sort_paths_by_component(named),
                empty_reason=_NO_MATCHING_FILE_REASON,
            )
        if not system.isdir(root):
            return _trace_files_of_single_file(address)
        start = system.unstrip_protocol(root)
    except storage_exceptions() as error:
        raise unreadable_address_error(address, error) from error
    named = {place for place, _, _ in files_below_address(address) if _is_named_as_trace(place)}
    return TraceFiles(f"the folder `{address}`", start, _sort_paths_by_component(named))


def _addresses_of_glob(filesystem: Any, pattern: str) -> set[str]:
    addresses: set[str] = set()
    for entry in filesystem.glob(pattern, detail=True).values():
        if entry["type"] == "file" and _is_meant_by(pattern, entry["name"]):
            addresses.add(filesystem.unstrip_protocol(entry["name"]))
        elif entry["type"] != "file":
            below = map(filesystem.unstrip_protocol, filesystem.find(entry["name"]))
            addresses.update(place for place in below if _is_named_as_trace(place))
    return addresses


def _filesystem_and_path_of_address(address: str) -> tuple[Any, str]:
    """Returns the fsspec file system of a URL, and the path within that file system."""
    system, root = fsspec.core.url_to_fs(address)
    system.invalidate_cache()
    return system, root


def _sort_paths_by_component(paths: Iterable[str]) -> tuple[str, ...]:
    """Returns paths sorted by their components: by folder before file name."""
    return tuple(sorted(paths, key=lambda path: path.replace(os.sep, "/").split("/")))


def unreadable_address_error(address: str, error: Exception) -> UnreadableTrace:
    """Returns an error that says that an address cannot be read, and why."""
    first = str(error).partition("\n")[0] or type(error).__name__
    if isinstance(error, FileNotFoundError) and first in address:
        first = "there is no such file or folder"
    return UnreadableTrace(f"`{address}` cannot be read: {first}")
