"""Holds back what a program does when one of its processes ends, while selftime itself works.

The workers of a `DataLoader` are watched so: PyTorch's handler of SIGCHLD raises an exception where
the main thread is. In selftime's own code it would end the recording, and not reach the program.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

RESEND_SECONDS: Final = 0.05
"""Time in s after selftime's work at which a signal that was held back is sent once more."""


class _HeldBackSignal:
    """A handler that only notes that the signal came."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True


@contextmanager
def child_signals_held_back(*, drops: bool = False) -> Iterator[None]:
    """Has a handler of SIGCHLD run after the block; never if `drops`, as at a program's end.

    Within another such block it does nothing.
    """
    is_main = threading.current_thread() is threading.main_thread()
    number = getattr(signal, "SIGCHLD", None) if is_main else None
    handler = None if number is None else signal.getsignal(number)
    if number is None or not callable(handler) or isinstance(handler, _HeldBackSignal):
        yield
        return
    held = _HeldBackSignal()
    signal.signal(number, held)
    try:
        yield
    finally:
        if signal.getsignal(number) is held:
            signal.signal(number, handler)
        if held.came and not drops:
            resend = threading.Timer(RESEND_SECONDS, os.kill, (os.getpid(), number))
            resend.daemon = True
            resend.start()
