"""Holds what a process of a recorded program does before it imports torch, in memory.

Most processes never import torch: then nothing comes of it. So it needs no module that Python has
not loaded anyway, and it reads the stack in a thread that `threading` does not list. It has ended
whenever the process forks. `selftime.capture.program.early_log` takes it over.
"""

import gc
import os
import sys
from _collections import deque  # type: ignore[import-not-found]  # `collections` is not loaded yet
from _functools import partial  # type: ignore[import-not-found]  # likewise `functools`
from _operator import methodcaller  # likewise `operator`
from _thread import allocate_lock, get_ident, start_new_thread
from time import perf_counter_ns

TYPE_CHECKING = False  # for type checkers; `typing` is slow to import
if TYPE_CHECKING:
    from _thread import LockType
    from types import FrameType
    from typing import Any

MAX_PLACES = 2000
"""Largest number of places in the program of which the time is summed."""

_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.01, 0.05
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - `pathlib` is not loaded yet


def _frames_of_threads() -> "dict[int, FrameType]":
    """Returns the innermost frame of each thread, as `selftime.capture.thread_frames` does."""
    if not gc.isenabled():
        return sys._current_frames()  # noqa: SLF001 - the documented way
    calls: Any = (gc.disable, sys._current_frames, gc.enable)  # noqa: SLF001 - likewise
    return tuple(map(methodcaller("__call__"), calls))[1]  # type: ignore[no-any-return]  # of the second


def instants_callback(starts: "Any", stops: "Any") -> "Any":
    """Returns a callable for `gc.callbacks` that appends time and thread to one of two queues.

    Python calls it with the name of a phase, "start" or "stop", and a dictionary. It looks up the
    attribute of that name, a property. Its getter takes the next element of an iterator, which
    calls `perf_counter_ns` and `get_ident` and appends the results. Each of these is written in C.
    """

    def getter(queue: "Any") -> property:
        instants = zip(iter(perf_counter_ns, None), iter(get_ident, None))  # noqa: B905 - endless
        return property(partial(next, map(queue.append, instants)))

    phases = type("Phases", (), {"start": getter(starts), "stop": getter(stops)})
    return partial(getattr, phases())


class EarlyLog:
    """Times garbage collections, and sums the time of each place that the stack shows."""

    def __init__(self) -> None:
        self.began_ns = perf_counter_ns()
        self.ended_ns: int | None = None
        self.thread = get_ident()
        self.places: dict[tuple[Any, ...], list[int]] = {}
        """[time in ns, number of readings] by place: the user's file, line and function, the module
        that it imports, and the outermost library file that it called; each None if unknown."""
        self.starts = deque()
        self.stops = deque()
        self.callback = instants_callback(self.starts, self.stops)
        self._end: LockType | None = None
        """The lock whose release ends the thread; None while there is none."""
        self._has_ended = allocate_lock()

    def start(self) -> None:
        """Begins in this process."""
        gc.callbacks.append(self.callback)
        self._start_reading()

    def stop(self) -> None:
        """Ends for good; what it holds stays."""
        self.ended_ns = self.ended_ns or perf_counter_ns()
        if self.callback in gc.callbacks:
            gc.callbacks.remove(self.callback)
        self.stop_reading()

    def stop_reading(self) -> None:
        """Ends the thread, and waits until it has ended."""
        end, self._end = self._end, None
        if end is not None:
            end.release()
            self._has_ended.acquire()
            self._has_ended.release()

    def begin_anew(self) -> None:
        """Begins anew in a forked child process, which has no thread of its parent."""
        self.began_ns, self.thread = perf_counter_ns(), get_ident()
        self.places.clear()
        self.starts.clear()
        self.stops.clear()
        self._start_reading()

    def _start_reading(self) -> None:
        self._end = end = allocate_lock()
        end.acquire()
        self._has_ended = has_ended = allocate_lock()
        has_ended.acquire()
        try:
            start_new_thread(self._read_until, (end, has_ended))
        except RuntimeError:  # no more threads can be started
            self._end = None
            has_ended.release()

    def _read_until(self, end: "LockType", has_ended: "LockType") -> None:
        last, pause_s, collections = perf_counter_ns(), _FIRST_PAUSE_S, len(self.stops)
        try:
            while not end.acquire(True, pause_s):
                now = perf_counter_ns()
                while collections < len(self.stops):  # they are counted apart
                    last += self.stops[collections][0] - self.starts[collections][0]
                    collections += 1
                place = _place(_frames_of_threads().get(self.thread))
                if place in self.places or len(self.places) < MAX_PLACES:
                    known = self.places.setdefault(place, [0, 0])
                    known[:] = known[0] + max(now - last, 0), known[1] + 1
                last = now
                pause_s = min(_LAST_PAUSE_S, max(_FIRST_PAUSE_S, (now - self.began_ns) / 1e11))
        finally:
            has_ended.release()


def _place(frame: "FrameType | None") -> "tuple[Any, ...]":
    """Returns what `EarlyLog.places` has as key, of the innermost frame of a stack."""
    imported = library = None
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if file == _IMPORT_SYSTEM:
            name = frame.f_locals.get("name")
            imported = name if isinstance(name, str) else imported
        elif not file.startswith(("<", _LIBRARY)) and "-packages" + os.sep not in file:
            return file, frame.f_lineno, code.co_name, imported, library
        else:
            library = file
        frame = frame.f_back
    return None, None, None, imported, library


if __name__ == "selftime_early_log":
    early_log = EarlyLog()
    early_log.start()
    if hasattr(os, "register_at_fork"):
        _is_reading: "list[bool]" = []  # of the parent, while it forks

        def _before_fork() -> None:
            _is_reading.append(early_log._end is not None)  # noqa: SLF001 - this module's own
            early_log.stop_reading()

        def _after_fork_in_parent() -> None:
            if _is_reading.pop():
                early_log._start_reading()  # noqa: SLF001 - as above

        def _after_fork_in_child() -> None:
            if _is_reading.pop():
                early_log.begin_anew()

        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_after_fork_in_parent,
            after_in_child=_after_fork_in_child,
        )
