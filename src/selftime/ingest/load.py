"""Load a trace, or all traces of a folder or glob, from local disk or an fsspec address."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import fsspec
import polars as pl

from selftime.errors import UnreadableTrace
from selftime.ingest.cache import Cache, file_stamp
from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.repair_report import fault_table
from selftime.ingest.paths import (
    TraceFiles,
    address_error,
    address_errors,
    duplicates,
    is_local,
    trace_files,
)
from selftime.ingest.perfetto.events import as_json
from selftime.ingest.perfetto.messages import is_perfetto
from selftime.ingest.ranks import identity_of, members_of
from selftime.ingest.snapshots.pickles import join_blocks
from selftime.ingest.snapshots.snapshot import read_snapshot
from selftime.ingest.tables import build_trace
from selftime.ingest.text.document import Document, is_chunked, read_documents
from selftime.ingest.text.file_text import file_text
from selftime.ingest.text.hashed_file import HashedFile
from selftime.ingest.text.no_events import no_events_reason
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source
from selftime.ingest.text.window import TextWindow
from selftime.ingest.workers import open_decoder
from selftime.trace import Job, Trace

Progress: TypeAlias = Callable[[int, int | None], None]

_BLOCK: Final = 1 << 20


def load(
    path: str | os.PathLike[str], *, progress: Progress | None = None, cache: bool = True
) -> Trace | Job:
    """Read a trace, or every trace in a folder or matched by a glob.

    Args:
        path: A trace, recognised by its content: JSON, Perfetto's format, or a snapshot of
            PyTorch's CUDA allocator, plain, gzip or zstd; a folder of traces in JSON; a glob
            such as `runs/*rank1*.json.gz`; or an fsspec address of any of these, such as
            `s3://bucket/run/`. If a program mistook an address for a path and created a local
            folder `s3:`, that folder is read.
        progress: Called with the bytes read so far and the total bytes, None if unknown.
        cache: Whether to use the disk cache for local files, and to store what is read in it.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
    """
    found = trace_files(path)
    if found.is_collection:
        return _read_all(found, progress, cache=cache)
    [place] = found.files
    traces = read_file(place, progress=progress, cache=cache)
    return next(iter(traces.values())) if len(traces) == 1 else _job(traces, {}, place)


def read_file(
    place: str, *, progress: Progress | None = None, cache: bool = True
) -> dict[str, Trace]:
    """Returns the traces in one file by path; several in one file are numbered from 1.

    Raises:
        UnreadableTrace: The file holds no trace, or cannot be read.
    """
    if "://" in place and not is_local(place):
        return _numbered(_read_address(place, progress), place)
    return _numbered(_read_file(place, progress, Cache() if cache else None), place)


def _job(traces: dict[str, Trace], refused: dict[str, str], root: str) -> Job:
    identities = {path: identity_of(trace) for path, trace in traces.items()}
    twice = duplicates({path: identity.content for path, identity in identities.items()})
    once = {path: identity for path, identity in identities.items() if path not in twice}
    members, notes = members_of(once, root)
    return Job(
        MappingProxyType({path: traces[path] for path in once}),
        MappingProxyType(refused | twice),
        MappingProxyType(members),
        notes,
    )


def _numbered(traces: list[Trace], place: str) -> dict[str, Trace]:
    if len(traces) == 1:
        return {place: traces[0]}
    return {f"{place}#{number}": trace for number, trace in enumerate(traces, 1)}


def _read_file(place: str, progress: Progress | None, cache: Cache | None) -> list[Trace]:
    path = Path(place)
    try:
        if not path.is_file():
            why = "it is not a regular file" if path.exists() else "there is no such file or folder"
            raise UnreadableTrace(f"`{place}` cannot be read: {why}")
        mark = file_stamp(path)
        if cache is not None:
            known = cache.find(mark, place)
            if known is not None:
                return [known]
        with path.open("rb") as file:
            hashed = HashedFile(file, os.fstat(file.fileno()).st_size, place)
            traces = _read(hashed, place, hashed.size, progress)
        unchanged = file_stamp(path) == mark
        grown = not unchanged and hashed.has_grown(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{place}` cannot be read: {why}") from error
    if grown:
        return [_growing(trace, hashed.size) for trace in traces]
    if not unchanged:
        raise UnreadableTrace(
            f"`{place}` changed while it was read: read it again when it is whole"
        )
    if cache is not None and len(traces) == 1:
        cache.write(hashed.content(), mark, traces[0])
    return traces


def _growing(trace: Trace, size: int | None) -> Trace:
    """Returns the trace with a fault that says its file is still being written."""
    fault = Fault(f"the file is still growing: read up to byte {size:,}", note=False)
    return replace(trace, repairs=pl.concat([trace.repairs, fault_table([fault])]))


def _read_address(place: str, progress: Progress | None) -> list[Trace]:
    """Read a remote file, without the cache: its content is unknown until it is read."""
    try:
        with fsspec.open(place, "rb") as file:
            size = getattr(file, "size", None)
            return _read(HashedFile(file, size), place, size, progress)
    except address_errors() as error:
        raise address_error(place, error) from error


def _read(file: HashedFile, place: str, size: int | None, progress: Progress | None) -> list[Trace]:
    """Returns the traces in an open file, which is read to its end."""
    reader: Any = file
    source = Source(reader, size, progress)
    blocks = source.blocks()
    try:
        first = next(blocks, b"")
        if is_pickle(first):
            return [read_snapshot(join_blocks(first, blocks), place)]
        if is_perfetto(first):
            blocks, first = as_json(chain([first], blocks), source.faults), b""
            stored = None
        else:
            stored = file_text(file, progress) if is_chunked(file.size) else None
        text = TextWindow(chain([first], blocks)) if stored is None else stored
        with open_decoder(size) as reading:
            documents = read_documents(text, reading)
    except UnreadableTrace as error:
        why = source.faults[0].fault if source.faults and not source.given else error
        raise UnreadableTrace(f"`{place}` cannot be read: {why}") from error
    found = [document for document in documents if _has_events(document)]
    if not found:
        why = no_events_reason(documents[0], source.faults, text.offset)
        raise UnreadableTrace(f"`{place}` cannot be read: {why}")
    if len(found) > 1:
        source.faults.append(Fault(f"the file holds {len(found):,} traces: each is read by itself"))
    while stored is None and file.read(_BLOCK):
        pass
    traces = _numbered([Trace()] * len(found), place)
    return [
        build_trace(document, source.faults, name)
        for document, name in zip(found, traces, strict=True)
    ]


def _has_events(document: Document) -> bool:
    return any(phase for chunk in document.chunks for phase, _ in chunk.phases if phase != "M")


def _read_all(found: TraceFiles, progress: Progress | None, *, cache: bool) -> Job:
    outcomes = {
        place: read_file_or_reason(place, progress=progress, cache=cache) for place in found.files
    }
    refused = {place: told for place, told in outcomes.items() if isinstance(told, str)}
    read = [told for told in outcomes.values() if not isinstance(told, str)]
    refused = dict(found.refused) | refused
    if not read:
        raise found.no_trace_error(refused)
    return _job(
        {path: trace for traces in read for path, trace in traces.items()}, refused, found.root
    )


def read_file_or_reason(
    place: str, *, progress: Progress | None = None, cache: bool = True
) -> dict[str, Trace] | str:
    """Returns the traces as `read_file` does, or the reason why the file holds none."""
    try:
        return read_file(place, progress=progress, cache=cache)
    except UnreadableTrace as error:
        return str(error)
