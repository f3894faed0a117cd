"""Memory that the recorder has freed, given back to the system.

PyTorch's recorder leaks nothing, but the system's allocator keeps what it frees: a program that is
recorded again and again grows by 1 MB and more each time. glibc gives it back when it is asked.
"""

import ctypes
from functools import cache
from typing import Any


def give_back() -> None:
    """Give freed memory back where the allocator can; elsewhere nothing happens."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None
