"""Tells whether a signal was sent to the whole process group, as `timeout` and `kill -- -GROUP` do.

The kernel does not say so. A process of its own in the group gets such a signal as well.
"""

import os
import select
import signal
import struct
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from time import monotonic_ns
from typing import Final

MAX_WAIT_S: Final = 0.05
"""How long to wait for the other process to report a signal that has come here."""

_SAME_SIGNAL_NS: Final = 200_000_000
"""Longest time in ns between two arrivals of one signal that was sent once to the group."""

_REPORT: Final = struct.Struct("=iq")
"""A signal's number, and when it came in ns of `time.monotonic_ns`."""


class GroupSignals:
    """A process that reports the signals that come to it, since they come to its whole group."""

    def __init__(self, signals: AbstractSet[int], on_start: Callable[[], None]) -> None:
        """Starts the process.

        Args:
            signals: Those that it reports. They must be blocked in this process.
            on_start: Called in the new process.
        """
        self._reports, reports = os.pipe()
        self._last: dict[int, int] = {}
        """When each signal last came to the group."""
        self._process = os.fork()
        if self._process == 0:
            with suppress(BaseException):  # nothing may return into the code of the parent
                on_start()
                _report_signals(signals, reports)
            os._exit(0)
        os.close(reports)

    def close_in_child(self) -> None:
        """Closes, in another child process, what belongs to this one."""
        os.close(self._reports)

    def has_come_to_group(self, number: int) -> bool:
        """Returns whether a signal that has just come to this process came to the whole group."""
        now = monotonic_ns()
        left_s = MAX_WAIT_S
        while True:
            readable, _, _ = select.select([self._reports], [], [], left_s)
            data = os.read(self._reports, _REPORT.size) if readable else b""
            if len(data) == _REPORT.size:
                told, at = _REPORT.unpack(data)
                self._last[told] = at
            if abs(now - self._last.get(number, 0)) < _SAME_SIGNAL_NS:
                return True
            left_s = MAX_WAIT_S - (monotonic_ns() - now) / 1e9
            if not data or left_s <= 0:
                return False

    def end(self) -> None:
        """Ends the process."""
        with suppress(OSError):
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        os.close(self._reports)


def _report_signals(signals: AbstractSet[int], reports: int) -> None:
    while True:
        told = signal.sigwaitinfo(signals)
        os.write(reports, _REPORT.pack(told.si_signo, monotonic_ns()))
