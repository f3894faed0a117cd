"""Finds the job (traces of all ranks of a run) that a trace belongs to."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from hashlib import sha256
from io import BytesIO
from typing import Any, Final

import msgspec
import polars as pl

from selftime.analysis.ranks.rank_summary import RankSummary
from selftime.errors import ReadingStopped, SelftimeError, UnreadableTrace
from selftime.ingest.job_ranks import TraceIdentity
from selftime.ingest.trace_listing import ListedTrace
from selftime.progress import ProgressCallback
from selftime.reports.page_data.jobs import (
    PageJob,
    TraceSummary,
    is_from_multi_process_job,
    page_job_of_one_trace,
    page_job_of_traces,
    summarize_trace,
)
from selftime.scale.engine import FileLostByReader
from selftime.scale.local import LocalProcessEngine
from selftime.trace import Trace
from selftime.web.caches import AnswerStore, SharedCache
from selftime.web.readings import Reading, SharedReadings
from selftime.web.sources import TraceSources, find_listed_trace, read_trace

_MAX_JOB_CACHE_BYTES: Final = 256 << 20
"""Largest size of the cache of jobs, in bytes."""


@dataclass(frozen=True, slots=True)
class IndexedJob:
    """A job (the traces of one run), with the key and fingerprint under which it is cached."""

    key: str
    """Key of the job in caches; it changes if a trace is added, removed or changed."""
    fingerprint: str
    """Text that changes with the content of the job's traces; empty if it cannot be computed."""
    job: PageJob
    ids: frozenset[str]
    """Ids of the traces in the job; duplicates and older recordings of a rank are left out."""


class JobIndex:
    """Finds the job of each served trace; computes every job once, and caches it."""

    def __init__(
        self, sources: TraceSources, store: AnswerStore, open_trace: Callable[[str], Trace]
    ) -> None:
        self._sources = sources
        self._store = store
        self._open_trace = open_trace
        self._jobs: SharedCache[str, IndexedJob] = SharedCache(
            _MAX_JOB_CACHE_BYTES, _job_memory_bytes
        )
        self.readings: SharedReadings[str] = SharedReadings()
        self._is_multi_process: dict[tuple[str, str], bool] = {}

    def job_of_trace(self, trace_id: str) -> IndexedJob:
        """Returns the job of a trace: all ranks in its folder, or the trace alone.

        Raises:
            UsageError: There is no trace of that id.
            UnreadableTrace: The trace itself cannot be read; other unreadable traces are listed.
        """
        fingerprint = self._sources.fingerprint(trace_id)
        all_listed = self._sources.listed_traces()
        listed = find_listed_trace(all_listed, trace_id)
        same_folder = [entry for entry in all_listed if entry.job == listed.job]
        if len(same_folder) == 1 or not self._is_from_multi_process_job(listed, fingerprint):
            return self._job_of_one_trace(listed, fingerprint)
        fingerprints = {entry.id: self._fingerprint_or_error(entry.id) for entry in same_folder}
        key = _hash_of_json([listed.job, *sorted(fingerprints.items())])
        job_fingerprint = key if all(fingerprints.values()) else ""

        def read(reading: Reading) -> IndexedJob:
            return self._jobs.get(
                key,
                lambda: _make_indexed_job(
                    key, job_fingerprint, self._read_job_of_traces(same_folder, reading)
                ),
            )

        indexed_job = self.readings.run(key, (entry.id for entry in same_folder), read)
        return (
            indexed_job
            if trace_id in indexed_job.ids
            else self._job_of_one_trace(listed, fingerprint)
        )

    def is_known(self, trace_id: str) -> bool:
        """Returns whether the job of a trace can be told without reading another trace."""
        all_listed = self._sources.listed_traces()
        listed = find_listed_trace(all_listed, trace_id)
        same_folder = [entry for entry in all_listed if entry.job == listed.job]
        if len(same_folder) == 1:
            return True
        own = self._stored_trace_summary(trace_id)
        if own is None or not is_from_multi_process_job(listed, own.identity):
            return own is not None
        return all(self._stored_trace_summary(entry.id) is not None for entry in same_folder)

    def job_of_several_traces(self, trace_id: str) -> IndexedJob | None:
        """Returns the job of a trace that is one of several ranks; None for a trace by itself.

        Raises:
            UsageError, UnreadableTrace: As `job_of_trace`.
        """
        folders = {entry.id: entry.job for entry in self._sources.listed_traces()}
        if list(folders.values()).count(folders.get(trace_id, "")) == 1:
            return None
        indexed_job = self.job_of_trace(trace_id)
        return indexed_job if len(indexed_job.job.ranks.ranks_by_key()) > 1 else None

    def _job_of_one_trace(self, listed: ListedTrace, fingerprint: str) -> IndexedJob:
        """Returns a job that consists of one trace."""
        key = _hash_of_json([listed.id, fingerprint])
        return self._jobs.get(
            key,
            lambda: _make_indexed_job(
                key,
                fingerprint,
                page_job_of_one_trace(listed, self._trace_summary(listed.id, self._open_trace)),
            ),
        )

    def _is_from_multi_process_job(self, listed: ListedTrace, fingerprint: str) -> bool:
        """Returns whether the trace is one of a job of several processes; the result is cached."""
        is_multi_process = self._is_multi_process.get((listed.id, fingerprint))
        if is_multi_process is None:
            is_multi_process = is_from_multi_process_job(
                listed, self._trace_summary(listed.id, self._open_trace).identity
            )
            self._is_multi_process[listed.id, fingerprint] = is_multi_process
        return is_multi_process

    def _fingerprint_or_error(self, trace_id: str) -> str:
        """Returns the fingerprint of a trace's content, or a sentence why it cannot be read."""
        try:
            return self._sources.fingerprint(trace_id)
        except UnreadableTrace as error:
            return str(error)

    def _read_job_of_traces(self, listed_traces: list[ListedTrace], reading: Reading) -> PageJob:
        """Returns the job of several traces, whose summaries are read or taken from the disk."""
        summaries_or_errors = self._trace_summaries_or_errors(listed_traces, reading)
        summaries: dict[str, tuple[ListedTrace, TraceSummary]] = {}
        errors: dict[str, str] = {}
        for entry in listed_traces:
            path = f"{entry.run_folder}/{entry.name}".lstrip("/")
            if path in summaries or path in errors:  # from another folder of the same name
                path = f"{entry.id}/{path}"
            summary = summaries_or_errors[entry.id]
            if isinstance(summary, str):
                errors[path] = summary
            elif is_from_multi_process_job(entry, summary.identity):
                summaries[path] = (entry, summary)
        return page_job_of_traces(summaries, errors)

    def _trace_summaries_or_errors(
        self, listed_traces: list[ListedTrace], reading: Reading
    ) -> dict[str, TraceSummary | str]:
        """Returns by trace id each trace's summary, or a sentence why it cannot be read."""
        by_id: dict[str, TraceSummary | str] = {}
        id_by_path: dict[str, str] = {}
        for entry in listed_traces:
            stored: TraceSummary | str | None
            try:
                stored = self._stored_trace_summary(entry.id)
            except SelftimeError as error:
                stored = str(error)
            if stored is None:
                id_by_path[self._sources.path_of(entry.id)] = entry.id
            else:
                by_id[entry.id] = stored
        reading.rank_count, reading.done_ranks = len(listed_traces), len(by_id)
        bytes_by_id = {entry.id: entry.bytes for entry in listed_traces}
        reading.done_bytes = 0
        reading.total_bytes = sum(bytes_by_id[one] for one in id_by_path.values())
        results = LocalProcessEngine().map(
            _trace_summary_or_error,
            list(id_by_path),
            progress=lambda path, done, _: reading.advance_rank(path, done),
        )
        for path, result in results:
            reading.done_ranks += 1
            by_id[id_by_path[path]] = result.why if isinstance(result, FileLostByReader) else result
            if isinstance(result, TraceSummary):
                self._store_trace_summary(id_by_path[path], result)
        return by_id

    def _trace_summary(self, trace_id: str, open_trace: Callable[[str], Trace]) -> TraceSummary:
        """Returns a trace's summary from the disk cache; if missing, computes and stores it."""
        summary = self._stored_trace_summary(trace_id)
        if summary is None:
            summary = summarize_trace(open_trace(trace_id))
            self._store_trace_summary(trace_id, summary)
        return summary

    def _stored_trace_summary(self, trace_id: str) -> TraceSummary | None:
        """Returns a trace's summary from the disk cache; None if it is missing."""
        fingerprint = self._sources.fingerprint(trace_id)
        encoded = self._store.find("told", fingerprint) if fingerprint else None
        return None if encoded is None else decode_trace_summary(encoded)

    def _store_trace_summary(self, trace_id: str, summary: TraceSummary) -> None:
        """Stores the summary of a trace on disk, if its fingerprint is known."""
        if fingerprint := self._sources.fingerprint(trace_id):
            self._store.store(encode_trace_summary(summary), "told", fingerprint)


def _trace_summary_or_error(path: str, *, progress: ProgressCallback) -> TraceSummary | str:
    """Returns the summary of the trace at a path, or a sentence why it cannot be read."""
    try:
        return summarize_trace(read_trace(path, progress=progress))
    except ReadingStopped:
        raise
    except SelftimeError as error:
        return str(error)


def encode_trace_summary(summary: TraceSummary) -> bytes:
    """Returns a trace's summary as bytes: tables as Arrow, the rest as MessagePack."""
    encoded_fields = {
        field.name: _encode_table_or_keep_value(getattr(summary.rank_summary, field.name))
        for field in fields(RankSummary)
    }
    return msgspec.msgpack.encode((summary.identity, encoded_fields))


def decode_trace_summary(encoded: bytes) -> TraceSummary | None:
    """Returns a trace's summary from bytes; None if they cannot be decoded, or lack a field."""
    try:
        identity, encoded_fields = msgspec.msgpack.decode(
            encoded, type=tuple[TraceIdentity, dict[str, Any]]
        )
        read: dict[str, Any] = {
            name: pl.read_ipc(BytesIO(value)) if isinstance(value, bytes) else value
            for name, value in encoded_fields.items()
        }
        is_whole = read.keys() == {field.name for field in fields(RankSummary)}
        return TraceSummary(identity, RankSummary(**read)) if is_whole else None
    except (msgspec.DecodeError, pl.exceptions.PolarsError, TypeError):
        return None


def _encode_table_or_keep_value(value: Any) -> Any:
    """Returns a table as the bytes of an Arrow file; any other value unchanged."""
    if not isinstance(value, pl.DataFrame):
        return value
    table = BytesIO()
    value.write_ipc(table, compression="zstd")
    return table.getvalue()


def _make_indexed_job(key: str, fingerprint: str, job: PageJob) -> IndexedJob:
    """Returns a job with its key, fingerprint and the ids of its traces."""
    trace_ids = (job.ids[path] for paths in job.paths_by_key().values() for path in paths)
    return IndexedJob(key, fingerprint, job, frozenset(trace_ids))


def _job_memory_bytes(indexed_job: IndexedJob) -> int:
    """Returns the estimated size of a job's tables in memory, in bytes."""
    tables = (
        getattr(summary, field.name)
        for summary in indexed_job.job.ranks.summaries.values()
        for field in fields(RankSummary)
    )
    return sum(int(table.estimated_size()) for table in tables if isinstance(table, pl.DataFrame))


def _hash_of_json(value: Any) -> str:
    """Returns the SHA-256 hash of a value's JSON text, in hexadecimal."""
    return sha256(msgspec.json.encode(value)).hexdigest()
