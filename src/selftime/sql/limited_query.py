"""Executes SQL queries within limits of time and memory: each in a process of its own.

The process is killed if the query takes too long or is cancelled. Where it needs more memory than
it may, the system refuses that to the process, which ends. The caller survives both, and says so.
"""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from math import inf
from queue import Empty, SimpleQueue
from threading import BoundedSemaphore, Lock, Thread
from time import monotonic
from typing import Final

import polars as pl

from selftime.errors import SelftimeError, UsageError
from selftime.ingest.process_pipes import receive_value, send_value, start_python_process
from selftime.sql import QueryError
from selftime.sql.query_limits import QueryLimits
from selftime.sql.query_tokens import require_read_only_query
from selftime.sql.query_worker import EncodedResult, FailedQuery, QueryRequest, TraceIsRead

__all__ = ["LimitedQueries", "QueryLimits", "QueryRequest", "QueryResult", "StoppedQuery"]

_WORKER_MODULE: Final = "selftime.sql.query_worker"
_MAX_QUERIES_AT_A_TIME: Final = 2
"""Number of queries that run at the same time, so that the machine's memory holds all."""
_MAX_WAIT_FOR_OTHER_QUERIES_S: Final = 3.0
"""Time in s for which a query waits until one of the others has ended."""
_SECONDS_BETWEEN_LOOKS: Final = 0.05
"""Time in s between looks whether a query is cancelled."""


class StoppedQuery(SelftimeError):  # noqa: N818 - names what there is in place of a result
    """Raised for a query that was cancelled, or took more time or memory than it may."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query's result that are handed over, and the number of all."""

    table: pl.DataFrame
    row_count: int


class LimitedQueries:
    """Executes queries in processes of their own, which wait for the next query with the trace."""

    def __init__(self, limits: QueryLimits | None = None) -> None:
        self.limits = limits or QueryLimits()
        self._lock = Lock()
        self._free = BoundedSemaphore(_MAX_QUERIES_AT_A_TIME)
        self._waiting: list[_Worker] = []
        weakref.finalize(self, _end_workers, self._waiting)

    def prepare(self) -> None:
        """Starts the process of the next query, if none waits for it."""
        with self._lock:
            if not self._waiting:
                self._waiting.append(_Worker(self.limits.threads))

    def run(
        self,
        request: QueryRequest,
        is_cancelled: Callable[[], bool] = lambda: False,
        rows: int | None = None,
    ) -> QueryResult:
        """Executes a query and returns its result; `is_cancelled` is asked while it runs.

        `rows` is another limit of the result's rows than that of all queries.

        Raises:
            UsageError: The text is no query that can be answered.
            StoppedQuery: It was cancelled, or took more than it may.
        """
        require_read_only_query(request.text)
        limits = self.limits if rows is None else replace(self.limits, rows=rows)
        with self._turn(is_cancelled), self._worker(request.path) as worker:
            worker.ask(request, limits)
            deadline = inf  # reading a trace takes what its size takes
            while True:
                said = worker.next_message(_SECONDS_BETWEEN_LOOKS)
                if isinstance(said, TraceIsRead):
                    deadline = monotonic() + limits.seconds
                elif isinstance(said, EncodedResult | FailedQuery):
                    worker.is_usable = not said.is_last
                    return _decoded(said)
                elif isinstance(said, BaseException):
                    raise self._memory_or_fault(worker.process.wait()) from said
                if is_cancelled():
                    raise StoppedQuery("the query was cancelled")
                if monotonic() > deadline:
                    raise StoppedQuery(limits.time_sentence)

    @contextmanager
    def _turn(self, is_cancelled: Callable[[], bool]) -> Iterator[None]:
        """Waits for a short time until another query has ended, if there are too many."""
        until = monotonic() + _MAX_WAIT_FOR_OTHER_QUERIES_S
        while not self._free.acquire(timeout=_SECONDS_BETWEEN_LOOKS):
            if is_cancelled():
                raise StoppedQuery("the query was cancelled")
            if monotonic() > until:
                raise StoppedQuery(
                    f"{_MAX_QUERIES_AT_A_TIME} other queries are being answered; ask again when "
                    "one has ended"
                )
        try:
            yield
        finally:
            self._free.release()

    @contextmanager
    def _worker(self, path: str) -> Iterator["_Worker"]:
        """Hands out a process for one query, if there is one the one that has read the trace.

        A process that did not answer is ended; another one then waits for the next query.
        """
        with self._lock:
            _end_workers(self._waiting, lambda one: one.process.poll() is not None)
            self._waiting.sort(key=lambda one: one.path == path)
            worker = self._waiting.pop() if self._waiting else _Worker(self.limits.threads)
        worker.is_usable = False
        try:
            yield worker
        finally:
            if worker.is_usable:
                with self._lock:
                    self._waiting.append(worker)
            else:
                _end_workers([worker])
                self.prepare()

    def _memory_or_fault(self, status: int) -> StoppedQuery:
        """Returns the error for a process that ended without an answer."""
        import signal  # noqa: PLC0415 - asked rarely

        if status == -getattr(signal, "SIGABRT", 0):
            return StoppedQuery(self.limits.memory_sentence)
        if status == -getattr(signal, "SIGKILL", 0):
            return StoppedQuery(
                "the system ended the process of the query, as a rule because memory was short; "
                "ask for less"
            )
        return StoppedQuery(f"the process of the query ended (status {status}); ask for less")


class _Worker:
    """A process that answers queries one after the other, and the trace that it has read."""

    def __init__(self, threads: int) -> None:
        self.process = start_python_process(_WORKER_MODULE, {"POLARS_MAX_THREADS": str(threads)})
        self.path = ""
        """The path that the last query was about."""
        self.is_usable = False
        """Whether the last query was answered, and the process can answer the next one."""
        self._messages: SimpleQueue[object] = SimpleQueue()

    def ask(self, request: QueryRequest, limits: QueryLimits) -> None:
        """Sends a query in a thread, which receives what the process says to it."""
        self.path = request.path
        Thread(
            target=self._exchange, args=(request, limits), daemon=True, name="selftime-sql"
        ).start()

    def next_message(self, timeout: float) -> object:
        """Returns what the process said next, the error if it ended; None if nothing in time."""
        try:
            return self._messages.get(timeout=timeout)
        except Empty:
            return None

    def _exchange(self, *question: object) -> None:
        try:
            assert self.process.stdin is not None  # noqa: S101 - opened as a pipe
            assert self.process.stdout is not None  # noqa: S101 - likewise
            send_value(self.process.stdin, question)
            said: object = TraceIsRead()
            while isinstance(said, TraceIsRead):
                said = receive_value(self.process.stdout)
                self._messages.put(said)
        except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
            self._messages.put(error)


def _end_workers(
    workers: list[_Worker], is_chosen: Callable[[_Worker], bool] = lambda _: True
) -> None:
    """Kills processes, and closes their pipes; what was said to them is lost."""
    for worker in [one for one in workers if is_chosen(one)]:
        workers.remove(worker)
        process = worker.process
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None  # noqa: S101 - `start_python_process` opens both
                pipe.close()
        process.wait()


def _decoded(answer: EncodedResult | FailedQuery) -> QueryResult:
    """Returns a worker's answer as a table, or raises why there is none."""
    if isinstance(answer, EncodedResult):
        return QueryResult(pl.read_ipc(BytesIO(answer.table)), answer.row_count)
    if answer.is_stopped:
        raise StoppedQuery(answer.message)
    raise (QueryError if answer.is_query_error else UsageError)(answer.message)
