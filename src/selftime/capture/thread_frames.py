"""Reads the stacks of all threads, without the deadlock of Python 3.11 and 3.12.

There `sys._current_frames` makes objects while it holds a lock of the interpreter. If that starts a
garbage collection, and this frees a `threading.local`, the thread waits for itself, and all others
for it (python/cpython#106883). So no collection starts meanwhile.
"""

import gc
import sys
from collections.abc import Callable
from operator import methodcaller
from types import FrameType
from typing import Any, Final

_CALL: Final = methodcaller("__call__")
_WITHOUT_COLLECTION: Final[tuple[Callable[[], Any], ...]] = (
    gc.disable,
    sys._current_frames,  # noqa: SLF001 - the only way to other threads
    gc.enable,
)


def frames_of_threads() -> dict[int, FrameType]:
    """Returns the innermost frame of each thread by its identifier.

    The three calls are made without Python code between them, so that no other thread runs
    meanwhile and sees the garbage collection disabled.
    """
    if not gc.isenabled():
        return sys._current_frames()  # noqa: SLF001 - as above
    # This call's own frame is among them: a name for them here would make a reference cycle.
    return tuple(map(_CALL, _WITHOUT_COLLECTION))[1]  # type: ignore[no-any-return]  # of the second
