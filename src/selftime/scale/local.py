"""The local engine: one process per core, each of which reads one file at a time.

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
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, Final, TypeVar

from selftime.ingest.pipes import receive, send, start_interpreter
from selftime.ingest.workers import worker_count
from selftime.scale.engine import ATTEMPTS, LostFile, is_in_process_memory

T = TypeVar("T")


class Local:
    """Maps over files in processes of this machine, or in this process if that is faster."""

    def __init__(self, workers: int | None = None) -> None:
        """Use up to `workers` processes; default SELFTIME_WORKERS or the number of cores."""
        self._workers = workers

    def map(
        self, task: Callable[[str], T], places: Sequence[str]
    ) -> Iterator[tuple[str, T | LostFile]]:
        count = min(self._workers or worker_count(), len(places))
        worth = (self._workers or 1) > 1 or not _is_small(places)
        if (
            len(places) < 2
            or not worth
            or any(map(is_in_process_memory, places))
            or not sys.executable
        ):
            for place in places:
                yield place, task(place)
            return
        pool = _WorkerPool(task, count)
        try:
            yield from pool.answers(places)
        finally:
            pool.close()


_WORTH_PROCESSES: Final = 8 << 20
"""Bytes that this process reads in the time that another one takes to start."""


_MOST_HELD: Final = 256 << 20
"""The most bytes a process may hold between two files. Code, and memory that allocators keep after
a trace of 50 MB, take 140 MB; starting another process takes 1.5 s of CPU time."""


def _is_small(places: Sequence[str]) -> bool:
    """Returns whether all files are local and small enough for this process."""
    try:
        return sum(Path(place).stat().st_size for place in places) < _WORTH_PROCESSES
    except OSError:  # an address, or an error that reading will report
        return False


class _WorkerPool:
    """Processes with one task, each served by a thread; they start on demand."""

    def __init__(self, task: Callable[[str], Any], count: int) -> None:
        self._task = pickle.dumps(task)
        threads = max(1, worker_count() // count)
        self._environment = {"SELFTIME_WORKERS": "1", "POLARS_MAX_THREADS": str(threads)}
        self._threads = ThreadPoolExecutor(count, "selftime-scale")
        self._idle: SimpleQueue[_Worker | None] = SimpleQueue()
        for _ in range(count):
            self._idle.put(None)
        self._lock = Lock()
        self._alive: set[_Worker] = set()
        self._is_over = False

    def answers(self, places: Sequence[str]) -> Iterator[tuple[str, Any]]:
        asked = {self._threads.submit(self._answer, place): place for place in places}
        for answered in as_completed(asked):
            yield asked.pop(answered), answered.result()

    def _answer(self, place: str) -> Any:
        for _ in range(ATTEMPTS):
            worker = self._idle.get() or self._start_worker()
            stays = False
            try:
                well, answer, held = worker.ask(place)
                stays = held <= _MOST_HELD
            except (EOFError, OSError):  # the process ended: only its pipes raise these
                continue
            finally:
                if not stays:
                    self._end_worker(worker)
                self._idle.put(worker if stays else None)
            if well:
                return answer
            error, there = answer
            raise error from _RemoteTraceback(there)
        return LostFile(place)

    def _start_worker(self) -> "_Worker":
        with self._lock:
            if self._is_over:
                raise CancelledError
            worker = _Worker(start_interpreter(__name__, self._environment))
            self._alive.add(worker)
        with suppress(OSError):  # if it has ended already, the first request fails
            worker.send((sys.path, self._task))
        return worker

    def _end_worker(self, worker: "_Worker") -> None:
        worker.end()
        with self._lock:
            self._alive.discard(worker)

    def close(self) -> None:
        with self._lock:
            self._is_over = True
            for worker in self._alive:
                worker.process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._alive:
            worker.end()


class _RemoteTraceback(Exception):  # noqa: N818 - where it was raised, as text
    """The traceback of an error in another process, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Worker:
    """One reading process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def send(self, value: object) -> None:
        assert self.process.stdin is not None  # noqa: S101 - `start_interpreter` opens it as a pipe
        send(self.process.stdin, value)

    def ask(self, place: str) -> tuple[bool, Any, float]:
        """Returns whether the task succeeded, its result, and the bytes the process still holds."""
        assert self.process.stdout is not None  # noqa: S101 - likewise
        self.send(place)
        answer: tuple[bool, Any, float] = receive(self.process.stdout)
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def serve() -> None:
    """Run a worker: read files and write the task's results until the pipe closes."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep what a task prints out of the results
    with suppress(EOFError, BrokenPipeError):
        sys.path[:], pickled = receive(asked)
        task = pickle.loads(pickled)  # noqa: S301 - from our own process
        while True:
            send(answers, (*_run_task(task, receive(asked)), _private_bytes()))


def _run_task(task: Callable[[str], object], place: str) -> tuple[bool, object]:
    """Returns True and the result; else False, with the error and its traceback."""
    try:
        return True, task(place)
    except MemoryError:  # a fresh process may have more
        raise
    except Exception as error:  # noqa: BLE001 - it is raised where the task was given
        return False, (error, traceback.format_exc())


def _private_bytes() -> float:
    """Returns the bytes of this process's private memory; infinite if unknown."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text("ascii").split()
    except OSError:
        return inf
    return (int(resident) - int(shared)) * mmap.PAGESIZE
