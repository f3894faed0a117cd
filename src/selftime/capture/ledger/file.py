"""Writes a wall-time ledger to a file, one JSON value per line, while the program runs.

The first line holds what is known from the beginning, each further one what came since the line
before. Where the program is killed the last line may be cut off, and the others hold.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from selftime.capture.trace_file.trace_files import (
    make_trace_folder,
    trace_file_name,
    unused_trace_path,
)
from selftime.errors import RecordingError
from selftime.ledger_format import LEDGER_SUFFIX


class LedgerFile:
    """Appends JSON lines to a ledger file, which the first line creates.

    A disk that is full ends the writing; the program goes on, and `failure` says why.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path: Path | None = None
        self.failure: str | None = None
        """Why the file could not be written; None if it could."""
        self._descriptor: int | None = None

    @property
    def name(self) -> str | None:
        """Returns the file's name; None as long as nothing was written."""
        return None if self.path is None else self.path.name

    def append(self, line: Mapping[str, Any]) -> None:
        """Writes one complete line to the file at once, without buffering it in this process."""
        if self.failure is not None:
            return
        data = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            descriptor = self._open() if self._descriptor is None else self._descriptor
            while data:
                data = data[os.write(descriptor, data) :]
        except (OSError, RecordingError) as error:
            self.failure = str(error)
            self.close()

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
