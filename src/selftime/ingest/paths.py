"""The files that a path means: one, those of a folder or of a pattern, here or at an address."""

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

_NONE: Final = -(1 << 63)
"""Stands for an unknown number."""

_SUFFIXES: Final = (".json", ".json.gz", ".json.zst")
"""How files of a folder end that are read as traces."""
_UNMATCHED: Final = "it matches no file"
_SINGLE: Final = frozenset({"http", "https", "data"})
"""Addresses of one file each: `*` and `?` are letters there, and nothing lists a folder."""
_BASES: Final = {
    "botocore.exceptions": "BotoCoreError",
    "google.auth.exceptions": "GoogleAuthError",
    "azure.core.exceptions": "AzureError",
    "aiohttp": "ClientError",
}
"""The base errors of storage packages, by module: those that are no OSError."""


def content_of(trace: Trace) -> str:
    """A digest of what a trace holds, the same wherever and however often it is taken.

    It is of the header, the number of rows of each table, every time, every amount of memory, and
    how often there is each name.
    """
    counted = trace.slices["name"].cast(pl.String).value_counts().sort("name").rows()
    rows = {name: table.height for name, table in trace.tables().items()}
    told = [dict(trace.metadata), trace.origin, rows, counted]
    digest = blake2b(json.dumps(told, sort_keys=True, default=str).encode(), digest_size=16)
    for column in (*trace.slices["start", "duration"], *trace.memory["time", "bytes"]):
        digest.update(column.fill_null(_NONE).rechunk().to_numpy().data)
    return digest.hexdigest()


def doubles(contents: Mapping[str, str]) -> dict[str, str]:
    """Why to leave out each path whose content another path has before it."""
    firsts: dict[str, str] = {}
    why: dict[str, str] = {}
    for path, content in contents.items():
        first = firsts.setdefault(content, path)
        if first != path:
            why[path] = f"`{path}` holds the same trace as `{first}`: it is counted once"
    return why


@dataclass(frozen=True, slots=True)
class Places:
    """The files that a path means, each once."""

    called: str
    """The path in a sentence: "the folder `runs`"."""
    root: str
    """The folder that all of them are in: what stands before it in a path tells no rank."""
    files: tuple[str, ...]
    """Paths or addresses, in order of their parts."""
    refused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What cannot be a trace though its name says so, and why."""
    lacking: str = "no name in it ends in .json, .json.gz or .json.zst"
    """Why there are no files, if there are none."""
    several: bool = True
    """Whether the path means all that is there, be it one file or none; else one file is named."""

    def nothing(self, refused: Mapping[str, str]) -> UnreadableTrace:
        """That none of the files is a trace, and why the first was refused."""
        why = next(iter(refused.values()), self.lacking)
        return UnreadableTrace(f"{self.called} holds no trace: {why}")


def places(path: str | os.PathLike[str]) -> Places:
    """The files that a path means.

    Args:
        path: A file; a folder, of which all files below it count whose names end as traces do; a
            pattern such as `runs/*rank1*.json.gz`, or `**` for folders below; or an address of any
            of these as fsspec writes it. What is here by that very name comes before all else.

    Raises:
        UnreadableTrace: The place does not answer, or there is no package for such addresses.
    """
    place = os.fspath(path)
    there, is_folder = _found(place)
    if is_folder:
        return _below(Path(place))
    if there or ("://" not in place and not has_magic(place)):
        return _one(place)
    return _elsewhere(place) if "://" in place else _matching(place)


def is_here(place: str) -> bool:
    """Whether there is a file or folder of that very name on this machine, address or not."""
    return _found(place)[0]


def failures() -> tuple[type[Exception], ...]:
    """What an address raises that does not answer: also errors of the packages that are loaded."""
    loaded = ((sys.modules.get(module), name) for module, name in _BASES.items())
    own = (getattr(module, name, None) for module, name in loaded if module is not None)
    return (OSError, ValueError, ImportError, *(error for error in own if error is not None))


def files_below(address: str) -> Iterator[tuple[str, str, int | None]]:
    """Each file's address, its folder below `address`, and its size if the other side tells it.

    Raises:
        UnreadableTrace: There is no package for such addresses, or no answer.
    """
    try:
        system, root = _reached(address)
        for folder, _, files in system.walk(root, detail=True):
            below = folder[len(root) :].strip("/")
            for entry in files.values():
                place = system.unstrip_protocol(entry["name"])
                yield place, below, entry.get("size")
    except failures() as error:
        raise unanswered(address, error) from error


def _found(place: str) -> tuple[bool, bool]:
    """Whether there is such a path here, and whether it is a folder."""
    try:
        return Path(place).exists(), Path(place).is_dir()
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{place}` cannot be read: {why}") from error


def _one(place: str) -> Places:
    return Places(f"`{place}`", place, (place,), several=False)


def _below(folder: Path) -> Places:
    files, refused = _files(folder.rglob("*"))
    return Places(f"the folder `{folder}`", str(folder), tuple(files), refused)


def _files(paths: Iterable[Path]) -> tuple[list[str], dict[str, str]]:
    """Those that are files named as traces; and those that cannot be looked at, and why."""
    named = sorted(path for path in paths if path.name.endswith(_SUFFIXES))
    refused = {str(path): why for path in named if (why := _refusal(path))}
    return [str(path) for path in named if str(path) not in refused and path.is_file()], refused


def _refusal(path: Path) -> str | None:
    """Why a path cannot be looked at, if it cannot."""
    try:
        if path.is_symlink() and not path.exists():
            return f"`{path}` cannot be read: it is a link that leads nowhere"
        path.stat()
    except OSError as error:  # a share that is gone tells it at any call
        return f"`{path}` cannot be read: {error.strerror or error}"
    return None


def _matching(pattern: str) -> Places:
    """Files that match are taken by any name, as one that is named is; folders as folders are."""
    found = [Path(path) for path in glob(pattern, recursive=True)]  # noqa: PTH207 - `Path.glob` wants the folder apart
    named = {str(path) for path in found if path.is_file()}
    refused: dict[str, str] = {}
    for folder in (path for path in found if path.is_dir()):
        below, unseen = _files(folder.rglob("*"))
        named.update(below)
        refused |= unseen
    fixed = _fixed(pattern, os.sep)
    return Places(f"the pattern `{pattern}`", fixed, _ordered(named), refused, _UNMATCHED)


def _fixed(pattern: str, separator: str) -> str:
    """The folder before the first part of a pattern that matches more than itself."""
    parts = pattern.split(separator)
    first = next(number for number, part in enumerate(parts) if has_magic(part))
    return separator.join(parts[:first])


def _elsewhere(address: str) -> Places:
    if "::" in address or address.partition("://")[0] in _SINGLE:
        return _one(address)
    try:
        system, root = _reached(address)
        if has_magic(root):
            named = _matched(system, root)
            fixed = system.unstrip_protocol(_fixed(root, "/"))
            return Places(f"the pattern `{address}`", fixed, _ordered(named), lacking=_UNMATCHED)
        if not system.isdir(root):
            return _one(address)
        start = system.unstrip_protocol(root)
    except failures() as error:
        raise unanswered(address, error) from error
    named = {place for place, _, _ in files_below(address) if place.endswith(_SUFFIXES)}
    return Places(f"the folder `{address}`", start, _ordered(named))


def _matched(system: Any, pattern: str) -> set[str]:
    named: set[str] = set()
    for entry in system.glob(pattern, detail=True).values():
        if entry["type"] == "file":
            named.add(system.unstrip_protocol(entry["name"]))
        else:
            below = map(system.unstrip_protocol, system.find(entry["name"]))
            named.update(place for place in below if place.endswith(_SUFFIXES))
    return named


def _reached(address: str) -> tuple[Any, str]:
    """The file system of an address, asked anew, and the path there."""
    system, root = fsspec.core.url_to_fs(address)
    system.invalidate_cache()
    return system, root


def _ordered(named: Iterable[str]) -> tuple[str, ...]:
    """In the order of their parts, as paths are sorted."""
    return tuple(sorted(named, key=lambda place: place.replace(os.sep, "/").split("/")))


def unanswered(address: str, error: Exception) -> UnreadableTrace:
    """That an address cannot be read, and why."""
    first = str(error).partition("\n")[0] or type(error).__name__
    if isinstance(error, FileNotFoundError) and first in address:
        first = "there is no such file or folder"
    return UnreadableTrace(f"`{address}` cannot be read: {first}")
