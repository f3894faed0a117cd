"""Runs a function in a thread that the program does not find among its own."""

import _thread
from collections.abc import Callable
from typing import Any


class UnlistedThread:
    """A running daemon thread that `threading.enumerate` and `threading.active_count` leave out.

    Programs wait until they are the only thread, or list threads that are left. The thread becomes
    visible to them if the function calls `threading.current_thread`.
    """

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self._is_running = _thread.allocate_lock()
        self._is_running.acquire()
        _thread.start_new_thread(self._run, (function, arguments))

    def join(self, longest_s: float) -> bool:
        """Waits for the function to return; returns whether it has, within `longest_s` seconds."""
        if not self._is_running.acquire(timeout=longest_s):
            return False
        self._is_running.release()
        return True

    def _run(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            function(*arguments)
        finally:
            self._is_running.release()
