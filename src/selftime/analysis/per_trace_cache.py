"""Caches what is derived from a trace, for as long as the trace lives."""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

TraceType = TypeVar("TraceType")
Result = TypeVar("Result")


class _CachedResult(Generic[Result]):
    """The result for one trace, as a list of one value; empty until it is computed."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.value: list[Result] = []


def cached_per_trace(function: Callable[[TraceType], Result]) -> Callable[[TraceType], Result]:
    """Returns the function with its result cached for each trace, as a trace never changes.

    Of threads that ask for one trace at once, one computes the result, and the others wait for it;
    results for different traces are computed at once.
    """
    results: WeakKeyDictionary[TraceType, _CachedResult[Result]] = WeakKeyDictionary()
    results_lock = Lock()

    @wraps(function)
    def cached(trace: TraceType) -> Result:
        with results_lock:
            result = results.setdefault(trace, _CachedResult())
        with result.lock:
            if not result.value:
                result.value.append(function(trace))
            return result.value[0]

    return cached
