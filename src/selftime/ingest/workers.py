"""Decode chunks of events in parallel processes.

Each process is a fresh interpreter that runs `serve`. Chunks, or their byte ranges in a file, and
columns travel over pipes as pickles of numbers and arrays.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Final, Protocol

from selftime.errors import UnreadableTrace
from selftime.ingest.events.decode import Decoded, decode
from selftime.ingest.pipes import receive, send, start_interpreter
from selftime.ingest.text.hashed_file import FilePart, sha256_of


class Decoder(Protocol):
    """Decodes chunks, in this process or in others."""

    width: int
    """The number of chunks that can be decoded at once."""

    def submit(self, text: bytes | FilePart, *, last: bool) -> "Future[Decoded]": ...


class _InProcessDecoder:
    """Decodes chunks one at a time in this process."""

    width = 1

    def submit(self, text: bytes | FilePart, *, last: bool) -> "Future[Decoded]":
        done: Future[Decoded] = Future()
        done.set_result(_decode_chunk(text, last=last))
        return done


class _ProcessDecoder:
    """Decodes chunks in worker processes, each served by a thread."""

    def __init__(self, count: int) -> None:
        self.width = count
        self._threads = ThreadPoolExecutor(count, "selftime-ingest")
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._workers = [start_interpreter(__name__) for _ in range(count)]
        for worker in self._workers:
            self._idle.put(worker)

    def submit(self, text: bytes | FilePart, *, last: bool) -> "Future[Decoded]":
        return self._threads.submit(self._ask, text, last)

    def _ask(self, text: bytes | FilePart, last: bool) -> Decoded:
        worker = self._idle.get()
        try:
            assert worker.stdin is not None  # noqa: S101 - opened as a pipe in `_start`
            assert worker.stdout is not None  # noqa: S101 - likewise
            apart = pickle.PickleBuffer(text) if isinstance(text, bytes) else text  # not copied
            send(worker.stdin, (apart, last))
            answer: Decoded | OSError = receive(worker.stdout)
        except (EOFError, OSError) as error:
            raise UnreadableTrace(
                f"a reading process ended (status {worker.poll()}), perhaps out of memory: "
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
def open_decoder(size: int | None) -> Iterator[Decoder]:
    """Yields a decoder for a file of this size in bytes: processes if they are worth starting."""
    count = worker_count()
    worth = size is None or size > _WORTH_PROCESSES
    if count < 2 or not worth or not sys.executable:
        yield _InProcessDecoder()
        return
    processes = _ProcessDecoder(count)
    try:
        yield processes
    finally:
        processes.close()


_WORTH_PROCESSES: Final = 8 << 20
"""Bytes: a smaller file is read faster than a process starts (about 0.2 s)."""


def worker_count() -> int:
    """Returns the number of reading processes: SELFTIME_WORKERS, at most the usable cores."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    wanted = os.environ.get("SELFTIME_WORKERS", "")
    return max(1, min(int(wanted), cores)) if wanted.isdigit() else cores


def serve() -> None:
    """Run a worker: decode chunks from stdin and write columns to stdout until the pipe closes."""
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        while True:
            given, last = receive(asked)
            text = given if isinstance(given, FilePart) else bytes(given)
            del given
            try:
                answer: Decoded | OSError = _decode_chunk(text, last=last)
            except OSError as error:  # the file is gone, or a network share does not answer
                answer = error
            send(answers, answer)


def _decode_chunk(text: bytes | FilePart, *, last: bool) -> Decoded:
    """Returns a chunk decoded; the bytes of a file part are read here."""
    if isinstance(text, bytes):
        return decode(text, last=last)
    read = text.read()
    found = decode(read, last=last)
    found.digest = sha256_of(read)
    return found
