"""Executes SQL queries within limits of time and memory: each in a process of its own.

The process is killed if the query takes too long or is cancelled. Where it needs more memory than
it may, the system refuses that to the process, which ends. The caller survives both, and says so.
"""

import subprocess
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from os import cpu_count
from threading import BoundedSemaphore, Lock, Thread
from time import monotonic
from typing import Any, Final

import polars as pl

from selftime.errors import SelftimeError, UsageError
from selftime.ingest.process_pipes import receive_value, send_value, start_python_process
from selftime.sql import QueryError
from selftime.sql.query_limits import QueryLimits
from selftime.sql.query_tokens import require_read_only_query
from selftime.sql.query_worker import EncodedResult, FailedQuery, QueryRequest
from selftime.units import bytes_text

__all__ = ["LimitedQueries", "QueryLimits", "QueryRequest", "QueryResult", "StoppedQuery"]

_WORKER_MODULE: Final = "selftime.sql.query_worker"
_MAX_QUERIES_AT_A_TIME: Final = 2
"""Number of queries that run at the same time, so that the machine's memory holds all."""
_MAX_WAIT_FOR_OTHER_QUERIES_S: Final = 3.0
"""Time in s for which a query waits until one of the others has ended."""
_SECONDS_BETWEEN_LOOKS: Final = 0.05
"""Time in s between looks whether a query is cancelled."""
_BYTES_PER_GIB: Final = 1 << 30


class StoppedQuery(SelftimeError):  # noqa: N818 - names what there is in place of a result
    """Raised for a query that was cancelled, or took more time or memory than it may."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of a query's result that are handed over, and the number of all."""

    table: pl.DataFrame
    row_count: int


class LimitedQueries:
    """Executes queries in processes of their own; one process waits for the next query."""

    def __init__(self, limits: QueryLimits | None = None) -> None:
        self.limits = limits or QueryLimits()
        self._lock = Lock()
        self._free = BoundedSemaphore(_MAX_QUERIES_AT_A_TIME)
        self._waiting: list[subprocess.Popen[bytes]] = []
        weakref.finalize(self, _end_processes, self._waiting)

    def prepare(self) -> None:
        """Starts the process of the next query, if none waits for it."""
        with self._lock:
            if not self._waiting:
                self._waiting.append(_start_worker())

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
        deadline = monotonic() + self.limits.seconds
        with self._turn(is_cancelled), self._worker() as worker:
            answer = _receive_in_thread(worker, (request, limits))
            while True:
                try:
                    return _decoded(answer.result(_SECONDS_BETWEEN_LOOKS))
                except NotYet:
                    pass
                except (EOFError, OSError):
                    raise self._memory_or_fault(worker.wait()) from None
                if is_cancelled():
                    raise StoppedQuery("the query was cancelled")
                if monotonic() > deadline:
                    raise StoppedQuery(
                        f"the query was stopped after {self.limits.seconds:g} s; ask for less, or "
                        "allow it more time"
                    )

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
    def _worker(self) -> Iterator["subprocess.Popen[bytes]"]:
        """Hands out a process for one query, and ends it; another one then waits for the next."""
        with self._lock:
            worker = self._waiting.pop() if self._waiting else _start_worker()
        try:
            yield worker
        finally:
            _end_processes([worker])
            self.prepare()

    def _memory_or_fault(self, status: int) -> StoppedQuery:
        """Returns the error for a process that ended without an answer."""
        import signal  # noqa: PLC0415 - asked rarely

        out_of_memory = {-getattr(signal, name, 0) for name in ("SIGABRT", "SIGKILL")} - {0}
        if status in out_of_memory:
            limit = bytes_text(self.limits.memory_bytes)
            return StoppedQuery(
                f"the query was stopped, as it needs more memory than {limit}; ask for less, "
                "or allow it more memory"
            )
        return StoppedQuery(f"the process of the query ended (status {status}); ask for less")


def _start_worker() -> "subprocess.Popen[bytes]":
    """Starts a process that waits for one query; it computes on half of the cores."""
    threads = max(1, (cpu_count() or 1) // 2)
    return start_python_process(_WORKER_MODULE, {"POLARS_MAX_THREADS": str(threads)})


def _end_processes(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Kills processes, and closes their pipes; what was said to them is lost."""
    for process in processes:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None  # noqa: S101 - `start_python_process` opens both
                pipe.close()
        process.wait()
    processes.clear()


def _receive_in_thread(
    worker: "subprocess.Popen[bytes]", question: object
) -> "Future[EncodedResult | FailedQuery]":
    """Sends a worker its question in a thread, and returns what will hold the answer."""
    answer: Future[Any] = Future()

    def ask() -> None:
        try:
            assert worker.stdin is not None  # noqa: S101 - opened as a pipe
            assert worker.stdout is not None  # noqa: S101 - likewise
            send_value(worker.stdin, question)
            answer.set_result(receive_value(worker.stdout))
        except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
            answer.set_exception(error)

    Thread(target=ask, daemon=True, name="selftime-sql").start()
    return answer


def _decoded(answer: EncodedResult | FailedQuery) -> QueryResult:
    """Returns a worker's answer as a table, or raises why there is none."""
    if isinstance(answer, EncodedResult):
        return QueryResult(pl.read_ipc(BytesIO(answer.table)), answer.row_count)
    raise (QueryError if answer.is_query_error else UsageError)(answer.message)
