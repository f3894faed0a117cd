"""SIGTERM while a recording is under way: finish it, then die of the signal all the same.

Python's default is to die at once. A program that handles the signal itself is left alone.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType


class Termination:
    """A handler that is there only while it is needed, and only if the program has none."""

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish = finish
        self._process = os.getpid()
        self._installed = False

    def install(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._handle)
            self._installed = True

    def remove(self) -> None:
        if self._installed and threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) == self._handle:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._installed = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        # Whoever ends a group of processes may send it twice: to each, and through their launcher.
        signal.signal(number, signal.SIG_IGN)
        if os.getpid() == self._process:  # a forked child inherits the handler, not the recording
            self._finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
