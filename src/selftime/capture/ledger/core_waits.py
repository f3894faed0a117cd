"""Counts how long the thread that makes steps was ready to run and had no core.

Linux counts this for each thread. Other programs, or the program's own threads, used the cores.
"""

import os
from threading import get_native_id
from typing import Final

_SCHEDULE_FILE: Final = "/proc/thread-self/schedstat"
"""File with the time that the calling thread ran, and that it waited for a core, in ns."""

MIN_PAUSE_NS: Final = 5_000_000
"""Shortest time in ns between two readings of the file, which takes some us: steps that are
shorter than a quarter of the excess of a slow step need none of their own."""

_MAX_BYTES: Final = 128


class CoreWaits:
    """Reads how long the calling thread waited for a core, at the ends of segments."""

    def __init__(self) -> None:
        self._thread = 0
        self._read_at = 0
        self._waited = 0
        self._is_counted = True

    def take(self, at: int) -> int:
        """Returns the time in ns since the last reading; 0 if that was just before, or unknown."""
        if not self._is_counted or at - self._read_at < MIN_PAUSE_NS:
            return 0
        try:
            ran, waited, _ = map(int, _schedule_text().split())
        except (OSError, ValueError):  # another system
            self._is_counted = False
            return 0
        thread, before = get_native_id(), self._waited
        is_known = bool(ran) and thread == self._thread
        self._thread, self._read_at, self._waited = thread, at, waited
        return max(0, waited - before) if is_known else 0


def _schedule_text() -> bytes:
    file = os.open(_SCHEDULE_FILE, os.O_RDONLY | os.O_CLOEXEC)  # a quarter of the time of `open`
    try:
        return os.read(file, _MAX_BYTES)
    finally:
        os.close(file)
