"""Caches what is derived from a trace, for as long as the trace lives."""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

TraceType = TypeVar("TraceType")
Result = TypeVar("Result")


def cached_per_trace(function: Callable[[TraceType], Result]) -> Callable[[TraceType], Result]:
    """Returns the function with its result cached for each trace, as a trace never changes."""
    results: WeakKeyDictionary[TraceType, Result] = WeakKeyDictionary()
    lock = Lock()

    @wraps(function)
    def cached(trace: TraceType) -> Result:
        with lock:  # a page requests several tiles concurrently
            if trace not in results:
                results[trace] = function(trace)
            return results[trace]

    return cached
