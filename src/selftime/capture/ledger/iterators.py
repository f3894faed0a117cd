"""Describes the iterators of DataLoaders that a program makes, as lines of its ledger."""

from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType
from typing import Any, Final

MAX_ITERATORS: Final = 10_000
"""Largest number of DataLoader iterators that one ledger records."""


def iterator_line(
    start: int,
    workers: int,
    *,
    starts_workers: bool,
    frame: FrameType | None,
    is_user_file: Callable[[str], bool],
) -> dict[str, Any]:
    """Returns the line on the creation of a DataLoader's iterator, from `start` (ns) until now.

    `frame` is the innermost one; the first of the user's own has the line that made it.
    """
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    told: dict[str, Any] = {"start": start, "duration": perf_counter_ns() - start}
    told |= {"workers": workers, "starts_workers": starts_workers}
    if frame is not None:
        code = frame.f_code
        told |= {"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name}
    return {"iterator": told}
