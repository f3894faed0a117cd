"""Executes SQL queries in a process of its own: `serve` is what that process runs.

It imports what a query needs before it is asked, and keeps the trace of the last query, so that a
process that waits answers at once.
"""

import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Final

import polars as pl

from selftime.errors import SelftimeError
from selftime.ingest.load import load
from selftime.ingest.process_pipes import receive_value, send_value
from selftime.sql import QueryError, query
from selftime.sql.query_limits import (
    QueryLimits,
    end_process_with_parent,
    lift_memory_limit_of_process,
    limit_memory_of_process,
)
from selftime.trace import Job, Trace

_MAX_RESULT_BYTES: Final = 64 << 20
"""Largest size in bytes of a result whose rows are limited."""
_MAX_BYTES_KEPT_BY_QUERIES: Final = 256 << 20
"""Memory in bytes by which queries may make a process grow that goes on to the next one."""
_SECONDS_BEFORE_ORPHAN_ENDS: Final = 5.0
"""Time in s after the limit at which a process ends itself, if nobody is there to stop it."""


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """A query over the trace or the job at a path."""

    path: str
    text: str
    views: dict[str, str] = field(default_factory=dict)
    """Views with options, by the name that the query gives them."""
    uses_cache: bool = True
    """Whether the trace is read from the cache of traces, and stored there."""


@dataclass(frozen=True, slots=True)
class EncodedResult:
    """The rows of a result as Arrow IPC, and how many there are without a limit."""

    table: bytes
    row_count: int
    is_last: bool = False
    """Whether the process holds much memory of the query, and should be ended."""


@dataclass(frozen=True, slots=True)
class FailedQuery:
    """Why there is no result: a sentence, or what Polars says of the query."""

    message: str
    is_query_error: bool
    is_stopped: bool = False
    """Whether the query took more than it may."""
    is_last: bool = False
    """Whether the process holds much memory of the query, and should be ended."""


@dataclass(frozen=True, slots=True)
class TraceIsRead:
    """Says, before the result, that the trace is read and the query begins."""


class _Worker:
    """Answers one request after the other; keeps the trace that the last one was about."""

    def __init__(self) -> None:
        self._read: tuple[object, Trace | Job] | None = None
        self._peak_bytes_after_reading = 0

    def subject(self, request: QueryRequest) -> Trace | Job:
        """Returns the trace or the job that a request is about, read once while it stays as is."""
        key = _state_of_file(request)
        if self._read is None or key is None or self._read[0] != key:
            self._read = None
            subject = load(request.path, cache=request.uses_cache)
            _read_tables(subject)
            if isinstance(subject, Trace) and subject.run.may_grow:
                key = None  # the ledger beside the trace tells more the next time
            self._read = key, subject
            self._peak_bytes_after_reading = _peak_memory_bytes()
        return self._read[1]

    def has_grown(self) -> bool:
        """Returns whether queries have taken memory that this process would go on holding."""
        return _peak_memory_bytes() > self._peak_bytes_after_reading + _MAX_BYTES_KEPT_BY_QUERIES


def serve() -> None:
    """Answers requests from stdin on stdout, until the pipe is closed."""
    end_process_with_parent()
    worker, out = _Worker(), sys.stdout.buffer
    while True:
        try:
            request, limits = receive_value(sys.stdin.buffer)
        except EOFError:
            return
        answer = _answer(worker, request, limits)
        send_value(out, replace(answer, is_last=worker.has_grown()))


def _answer(
    worker: _Worker, request: QueryRequest, limits: QueryLimits
) -> EncodedResult | FailedQuery:
    """Returns the result of a query, or why there is none."""
    try:
        subject = worker.subject(request)
        send_value(sys.stdout.buffer, TraceIsRead())
        with _limits_of_process(limits):
            return _encode_result(query(subject, request.text, request.views), limits.rows)
    except QueryError as error:
        return FailedQuery(error.message, is_query_error=True)
    except MemoryError:
        return FailedQuery(limits.memory_sentence, is_query_error=False, is_stopped=True)
    except SelftimeError as error:
        return FailedQuery(str(error), is_query_error=False)


def _state_of_file(request: QueryRequest) -> object:
    """Returns what changes when a trace's file does; None where that cannot be told."""
    try:
        state = Path(request.path).stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(state.st_mode):
        return None
    return request.path, request.uses_cache, state.st_ino, state.st_size, state.st_mtime_ns


def _read_tables(subject: Trace | Job) -> None:
    """Maps the tables of the traces, which do not count as memory of the query."""
    for trace in [subject] if isinstance(subject, Trace) else subject.traces.values():
        trace.tables()


def _peak_memory_bytes() -> int:
    """Returns the most memory that this process has held, in bytes; 0 where nothing tells it."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@contextmanager
def _limits_of_process(limits: QueryLimits) -> Iterator[None]:
    """Holds this process to its memory, and ends it if nobody is there to stop it in time."""
    has_timer = hasattr(signal, "setitimer")
    if has_timer:  # by default the signal ends the process, whatever it does
        signal.setitimer(signal.ITIMER_REAL, limits.seconds + _SECONDS_BEFORE_ORPHAN_ENDS)
    _silence_stderr()
    limit_memory_of_process(limits.memory_bytes)
    try:
        yield
    finally:
        lift_memory_limit_of_process()
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _silence_stderr() -> None:
    """Sends stderr nowhere: what Polars prints where memory ends is told by a sentence."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _encode_result(result: pl.DataFrame, max_rows: int | None) -> EncodedResult:
    """Returns a result's rows as bytes: all, or as many as the limits of rows and bytes leave."""
    shown = result
    if max_rows is not None:
        shown = result.head(max_rows)
        size = shown.estimated_size()
        if size > _MAX_RESULT_BYTES:
            shown = shown.head(max(1, int(shown.height * _MAX_RESULT_BYTES / size)))
    table = BytesIO()
    shown.write_ipc(table)
    return EncodedResult(table.getvalue(), result.height)
