"""Tells which trace function (`sys.settrace`) a thread has, apart from a count of its calls."""

import functools
import sys
from collections.abc import Callable
from typing import Any


def counting_trace(trace: Callable[..., Any] | None) -> Any:
    """Returns a trace function of C that counts its calls; it does what `trace` does, if given.

    The misses of its cache are the calls (`cache_info`): a cache of the size 0 finds nothing.
    """
    # `getattr` of three arguments returns the last one, here None: no lines are traced.
    return functools.lru_cache(maxsize=0)(getattr if trace is None else trace)


def is_counting(trace: Any) -> bool:
    """Returns whether a trace function is one of `counting_trace`."""
    return hasattr(trace, "cache_info")


def trace_below_count() -> Any:
    """Returns this thread's trace function, or the one that `counting_trace` has replaced."""
    trace = sys.gettrace()
    replaced = trace.__wrapped__ if is_counting(trace) else trace  # type: ignore[union-attr]  # it has been counting
    return None if replaced is getattr else replaced
