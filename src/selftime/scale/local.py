"""Runs a function on many files in processes on this machine, one file at a time in each.

The processes are fresh interpreters that run `serve`. One that holds much memory after a result is
ended, to free it. One that was killed is replaced, and its file tried again.
"""

import mmap
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from selftime.ingest.decoding_workers import worker_count
from selftime.ingest.process_pipes import receive_value, send_value, start_python_process
from selftime.scale.engine import MAX_READ_ATTEMPTS_PER_FILE, FileLostByReader, is_in_process_memory

T = TypeVar("T")

FileProgress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with (path, bytes of the file that are read, all bytes); the last is None if unknown."""


class LocalProcessEngine:
    """Runs a function on files in local processes, or in this process if that is faster."""

    def __init__(self, workers: int | None = None) -> None:
        """Uses up to `workers` processes; by default SELFTIME_WORKERS or the number of cores."""
        self._workers = workers

    def map(
        self,
        task: Callable[..., T],
        paths: Sequence[str],
        *,
        progress: FileProgress | None = None,
    ) -> Iterator[tuple[str, T | FileLostByReader]]:
        """Yields (path, result of the task) for each file, in order of completion.

        Args:
            task: Called with a path.
            paths: The files.
            progress: Called with a path and how far its file is; the task is then given a
                `progress` of its own to call. An error that it raises ends all.
        """
        process_count = min(self._workers or worker_count(), len(paths))
        is_worth_processes = (self._workers or 1) > 1 or not _are_files_too_small_for_processes(
            paths
        )
        if (
            len(paths) < 2
            or not is_worth_processes
            or any(map(is_in_process_memory, paths))
            or not sys.executable
        ):
            for path in paths:
                told = {} if progress is None else {"progress": partial(progress, path)}
                yield path, task(path, **told)
            return
        pool = _WorkerProcessPool(task, process_count, progress)
        try:
            yield from pool.results_by_path(paths)
        finally:
            pool.close()


_MIN_TOTAL_FILE_BYTES_FOR_PROCESSES: Final = 8 << 20
"""Smallest total size of files in bytes for which processes are started."""


_MAX_PRIVATE_MEMORY_BYTES_OF_IDLE_PROCESS: Final = 256 << 20
"""Largest private memory in bytes of a process that gets another file; a larger process is
ended."""


def _are_files_too_small_for_processes(paths: Sequence[str]) -> bool:
    """Returns whether all files are local and together too small to start processes for."""
    try:
        return (
            sum(Path(path).stat().st_size for path in paths) < _MIN_TOTAL_FILE_BYTES_FOR_PROCESSES
        )
    except OSError:  # an address, or an error that reading will report
        return False


class _WorkerProcessPool:
    """A pool of processes that run one task; a thread in this process waits for each of them."""

    def __init__(
        self, task: Callable[..., Any], process_count: int, progress: FileProgress | None
    ) -> None:
        self._task = pickle.dumps((task, progress is not None))
        self._progress = progress
        threads = max(1, worker_count() // process_count)
        self._environment = {"SELFTIME_WORKERS": "1", "POLARS_MAX_THREADS": str(threads)}
        self._threads = ThreadPoolExecutor(process_count, "selftime-scale")
        self._idle: SimpleQueue[_WorkerProcess | None] = SimpleQueue()
        for _ in range(process_count):
            self._idle.put(None)
        self._lock = Lock()
        self._alive: set[_WorkerProcess] = set()
        self._is_closed = False

    def results_by_path(self, paths: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Yields (path, result of the task) for each file, in order of completion."""
        path_by_future = {
            self._threads.submit(self._task_result_of_file, path): path for path in paths
        }
        for future in as_completed(path_by_future):
            yield path_by_future.pop(future), future.result()

    def _task_result_of_file(self, path: str) -> Any:
        """Runs the task on a file in a worker process; returns its result or raises its error."""
        for _ in range(MAX_READ_ATTEMPTS_PER_FILE):
            worker = self._idle.get() or self._start_worker_process()
            can_be_reused = False
            try:
                has_succeeded, result, held_bytes = worker.run_task(path, self._progress)
                can_be_reused = held_bytes <= _MAX_PRIVATE_MEMORY_BYTES_OF_IDLE_PROCESS
            except (EOFError, OSError):  # the process ended: only its pipes raise these
                continue
            finally:
                if not can_be_reused:
                    self._end_worker_process(worker)
                self._idle.put(worker if can_be_reused else None)
            if has_succeeded:
                return result
            error, traceback_text = result
            raise error from _TracebackOfWorkerProcess(traceback_text)
        return FileLostByReader(path)

    def _start_worker_process(self) -> "_WorkerProcess":
        """Starts a worker process, and sends it the task."""
        with self._lock:
            if self._is_closed:
                raise CancelledError
            worker = _WorkerProcess(start_python_process(__name__, self._environment))
            self._alive.add(worker)
        with suppress(OSError):  # if it has ended already, the first request fails
            worker.send_value((sys.path, self._task))
        return worker

    def _end_worker_process(self, worker: "_WorkerProcess") -> None:
        """Ends a worker process, and removes it from the pool."""
        worker.end_process()
        with self._lock:
            self._alive.discard(worker)

    def close(self) -> None:
        """Ends all worker processes, and waits for the threads."""
        with self._lock:
            self._is_closed = True
            for worker in self._alive:
                worker.process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._alive:
            worker.end_process()


class _TracebackOfWorkerProcess(Exception):  # noqa: N818 - where it was raised, as text
    """Traceback, as text, of an error that the task raised in a worker process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _WorkerProcess:
    """A worker process on this machine; it receives paths and sends back results."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def send_value(self, value: object) -> None:
        assert self.process.stdin is not None  # noqa: S101 - `start_python_process` opens it as a pipe
        send_value(self.process.stdin, value)

    def run_task(self, path: str, progress: FileProgress | None) -> tuple[bool, Any, float]:
        """Runs the task on a file; returns (succeeded, result or error, worker memory in bytes)."""
        assert self.process.stdout is not None  # noqa: S101 - likewise
        self.send_value(path)
        while isinstance(received := receive_value(self.process.stdout), _Progress):
            if progress is not None:
                progress(path, received.done, received.total)
        result: tuple[bool, Any, float] = received
        return result

    def end_process(self) -> None:
        """Kills the process, and waits until it has ended."""
        self.process.kill()
        self.process.communicate()


class _Progress(NamedTuple):
    """How far a worker process is with its file, as it tells the process that started it."""

    done: int
    total: int | None


def serve() -> None:
    """Runs a worker process: receives paths, and sends the task's results, until stdin closes."""
    requests, results = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep what a task prints out of the results
    with suppress(EOFError, BrokenPipeError):
        sys.path[:], pickled_task = receive_value(requests)
        task, tells_progress = pickle.loads(pickled_task)  # noqa: S301 - from our own process
        if tells_progress:
            task = partial(
                task, progress=lambda done, all_: send_value(results, _Progress(done, all_))
            )
        while True:
            send_value(
                results,
                (*_task_result_or_error(task, receive_value(requests)), _private_memory_bytes()),
            )


def _task_result_or_error(task: Callable[[str], object], path: str) -> tuple[bool, object]:
    """Runs the task; returns (True, result), or (False, (error, traceback text))."""
    try:
        return True, task(path)
    except MemoryError:  # a fresh process may have more
        raise
    except Exception as error:  # noqa: BLE001 - it is raised where the task was given
        return False, (error, traceback.format_exc())


def _private_memory_bytes() -> float:
    """Returns the size of this process's private memory in bytes; infinity if unknown."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text("ascii").split()
    except OSError:
        return inf
    return (int(resident) - int(shared)) * mmap.PAGESIZE
