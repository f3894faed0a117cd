"""Processes that decode chunks side by side.

Each is a fresh interpreter that runs `serve`: no fork of a process that may hold threads or a GPU,
and no second run of the user's main module, which multiprocessing would import. Chunks, or where
they lie in a file, and columns travel over pipes as pickles of numbers and arrays, between this
module and itself only.
"""

import mmap
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import accumulate, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final, Protocol

import selftime
from selftime.errors import UnreadableTrace
from selftime.ingest.events.decode import Decoded, decode
from selftime.ingest.text.hashed import Part, digest_of

__all__ = ["Decoder", "decoder", "serve"]

_LENGTH: Final = 8
_MAIN: Final = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "sys.path.insert(0, sys.argv[1]); from selftime.ingest.workers import serve; serve()"
)
"""Ctrl-C reaches every process of a terminal: who reads ends these, by their pipes."""


class Decoder(Protocol):
    """Decodes chunks, here or in other processes."""

    width: int
    """How many chunks can be in work at once."""

    def submit(self, text: bytes | Part, *, last: bool) -> "Future[Decoded]": ...


class _Here:
    """Decodes in this process, at once."""

    width = 1

    def submit(self, text: bytes | Part, *, last: bool) -> "Future[Decoded]":
        done: Future[Decoded] = Future()
        done.set_result(_decoded(text, last=last))
        return done


class _Processes:
    """Decodes in worker processes, each served by a thread."""

    def __init__(self, count: int) -> None:
        self.width = count
        self._threads = ThreadPoolExecutor(count, "selftime-ingest")
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._workers = [_start() for _ in range(count)]
        for worker in self._workers:
            self._idle.put(worker)

    def submit(self, text: bytes | Part, *, last: bool) -> "Future[Decoded]":
        return self._threads.submit(self._ask, text, last)

    def _ask(self, text: bytes | Part, last: bool) -> Decoded:
        worker = self._idle.get()
        try:
            assert worker.stdin is not None  # noqa: S101 - opened as a pipe in `_start`
            assert worker.stdout is not None  # noqa: S101 - likewise
            apart = pickle.PickleBuffer(text) if isinstance(text, bytes) else text  # not copied
            _send(worker.stdin, (apart, last))
            answer: Decoded | OSError = _receive(worker.stdout)
        except (EOFError, OSError) as error:
            raise UnreadableTrace(
                f"a reading process ended (status {worker.poll()}), perhaps for lack of memory: "
                "free memory or set SELFTIME_WORKERS=1"
            ) from error
        finally:
            self._idle.put(worker)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._workers:
            worker.communicate()


@contextmanager
def decoder(size: int | None) -> Iterator[Decoder]:
    """Something to decode a file of that size with: processes where they are worth their start."""
    count = worker_count()
    worth = size is None or size > _WORTH_PROCESSES
    if count < 2 or not worth or not sys.executable:
        yield _Here()
        return
    processes = _Processes(count)
    try:
        yield processes
    finally:
        processes.close()


_WORTH_PROCESSES: Final = 8 << 20
"""A smaller file is read before a process has started (about 0.2 s)."""


def worker_count() -> int:
    """How many reading processes: SELFTIME_WORKERS, and never more than the usable cores."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    wanted = os.environ.get("SELFTIME_WORKERS", "")
    return max(1, min(int(wanted), cores)) if wanted.isdigit() else cores


def _start() -> subprocess.Popen[bytes]:
    root = str(Path(selftime.__file__).parent.parent)
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", _MAIN, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def serve() -> None:
    """A worker's life: read a chunk, answer its columns, until the pipe closes, or is cut."""
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        while True:
            given, last = _receive(asked)
            text = given if isinstance(given, Part) else bytes(given)
            del given
            try:
                answer: Decoded | OSError = _decoded(text, last=last)
            except OSError as error:  # the file is gone, or a share does not answer
                answer = error
            _send(answers, answer)


def _decoded(text: bytes | Part, *, last: bool) -> Decoded:
    """A chunk decoded; one that is told by where it lies is read here."""
    if isinstance(text, bytes):
        return decode(text, last=last)
    read = text.read()
    found = decode(read, last=last)
    found.digest = digest_of(read)
    return found


def _send(pipe: IO[bytes], value: object) -> None:
    """A value as a pickle, its arrays behind it: first how long each is."""
    arrays: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=arrays.append)
    pieces = [memoryview(head), *(array.raw() for array in arrays)]
    pipe.write(len(pieces).to_bytes(_LENGTH, "little"))
    for piece in pieces:
        pipe.write(piece.nbytes.to_bytes(_LENGTH, "little"))
    for piece in pieces:
        pipe.write(piece)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    """The value, its arrays in memory of their own, which goes back to the system with them."""
    head, *sizes = (_number(pipe) for _ in range(_number(pipe)))
    pickled = _exactly(pipe, head)
    room = memoryview(mmap.mmap(-1, max(sum(sizes), 1)))
    filled = 0
    while filled < sum(sizes):
        got = pipe.readinto(room[filled : sum(sizes)])  # type: ignore[attr-defined]  # a pipe has it
        if not got:
            raise EOFError
        filled += got
    ends = list(accumulate(sizes, initial=0))
    arrays = [room[begin:end] for begin, end in pairwise(ends)]
    return pickle.loads(pickled, buffers=arrays)  # noqa: S301 - from our own process


def _number(pipe: IO[bytes]) -> int:
    return int.from_bytes(_exactly(pipe, _LENGTH), "little")


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    read = pipe.read(size)
    if len(read) < size:
        raise EOFError
    return read
