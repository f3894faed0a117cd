"""Removes selftime's frames from every traceback that a process prints or turns into text.

Processes of `multiprocessing` and of torch, workers of a DataLoader, pools and `logging` format an
exception by `traceback.TracebackException`. A program that Python runs by itself ends in
`sys.excepthook`.
"""

import functools
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.program.own_frames import hide_own_frames, without_own_frames

_patches = AttributePatches()


def hide_own_frames_in_printed_tracebacks() -> None:
    """Begins to remove them in this process, and in those that it forks."""
    place = traceback.TracebackException, "__init__"
    if place not in _patches:
        _patches.wrap_attribute(*place, _hiding_own_frames)


def hide_own_frames_at_uncaught_exception() -> None:
    """Begins to remove them where Python prints the exception that ends this process.

    A function that the program has set in its place is left alone. Before Python 3.11, where a
    package may have to print exception groups in its place, nothing changes.
    """
    if sys.excepthook is sys.__excepthook__ and sys.version_info >= (3, 11):
        sys.excepthook = _print_exception


def _hiding_own_frames(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(  # noqa: N807 - in place of that method
        self: Any,
        exc_type: Any,
        exc_value: BaseException | None,
        exc_traceback: TracebackType | None,
        **options: Any,
    ) -> None:
        if exc_value is not None:
            is_whole = exc_traceback is exc_value.__traceback__
            hide_own_frames(exc_value)
            if is_whole:
                exc_traceback = exc_value.__traceback__
            else:  # a part of it
                exc_traceback = without_own_frames(exc_traceback, exc_value)
        original(self, exc_type, exc_value, exc_traceback, **options)

    return __init__


def _print_exception(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    hide_own_frames(error)
    shown = error.__traceback__ if trace is None else without_own_frames(trace, error)
    sys.__excepthook__(kind, error, shown)
