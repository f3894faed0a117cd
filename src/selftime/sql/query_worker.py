"""Executes one SQL query in a process of its own: `serve` is what that process runs.

It imports what a query needs before it is asked, so that a process that waits answers at once.
"""

import os
import signal
import sys
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final

import polars as pl

from selftime.errors import SelftimeError
from selftime.ingest.load import load
from selftime.ingest.process_pipes import receive_value, send_value
from selftime.sql import QueryError, query
from selftime.sql.query_limits import QueryLimits, limit_memory_of_process
from selftime.trace import Job, Trace

_MAX_RESULT_BYTES: Final = 64 << 20
"""Largest size in bytes of a result whose rows are limited."""
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


@dataclass(frozen=True, slots=True)
class FailedQuery:
    """Why there is no result: a sentence, or what Polars says of the query."""

    message: str
    is_query_error: bool


def serve() -> None:
    """Answers one request from stdin on stdout; ends without one if the pipe is closed."""
    try:
        request, limits = receive_value(sys.stdin.buffer)
    except EOFError:
        return
    send_value(sys.stdout.buffer, _answer(request, limits))


def _answer(request: QueryRequest, limits: QueryLimits) -> EncodedResult | FailedQuery:
    """Returns the result of a query, or why there is none."""
    if hasattr(signal, "setitimer"):  # by default the signal ends the process, whatever it does
        signal.setitimer(signal.ITIMER_REAL, limits.seconds + _SECONDS_BEFORE_ORPHAN_ENDS)
    try:
        subject = load(request.path, cache=request.uses_cache)
        _read_tables(subject)
        _silence_stderr()
        limit_memory_of_process(limits.memory_bytes)
        return _encode_result(query(subject, request.text, request.views), limits.rows)
    except QueryError as error:
        return FailedQuery(error.message, is_query_error=True)
    except SelftimeError as error:
        return FailedQuery(str(error), is_query_error=False)


def _read_tables(subject: Trace | Job) -> None:
    """Maps the tables of the traces, which do not count as memory of the query."""
    for trace in [subject] if isinstance(subject, Trace) else subject.traces.values():
        trace.tables()


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
