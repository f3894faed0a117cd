"""Processes of this machine, one for each core, each of which reads a file at a time.

They are fresh interpreters that run `serve`. One that still holds much when it has answered is
ended, so that its memory goes back. One that is killed is replaced, and its file tried again.
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

from selftime.ingest.pipes import receive, send, start
from selftime.ingest.workers import worker_count
from selftime.scale.engine import TRIES, Lost, is_private

T = TypeVar("T")


class Local:
    """Maps over files in processes of this machine; in this one where there is nothing to share."""

    def __init__(self, workers: int | None = None) -> None:
        """Up to so many processes; SELFTIME_WORKERS or as many as there are cores if not given."""
        self._workers = workers

    def map(
        self, task: Callable[[str], T], places: Sequence[str]
    ) -> Iterator[tuple[str, T | Lost]]:
        count = min(self._workers or worker_count(), len(places))
        worth = (self._workers or 1) > 1 or not _is_small(places)
        if len(places) < 2 or not worth or any(map(is_private, places)) or not sys.executable:
            for place in places:
                yield place, task(place)
            return
        crew = _Crew(task, count)
        try:
            yield from crew.answers(places)
        finally:
            crew.close()


_WORTH_PROCESSES: Final = 8 << 20
"""Bytes that this process reads before another has started."""


_MOST_HELD: Final = 256 << 20
"""Bytes that a process may hold between two files. The code, and what allocators keep after a trace
of 50 MB, take 140 MB; another process starts in 1.5 s of CPU time."""


def _is_small(places: Sequence[str]) -> bool:
    """Whether all of it is here, and read before a process has started."""
    try:
        return sum(Path(place).stat().st_size for place in places) < _WORTH_PROCESSES
    except OSError:  # an address, or what reading tells
        return False


class _Crew:
    """Processes with one task, each led by a thread; they start when they are first needed."""

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
        for _ in range(TRIES):
            worker = self._idle.get() or self._hired()
            stays = False
            try:
                well, answer, held = worker.ask(place)
                stays = held <= _MOST_HELD
            except (EOFError, OSError):  # it ended: only its pipes raise these
                continue
            finally:
                if not stays:
                    self._dismiss(worker)
                self._idle.put(worker if stays else None)
            if well:
                return answer
            error, there = answer
            raise error from _There(there)
        return Lost(place)

    def _hired(self) -> "_Worker":
        with self._lock:
            if self._is_over:
                raise CancelledError
            worker = _Worker(start(__name__, self._environment))
            self._alive.add(worker)
        with suppress(OSError):  # if it has ended already, the first question tells
            worker.send((sys.path, self._task))
        return worker

    def _dismiss(self, worker: "_Worker") -> None:
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


class _There(Exception):  # noqa: N818 - where it was raised, as text
    """Where in the other process an error was raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Worker:
    """One process."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def send(self, value: object) -> None:
        assert self.process.stdin is not None  # noqa: S101 - `start` opens it as a pipe
        send(self.process.stdin, value)

    def ask(self, place: str) -> tuple[bool, Any, float]:
        """Whether all went well, the answer, and the bytes that the process still holds."""
        assert self.process.stdout is not None  # noqa: S101 - likewise
        self.send(place)
        answer: tuple[bool, Any, float] = receive(self.process.stdout)
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def serve() -> None:
    """A worker's life: read a file, answer what the task makes of it, until the pipe closes."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a task prints is not to be taken for an answer
    with suppress(EOFError, BrokenPipeError):
        sys.path[:], pickled = receive(asked)
        task = pickle.loads(pickled)  # noqa: S301 - from our own process
        while True:
            send(answers, (*_answered(task, receive(asked)), _held()))


def _answered(task: Callable[[str], object], place: str) -> tuple[bool, object]:
    """Whether all went well, and the answer; else the error, and where it was raised."""
    try:
        return True, task(place)
    except MemoryError:  # a fresh process may have more
        raise
    except Exception as error:  # noqa: BLE001 - it is raised where the task was given
        return False, (error, traceback.format_exc())


def _held() -> float:
    """Bytes that this process holds for itself; infinite where the system does not tell."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text("ascii").split()
    except OSError:
        return inf
    return (int(resident) - int(shared)) * mmap.PAGESIZE
