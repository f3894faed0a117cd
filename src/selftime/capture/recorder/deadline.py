"""Calls a function in the main thread after a time, whatever Python code runs there then.

A recording ends only in the thread that it began in. Signals would do that too, but they are the
program's. Where Python has no such call, or the recording is another thread's, nothing is called.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Deadline:
    """From `begin` on, until `cancel`."""

    def __init__(self, seconds: float, then: Callable[[], None]) -> None:
        self._then = then
        self._timer = threading.Timer(seconds, self._ask)
        self._timer.daemon = True
        self._callback = _Callback(self._call)
        """Kept: the interpreter holds its address only."""

    def begin(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()
        self._then = _nothing

    def _ask(self) -> None:
        add: Any = getattr(ctypes.pythonapi, "Py_AddPendingCall", None)
        if add is not None:
            add(self._callback, None)

    def _call(self, _: Any) -> int:
        then, self._then = self._then, _nothing
        then()
        return 0


def _nothing() -> None:
    pass
