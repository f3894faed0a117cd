"""Returns the memory of finished recordings to the operating system.

PyTorch's profiler leaks nothing, but glibc's allocator keeps freed memory: a program that is
recorded repeatedly grows by 1 MB and more each time. torch's profiler also holds a reference cycle
to itself, which delays the release until the garbage collector runs.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from types import MethodType
from typing import Any
from weakref import WeakMethod


def return_freed_memory() -> None:
    """Returns freed memory to the operating system with glibc's `malloc_trim`, if available."""
    trim = _find_malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _find_malloc_trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc
        return None


def make_profiler_callbacks_weak(action_map: dict[Any, list[Any]]) -> None:
    """Replaces the bound methods in `action_map` by weak references, so that memory is freed."""
    for callbacks in action_map.values():
        callbacks[:] = [
            _weak_callback(callback) if isinstance(callback, MethodType) else callback
            for callback in callbacks
        ]


def _weak_callback(method: MethodType) -> Callable[[], Any]:
    reference = WeakMethod(method)

    def call_if_alive() -> Any:
        method_or_none = reference()
        return None if method_or_none is None else method_or_none()

    return call_if_alive
