"""Loads a trace, or all traces of a folder or glob, from a local disk or an fsspec address."""

import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import fsspec
import polars as pl

from selftime.errors import UnreadableTrace
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.damage.repair_report import fault_table
from selftime.ingest.decoding_workers import open_chunk_decoder
from selftime.ingest.job_grouping import refuse_unrelated_traces
from selftime.ingest.job_ranks import identity_of_trace, job_members
from selftime.ingest.ledger import is_ledger, ledger_beside, read_ledger
from selftime.ingest.perfetto.events import kineto_json_of_perfetto
from selftime.ingest.perfetto.protobuf_messages import is_perfetto_trace
from selftime.ingest.snapshots.allocator_snapshot import read_snapshot
from selftime.ingest.snapshots.plain_pickles import join_snapshot_blocks
from selftime.ingest.text.decompressed_text import DecompressedFile
from selftime.ingest.text.file_text_window import open_file_text
from selftime.ingest.text.format_detection import damaged_perfetto_reason, is_pickle
from selftime.ingest.text.hashed_file import HashedFile
from selftime.ingest.text.no_events_reason import no_events_reason
from selftime.ingest.text.text_window import TextWindow
from selftime.ingest.text.trace_parsing import ParsedTrace, is_decoded_in_chunks, parse_all_traces
from selftime.ingest.trace_cache import TraceCache, file_stamp
from selftime.ingest.trace_paths import (
    NO_SUCH_FILE,
    TraceFiles,
    is_existing_local_path,
    skip_reasons_of_duplicates,
    storage_exceptions,
    trace_files,
    unreadable_address_error,
)
from selftime.ingest.trace_tables import build_trace
from selftime.progress import ProgressCallback
from selftime.trace import Job, Trace

_FILE_READ_BLOCK_BYTES: Final = 1 << 20


def load(
    path: str | os.PathLike[str], *, progress: ProgressCallback | None = None, cache: bool = True
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
        UnrelatedTraces: A folder holds traces of several jobs, which are not read as one; a glob
            reads together what it matches.
    """
    found = trace_files(path)
    refuse_unrelated_traces(found)
    return load_files(found, progress=progress, cache=cache)


def load_files(
    found: TraceFiles, *, progress: ProgressCallback | None = None, cache: bool = True
) -> Trace | Job:
    """Returns the trace in a file, or all traces in several, whether they belong together or not.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
    """
    if found.is_collection:
        return _read_all_files(found, progress, cache=cache)
    [place] = found.files
    traces = read_file(place, progress=progress, cache=cache)
    return next(iter(traces.values())) if len(traces) == 1 else _job_of_traces(traces, {}, place)


def read_file(
    path: str, *, progress: ProgressCallback | None = None, cache: bool = True
) -> dict[str, Trace]:
    """Returns the traces in one file by path; with several, each path ends with `#` and a number.

    Raises:
        UnreadableTrace: The file holds no trace, or cannot be read.
    """
    if "://" in path and not is_existing_local_path(path):
        return _traces_by_path(_read_remote_file(path, progress), path)
    traces = _read_local_file(path, progress, TraceCache() if cache else None)
    return _traces_by_path([_add_ledger_of_run(trace, path) for trace in traces], path)


def _add_ledger_of_run(trace: Trace, path: str) -> Trace:
    """Returns a copy of a trace with the ledger (a log of all steps) from the same folder added."""
    run = ledger_beside(path, trace.facts)
    return replace(trace, run=run) if run.source else trace


def _job_of_traces(traces: dict[str, Trace], skip_reasons: dict[str, str], root: str) -> Job:
    identities = {path: identity_of_trace(trace) for path, trace in traces.items()}
    duplicates = skip_reasons_of_duplicates(
        {path: identity.content_digest for path, identity in identities.items()}
    )
    identities_to_keep = {
        path: identity for path, identity in identities.items() if path not in duplicates
    }
    members, notes = job_members(identities_to_keep, root)
    return Job(
        MappingProxyType({path: traces[path] for path in identities_to_keep}),
        MappingProxyType(skip_reasons | duplicates),
        MappingProxyType(members),
        notes,
    )


def _traces_by_path(traces: list[Trace], path: str) -> dict[str, Trace]:
    if len(traces) == 1:
        return {path: traces[0]}
    return {f"{path}#{number}": trace for number, trace in enumerate(traces, 1)}


def _read_local_file(
    path: str, progress: ProgressCallback | None, cache: TraceCache | None
) -> list[Trace]:
    local_path = Path(path)
    try:
        if not local_path.is_file():
            why = "it is not a regular file" if local_path.exists() else NO_SUCH_FILE
            raise UnreadableTrace(f"`{path}` cannot be read: {why}")
        mark = file_stamp(local_path)
        if cache is not None:
            known = cache.find_by_file_stamp(mark, path)
            if known is not None:
                return [known]
        with local_path.open("rb") as file:
            hashed = HashedFile(file, os.fstat(file.fileno()).st_size, path)
            traces = _traces_in_open_file(hashed, path, hashed.size_bytes, progress)
        unchanged = file_stamp(local_path) == mark
        grown = not unchanged and hashed.has_grown_unchanged(local_path)
    except OSError as error:
        why = error.strerror or str(error)
        raise UnreadableTrace(f"`{path}` cannot be read: {why}") from error
    if grown:
        return [_add_growing_file_fault(trace, hashed.size_bytes) for trace in traces]
    if not unchanged:
        raise UnreadableTrace(f"`{path}` changed while it was read: read it again when it is whole")
    # A ledger is small, and its tables are not in the cache.
    if cache is not None and len(traces) == 1 and not traces[0].run.source:
        cache.write_trace(hashed.hash_hex(), mark, traces[0])
    return traces


def _add_growing_file_fault(trace: Trace, bytes_read: int | None) -> Trace:
    """Returns a copy of a trace with the added fault that its file is still being written."""
    fault = FileFault(f"the file is still growing: read up to byte {bytes_read:,}", is_note=False)
    return replace(trace, repairs=pl.concat([trace.repairs, fault_table([fault])]))


def _read_remote_file(address: str, progress: ProgressCallback | None) -> list[Trace]:
    """Returns the traces of a remote file, read without the disk cache."""
    try:
        with fsspec.open(address, "rb") as file:
            size = getattr(file, "size", None)
            return _traces_in_open_file(HashedFile(file, size), address, size, progress)
    except storage_exceptions() as error:
        raise unreadable_address_error(address, error) from error


def _traces_in_open_file(
    file: HashedFile, path: str, file_bytes: int | None, progress: ProgressCallback | None
) -> list[Trace]:
    """Reads an open file to its end, and returns the traces in it."""
    reader: Any = file
    source = DecompressedFile(reader, file_bytes, progress)
    blocks = source.text_blocks()
    try:
        first = next(blocks, b"")
        if is_ledger(first):
            return [Trace(run=read_ledger(b"".join([first, *blocks]), path), source=path)]
        if is_pickle(first):
            return [read_snapshot(join_snapshot_blocks(first, blocks), path)]
        if is_perfetto_trace(first):
            blocks, first = kineto_json_of_perfetto(chain([first], blocks), source.faults), b""
            stored = None
        else:
            stored = (
                open_file_text(file, progress) if is_decoded_in_chunks(file.size_bytes) else None
            )
        text = TextWindow(chain([first], blocks)) if stored is None else stored
        with open_chunk_decoder(file_bytes) as decoder:
            parsed_traces = parse_all_traces(text, decoder)
    except UnreadableTrace as error:
        why = _unreadable_reason(path, first, source, error)
        raise UnreadableTrace(f"`{path}` cannot be read: {why}") from error
    found = [parsed for parsed in parsed_traces if _has_events(parsed)]
    if not found:
        why = no_events_reason(parsed_traces[0], source.faults, text.offset)
        raise UnreadableTrace(f"`{path}` cannot be read: {why}")
    if len(found) > 1:
        source.faults.append(
            FileFault(f"the file holds {len(found):,} traces: each is loaded as a trace of its own")
        )
    while stored is None and file.read(_FILE_READ_BLOCK_BYTES):
        pass
    names = _traces_by_path([Trace()] * len(found), path)

    def tell_all_bytes_are_read() -> None:
        if progress is not None and file_bytes is not None:
            progress(file_bytes, file_bytes)

    return [
        build_trace(parsed, source.faults, name, tell_all_bytes_are_read)
        for parsed, name in zip(found, names, strict=True)
    ]


def _unreadable_reason(
    path: str, first: bytes, source: DecompressedFile, error: UnreadableTrace
) -> str:
    """Returns why no trace can be read from a file: it cannot be decompressed, or what it holds."""
    if source.faults and not source.yielded_byte_count:
        return source.faults[0].fault
    return damaged_perfetto_reason(path, first) or str(error)


def _has_events(parsed_trace: ParsedTrace) -> bool:
    return any(
        phase
        for chunk in parsed_trace.chunks
        for phase, _ in chunk.event_counts_by_phase_and_category
        if phase != "M"
    )


def _read_all_files(
    trace_files: TraceFiles, progress: ProgressCallback | None, *, cache: bool
) -> Job:
    outcomes = {
        path: read_file_or_reason(path, progress=progress, cache=cache)
        for path in trace_files.files
    }
    skip_reasons = {path: outcome for path, outcome in outcomes.items() if isinstance(outcome, str)}
    read = [outcome for outcome in outcomes.values() if not isinstance(outcome, str)]
    skip_reasons = dict(trace_files.refused) | skip_reasons
    if not read:
        raise trace_files.no_trace_error(skip_reasons)
    return _job_of_traces(
        {path: trace for traces in read for path, trace in traces.items()},
        skip_reasons,
        trace_files.root,
    )


def read_file_or_reason(
    path: str, *, progress: ProgressCallback | None = None, cache: bool = True
) -> dict[str, Trace] | str:
    """Returns the traces in one file by path, or the reason why it cannot be read."""
    try:
        return read_file(path, progress=progress, cache=cache)
    except UnreadableTrace as error:
        return str(error)
