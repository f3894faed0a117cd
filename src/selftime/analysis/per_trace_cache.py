"""Caches what is derived from a trace, for as long as the trace lives."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

TraceType = TypeVar("TraceType")
Result = TypeVar("Result")
Options = ParamSpec("Options")

_MAX_RESULTS_PER_TRACE: Final = 4
"""Largest number of options for which results for one trace are kept, those of the latest calls."""


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


def cached_per_trace_and_options(
    function: Callable[Concatenate[TraceType, Options], Result],
) -> Callable[Concatenate[TraceType, Options], Result]:
    """Returns the function with the results of its latest options cached for each trace.

    The options are given by position and can be hashed.
    """
    results_of_trace = cached_per_trace(_no_results)
    results_lock = Lock()

    @wraps(function)
    def cached(trace: TraceType, /, *options: Options.args, **none: Options.kwargs) -> Result:
        results = results_of_trace(trace)
        with results_lock:
            result: _CachedResult[Result] = results.setdefault(options, _CachedResult())
            results.move_to_end(options)
            if len(results) > _MAX_RESULTS_PER_TRACE:
                results.popitem(last=False)
        with result.lock:
            if not result.value:
                result.value.append(function(trace, *options, **none))
            return result.value[0]

    return cached


def _no_results(_trace: object) -> "OrderedDict[Hashable, _CachedResult[Any]]":
    return OrderedDict()
