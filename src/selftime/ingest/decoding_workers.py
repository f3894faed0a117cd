"""Decodes chunks of a trace file's events in parallel worker processes.

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
from selftime.ingest.events.chunk_decoding import DecodedChunk, decode_chunk
from selftime.ingest.process_pipes import receive_value, send_value, start_python_process
from selftime.ingest.text.hashed_file import FilePart, TextChunk, sha256_of


class ChunkDecoder(Protocol):
    """Decodes chunks of trace text to columns, in this process or in worker processes."""

    width: int
    """The number of chunks that the decoder can decode at once."""

    def submit(self, text: TextChunk, *, is_last_chunk: bool) -> "Future[DecodedChunk]": ...


class _InProcessDecoder:
    """Decodes chunks one at a time in this process."""

    width = 1

    def submit(self, text: TextChunk, *, is_last_chunk: bool) -> "Future[DecodedChunk]":
        done: Future[DecodedChunk] = Future()
        done.set_result(_decode_chunk_or_file_part(text, is_last_chunk=is_last_chunk))
        return done


class _WorkerProcessDecoder:
    """Decodes chunks in worker processes; one thread waits for each process."""

    def __init__(self, count: int) -> None:
        self.width = count
        self._threads = ThreadPoolExecutor(count, "selftime-ingest")
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._workers = [start_python_process(__name__) for _ in range(count)]
        for worker in self._workers:
            self._idle.put(worker)

    def submit(self, text: TextChunk, *, is_last_chunk: bool) -> "Future[DecodedChunk]":
        return self._threads.submit(self._decode_in_worker, text, is_last_chunk)

    def _decode_in_worker(self, text: TextChunk, is_last_chunk: bool) -> DecodedChunk:
        worker = self._idle.get()
        try:
            assert worker.stdin is not None  # noqa: S101 - opened as a pipe in `_start`
            assert worker.stdout is not None  # noqa: S101 - likewise
            apart = pickle.PickleBuffer(text) if isinstance(text, bytes) else text  # not copied
            send_value(worker.stdin, (apart, is_last_chunk))
            answer: DecodedChunk | OSError = receive_value(worker.stdout)
        except (EOFError, OSError) as error:
            raise UnreadableTrace(
                f"a worker process that decodes the trace ended (status {worker.poll()}), "
                "perhaps out of memory: free memory or set SELFTIME_WORKERS=1"
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
def open_chunk_decoder(file_bytes: int | None) -> Iterator[ChunkDecoder]:
    """Yields a decoder that uses worker processes if the file's size makes that faster."""
    count = worker_count()
    is_worth_starting = file_bytes is None or file_bytes > _MIN_FILE_BYTES_FOR_PROCESSES
    if count < 2 or not is_worth_starting or not sys.executable:
        yield _InProcessDecoder()
        return
    processes = _WorkerProcessDecoder(count)
    try:
        yield processes
    finally:
        processes.close()


_MIN_FILE_BYTES_FOR_PROCESSES: Final = 8 << 20
"""Smallest file, in bytes, for which worker processes are started. Reading a smaller file takes
less time than starting a process (about 0.2 s).
"""


def worker_count() -> int:
    """Returns the number of usable CPU cores, or SELFTIME_WORKERS if that is smaller."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    wanted = os.environ.get("SELFTIME_WORKERS", "")
    return max(1, min(int(wanted), cores)) if wanted.isdigit() else cores


def serve() -> None:
    """Runs a worker process: decodes chunks from stdin and writes their columns to stdout."""
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        while True:
            given, is_last_chunk = receive_value(asked)
            text = given if isinstance(given, FilePart) else bytes(given)
            del given
            try:
                answer: DecodedChunk | OSError = _decode_chunk_or_file_part(
                    text, is_last_chunk=is_last_chunk
                )
            except OSError as error:  # the file is gone, or a network share does not answer
                answer = error
            send_value(answers, answer)


def _decode_chunk_or_file_part(chunk: TextChunk, *, is_last_chunk: bool) -> DecodedChunk:
    """Decodes a chunk of text; if given as a byte range of a file, first reads and hashes it."""
    if isinstance(chunk, bytes):
        return decode_chunk(chunk, is_last_chunk=is_last_chunk)
    read = chunk.read()
    found = decode_chunk(read, is_last_chunk=is_last_chunk)
    found.digest = sha256_of(read)
    return found
