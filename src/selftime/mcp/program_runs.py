"""Runs a command for an agent within limits: of time, of kept output, and while it is wanted."""

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from selftime.mcp import program_watch

KEPT_OUTPUT_BYTES: Final = 16 << 10
"""Size of the end of a command's output that is kept, in bytes."""
_MARK_VARIABLE: Final = "SELFTIME_MCP_RUN"
"""Environment variable by which the processes of a command are found if their watcher is killed."""
_POLL_INTERVAL_S: Final = 0.05
_END_LIMIT_S: Final = program_watch.SIGTERM_GRACE_S + program_watch.KILL_LIMIT_S + 2
_READ_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """How a command ended: its status, what it wrote last, and who stopped it."""

    status: int
    """Exit status; 128 and the number of the signal that ended it."""
    seconds: float
    output_end: bytes
    output_bytes: int
    """Size of all that it wrote."""
    is_late: bool
    """Whether it was stopped since its time was over."""
    is_cancelled: bool


def run_watched(
    command: Sequence[str], folder: Path, seconds: float, is_cancelled: Callable[[], bool]
) -> ProgramOutcome:
    """Runs a command to its end, its time's end, or until `is_cancelled` returns True.

    None of its processes is left when this returns, nor when this process is killed.
    """
    mark = secrets.token_hex(16)
    began = time.monotonic()
    process = subprocess.Popen(  # noqa: S603 - the program that the user allows to run
        [sys.executable, "-I", program_watch.__file__, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**os.environ, _MARK_VARIABLE: mark},
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - pipes
    end = _OutputEnd(process.stdout)
    late = cancelled = False
    try:
        while process.poll() is None and not late and not cancelled:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_INTERVAL_S)
            late, cancelled = time.monotonic() - began > seconds, is_cancelled()
        late, cancelled = (flag and process.poll() is None for flag in (late, cancelled))
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_LIMIT_S)
        process.kill()
        _kill_marked(mark)
        status = process.wait()
        end.wait()
    took = time.monotonic() - began
    status = status if status >= 0 else 128 - status
    return ProgramOutcome(status, took, end.data, end.total, late, cancelled)


class _OutputEnd:
    """Reads all of a command's output in a thread, and keeps its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.data = b""
        self.total = 0
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while data := os.read(self._stream.fileno(), _READ_BYTES):
            self.total += len(data)
            self.data = (self.data + data)[-KEPT_OUTPUT_BYTES:]

    def wait(self) -> None:
        """Waits for the output's end, which comes once no process of the command is left."""
        self._thread.join(_END_LIMIT_S)
        if not self._thread.is_alive():
            self._stream.close()


def _kill_marked(mark: str) -> None:
    """Kills processes of a command whose watcher was killed, by a mark in their environment."""
    needle = f"{_MARK_VARIABLE}={mark}".encode()
    until = time.monotonic() + program_watch.KILL_LIMIT_S
    while sys.platform == "linux" and time.monotonic() < until:
        found = [entry for entry in Path("/proc").glob("[0-9]*") if _has_mark(entry, needle)]
        for entry in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry.name), signal.SIGKILL)
        if not found:
            return
        time.sleep(_POLL_INTERVAL_S)


def _has_mark(entry: Path, needle: bytes) -> bool:
    try:
        return needle in (entry / "environ").read_bytes()
    except OSError:
        return False
