"""Describes the iterators of DataLoaders that a program makes, as lines of its ledger."""

from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from types import FrameType
from typing import Any, Final

MAX_ITERATORS: Final = 10_000
"""Largest number of DataLoader iterators that one ledger records."""


class IteratorLines:
    """Adds a line to a ledger for each iterator of a DataLoader."""

    def __init__(self, add_line: Callable[[dict[str, Any]], None]) -> None:
        self._add_line = add_line
        self._count = 0

    def add(
        self,
        begun: tuple[int, int],
        workers: int,
        *,
        starts_workers: bool,
        ahead: int | None,
        frame: FrameType | None,
        is_user_file: Callable[[str], bool],
    ) -> None:
        """Adds a line on the creation of a DataLoader's iterator, from `begun` until now.

        `begun` are the wall clock's and the thread's own time (ns) then.
        `ahead` is the number of batches that workers may make ahead of the loop, if it is known.
        `frame` is the innermost one; the first of the user's own has the line that made it.
        """
        self._count += 1
        if self._count > MAX_ITERATORS:
            return
        while frame is not None and not is_user_file(frame.f_code.co_filename):
            frame = frame.f_back
        told: dict[str, Any] = {"start": begun[0], "duration": perf_counter_ns() - begun[0]}
        told |= {"cpu": thread_time_ns() - begun[1]}
        told |= {"workers": workers, "starts_workers": starts_workers}
        if ahead is not None:
            told["ahead"] = ahead
        if frame is not None:
            code = frame.f_code
            told |= {"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name}
        self._add_line({"iterator": told})
