"""Writes a wall-time ledger to a file, one JSON value per line, while the program runs.

The first line holds what is known from the beginning, each further one what came since the line
before. Where the program is killed the last line may be cut off, and the others hold.
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns, time_ns
from typing import Any, Final

from selftime.capture.ledger.place_in_job import place_in_job
from selftime.capture.trace_file.trace_files import (
    make_trace_folder,
    trace_file_name,
    unused_trace_path,
)
from selftime.errors import RecordingError
from selftime.ledger_format import LEDGER_FORMAT, LEDGER_SUFFIX

_END_LINE_BYTES: Final = 4096
"""Number of bytes at the end of a ledger in which the line with the process's end is searched."""


class LedgerFile:
    """Appends JSON lines to a ledger file, which the first line creates.

    A disk that is full ends the writing; the program goes on, and `failure` says why.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path: Path | None = None
        self.failure: str | None = None
        """Why the file could not be written; None if it could."""
        self.on_creation: Callable[[], None] = _nothing
        """Function that is called once the file exists."""
        self._descriptor: int | None = None
        self.lock: Final = threading.RLock()
        """Held while lines are written, so that two threads do not begin two files; a signal
        handler may write within the work that it interrupts."""

    @property
    def has_begun(self) -> bool:
        """Returns whether the first line was written."""
        return self.path is not None

    @property
    def name(self) -> str | None:
        """Returns the file's name; None as long as nothing was written."""
        return None if self.path is None else self.path.name

    def append(self, line: Mapping[str, Any]) -> None:
        """Writes one complete line to the file at once, without buffering it in this process."""
        if self.failure is not None:
            return
        data = _line_as_bytes(line)
        is_new = self._descriptor is None
        try:
            descriptor = self._open() if self._descriptor is None else self._descriptor
            while data:
                data = data[os.write(descriptor, data) :]
        except (OSError, RecordingError) as error:
            self.failure = str(error)
            self.close()
            return
        if is_new:
            self.on_creation()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def close_in_child(self) -> None:
        """Closes the file in a forked child process, since the file belongs to the parent."""
        self.close()
        self.path = None

    def _open(self) -> int:
        make_trace_folder(self._folder)
        name = trace_file_name(None).removesuffix(".pt.trace.json.gz") + LEDGER_SUFFIX
        self.path = unused_trace_path(self._folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(self.path, flags, 0o644)
        return self._descriptor


class LedgerInMemory(LedgerFile):
    """Holds the lines of a ledger until they are asked for."""

    def __init__(self) -> None:
        super().__init__(Path())
        self._lines: list[bytes] = []

    @property
    def has_begun(self) -> bool:
        return bool(self._lines)

    def append(self, line: Mapping[str, Any]) -> None:
        self._lines.append(_line_as_bytes(line))

    def text(self, until: int | None) -> bytes:
        """Returns the ledger so far; one that goes on ends at `until`, in ns."""
        end = [] if until is None else [_line_as_bytes({"end": until, "status": "goes on"})]
        return b"".join([*self._lines, *end])


def header_of_ledger(
    command: tuple[str, ...], process_began: int | None, began: int, own_start: int
) -> dict[str, Any]:
    """Returns the first line of a ledger, which says what is known from the beginning.

    Args:
        command: What was run.
        process_began: When the process began, in ns of `time.perf_counter_ns`; None if unknown.
        began: When the program's first instruction began, likewise.
        own_start: How long selftime took to load before, in ns.
    """
    return {
        "format": LEDGER_FORMAT,
        "process": os.getpid(),
        "parent": os.getppid(),
        **place_in_job(),
        "command": list(command),
        "clock": perf_counter_ns(),
        "time": time_ns(),  # the same instant since the Unix epoch, as traces have it
        "process_began": process_began,
        "began": began,
        "own_start": own_start,
    }


def ended_status(path: Path) -> str | None:
    """Returns how a process ended as its ledger states it; None if it states no end."""
    with suppress(OSError, ValueError, IndexError):
        line = json.loads(_last_bytes(path).splitlines()[-1])
        if isinstance(line, dict) and "end" in line:
            return str(line.get("status"))
    return None


def write_end(path: Path, status: str, at: int) -> None:
    """Adds the end of the process to its ledger, if the process could not do so itself.

    Args:
        path: The ledger's file.
        status: How the process ended.
        at: When it did, in ns of `time.perf_counter_ns`.
    """
    with suppress(OSError):
        cut = b"" if _last_bytes(path).endswith(b"\n") else b"\n"  # the last line was cut off
        with path.open("ab") as file:
            file.write(cut + _line_as_bytes({"end": at, "status": status}))


def add_to_end(path: Path, facts: Mapping[str, Any]) -> None:
    """Adds what was found out after a process's end, as JSON values, to the end in its ledger.

    Nothing is added where the ledger states no end.
    """
    with suppress(OSError, ValueError, IndexError):
        line = json.loads(_last_bytes(path).splitlines()[-1])
        if not isinstance(line, dict) or "end" not in line:
            return
        with path.open("ab") as file:
            file.write(_line_as_bytes({**line, **facts}))


def _line_as_bytes(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _last_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_LINE_BYTES))
        return file.read()


def _nothing() -> None:
    pass
