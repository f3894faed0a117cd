"""Makes calls in two threads where a trace is so large that their results come sooner.

Most of the time of such calls is spent in NumPy and Polars, which release the interpreter lock.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Final, Protocol, TypeVar

from selftime.trace import Trace

Result = TypeVar("Result")

_THREAD_COUNT: Final = 2
"""Number of threads; more threads would wait for Python's interpreter lock."""
_MIN_SLICES_TO_USE_THREADS: Final = 300_000
"""Smallest trace, in slices, for which threads are used; a smaller one's answers take a second."""


class BeginsCall(Protocol):
    """Begins a call, and returns a function that waits for its result, or raises its error."""

    def __call__(self, call: Callable[[], Result], /) -> Callable[[], Result]:
        """Begins a call."""


@contextmanager
def concurrent_calls(*traces: Trace) -> Iterator[BeginsCall]:
    """Yields a function that begins a call in a thread; of small traces it is made when asked for.

    When the context is left, calls that have not begun are not made.

    >>> with concurrent_calls() as begin:
    ...     total = begin(lambda: sum([1, 2]))
    ...     total()
    3
    """
    is_large = any(trace.slices.height >= _MIN_SLICES_TO_USE_THREADS for trace in traces)
    if not is_large or (os.cpu_count() or 1) < _THREAD_COUNT:
        yield cache
        return
    threads = ThreadPoolExecutor(_THREAD_COUNT, "selftime-answers")
    try:
        yield lambda call: threads.submit(call).result
    finally:
        threads.shutdown(cancel_futures=True)
