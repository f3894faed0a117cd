"""Open a path: a trace, or a folder of them, here or at an fsspec address."""

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final, TypeAlias

import fsspec

from selftime.errors import UnreadableTrace
from selftime.ingest.cache import Cache, stamp
from selftime.ingest.document import Document, read_document
from selftime.ingest.faults import Fault
from selftime.ingest.snapshot import LIMIT as SNAPSHOT_LIMIT
from selftime.ingest.snapshot import read_snapshot
from selftime.ingest.sniff import is_pickle
from selftime.ingest.source import Source
from selftime.ingest.tables import build
from selftime.ingest.workers import decoder
from selftime.trace import Job, Trace

__all__ = ["load"]

Progress: TypeAlias = Callable[[int, int | None], None]

_SUFFIXES: Final = (".json", ".json.gz", ".json.zst")


def load(
    path: str | os.PathLike[str], *, progress: Progress | None = None, cache: bool = True
) -> Trace | Job:
    """Read a trace, or every trace in a folder.

    Args:
        path: A trace, told by its content: JSON or a snapshot of PyTorch's CUDA allocator, plain,
            gzip or zstd; a folder of traces in JSON; or the
            address of a trace as fsspec writes it, such as `s3://bucket/trace.json.gz`.
        progress: Called with the bytes read and the bytes to read, if known.
        cache: Whether to keep the tables of a file here for the next time, and to use those kept.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
    """
    place = os.fspath(path)
    if "://" in place:
        return _read_address(place, progress)
    if Path(place).is_dir():
        return _read_folder(Path(place), progress, cache=cache)
    return _read_file(place, progress, Cache() if cache else None)


def _read_file(place: str, progress: Progress | None, cache: Cache | None) -> Trace:
    path = Path(place)
    try:
        if not path.is_file():
            why = "it is not a regular file" if path.exists() else "there is no such file or folder"
            raise UnreadableTrace(f"`{place}` cannot be read: {why}")
        mark = stamp(path)
        if cache is not None:
            known = cache.find(mark, place)
            if known is not None:
                return known
        with path.open("rb") as file:
            trace, content = _read(file, place, path.stat().st_size, progress)
        unchanged = stamp(path) == mark
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{place}` cannot be read: {why}") from error
    if not unchanged:
        raise UnreadableTrace(
            f"`{place}` changed while it was read: read it again when it is whole"
        )
    if cache is not None:
        cache.write(content, mark, trace)
    return trace


def _read_address(place: str, progress: Progress | None) -> Trace:
    """A file elsewhere: nothing tells that its content is known before it is read, so no cache."""
    try:
        with fsspec.open(place, "rb") as file:
            size = getattr(file, "size", None)
            return _read(file, place, size, progress)[0]
    except (OSError, ValueError, ImportError) as error:
        first = str(error).partition("\n")[0] or type(error).__name__
        raise UnreadableTrace(f"`{place}` cannot be read: {first}") from error


class _Hashing:
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.hash = file, sha256()

    def read(self, size: int) -> bytes:
        block = self.file.read(size)
        self.hash.update(block)
        return block


def _read(
    file: IO[bytes], place: str, size: int | None, progress: Progress | None
) -> tuple[Trace, str]:
    """The trace in an open file, and the hash of the file's bytes."""
    hashing: Any = _Hashing(file)
    source = Source(hashing, size, progress)
    blocks = source.blocks()
    first = next(blocks, b"")
    try:
        if is_pickle(first):
            return read_snapshot(_whole(first, blocks), place), hashing.hash.hexdigest()
        with decoder(size) as reading:
            document = read_document(chain([first], blocks), reading)
    except UnreadableTrace as error:
        raise UnreadableTrace(f"`{place}` cannot be read: {error}") from error
    if not any(phase for chunk in document.chunks for phase, _ in chunk.phases if phase != "M"):
        raise UnreadableTrace(f"`{place}` cannot be read: {_no_events(document, source.faults)}")
    while hashing.read(1 << 20):
        pass
    return build(document, source.faults, place), hashing.hash.hexdigest()


def _whole(first: bytes, blocks: Iterator[bytes]) -> bytes:
    """The bytes of a snapshot, within what can be read at once."""
    parts, size = [first], len(first)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > SNAPSHOT_LIMIT:
            raise UnreadableTrace(
                f"it is a memory snapshot of more than {SNAPSHOT_LIMIT >> 30} GiB: record fewer "
                "entries with `max_entries`"
            )
    return b"".join(parts)


def _no_events(document: Document, container: list[Fault]) -> str:
    """Why there is nothing to show, as the end of a sentence that says what to do."""
    faults = [fault.fault for fault in [*container, *document.faults]]
    if faults:
        seen = ", ".join(dict.fromkeys(faults))
        return f"no event in it is sound ({seen}): give a whole trace"
    if document.arrays:
        only = "only metadata" if any(chunk.phases for chunk in document.chunks) else "no events"
        return f"it holds {only}: record at least one step"
    metadata = document.metadata
    if not metadata:
        return "it is an empty JSON object: give a trace that PyTorch's profiler wrote"
    keys = ", ".join(f"`{repr(key[:40])[1:-1]}`" for key in list(metadata)[:8])
    return (
        f"it is JSON without a list of `traceEvents`, so not a PyTorch trace; keys found: {keys}: "
        "give a trace that PyTorch's profiler wrote"
    )


def _read_folder(folder: Path, progress: Progress | None, *, cache: bool) -> Job:
    traces: dict[str, Trace] = {}
    refused: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if not path.name.endswith(_SUFFIXES) or not path.is_file():
            continue
        try:
            traces[str(path)] = _read_file(str(path), progress, Cache() if cache else None)
        except UnreadableTrace as error:
            refused[str(path)] = str(error)
    if not traces:
        why = next(iter(refused.values()), "no name in it ends in .json, .json.gz or .json.zst")
        raise UnreadableTrace(f"the folder `{folder}` holds no trace: {why}")
    return Job(MappingProxyType(traces), MappingProxyType(refused))
