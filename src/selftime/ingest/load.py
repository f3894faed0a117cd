"""Open a path: a trace, or a folder of them."""

import os
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final, TypeAlias

from selftime.errors import UnreadableTrace
from selftime.ingest.document import read_document
from selftime.ingest.source import Source
from selftime.ingest.tables import build
from selftime.ingest.workers import decoder
from selftime.trace import Job, Trace

__all__ = ["load", "load_trace"]

Progress: TypeAlias = Callable[[int, int | None], None]

_SUFFIXES: Final = (".json", ".json.gz", ".json.zst", ".gz", ".zst")


def load(
    path: str | os.PathLike[str], *, progress: Progress | None = None, cache: bool = True
) -> Trace | Job:
    """Read a trace, or every trace in a folder.

    Args:
        path: A trace: JSON, plain, gzip or zstd, told by its content; a folder of them.
        progress: Called with the bytes read and the bytes to read, if known.
        cache: Whether to keep the tables on disk for the next time, and to use those kept.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
    """
    place = os.fspath(path)
    if Path(place).is_dir():
        return _load_folder(Path(place), progress, cache)
    return load_trace(place, progress=progress, cache=cache)


def load_trace(place: str, *, progress: Progress | None = None, cache: bool = True) -> Trace:
    """Read one file."""
    del cache
    try:
        with Path(place).open("rb") as file:
            return _read(file, place, Path(place).stat().st_size, progress)
    except OSError as error:
        raise UnreadableTrace(f"`{place}` cannot be read: {error.strerror or error}") from error


def _read(file: IO[bytes], place: str, size: int | None, progress: Progress | None) -> Trace:
    source = Source(file, size, progress)
    try:
        with decoder(size) as reading:
            document = read_document(source.blocks(), reading)
    except UnreadableTrace as error:
        raise UnreadableTrace(f"`{place}`: {error}") from error
    return build(document, source.faults, place)


def _load_folder(folder: Path, progress: Progress | None, cache: bool) -> Job:
    traces: dict[str, Trace] = {}
    refused: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or not path.name.endswith(_SUFFIXES):
            continue
        try:
            traces[str(path)] = load_trace(str(path), progress=progress, cache=cache)
        except UnreadableTrace as error:
            refused[str(path)] = str(error)
    if not traces:
        why = next(iter(refused.values()), "no file ends in .json, .json.gz or .json.zst")
        raise UnreadableTrace(f"the folder `{folder}` holds no trace: {why}")
    return Job(MappingProxyType(traces), MappingProxyType(refused))
