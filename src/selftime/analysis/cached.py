"""What is derived from a trace once and kept as long as the trace lives."""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

S = TypeVar("S")
T = TypeVar("T")


def cached_per_trace(derive: Callable[[S], T]) -> Callable[[S], T]:
    """The same function, which derives its answer once for each trace: a trace never changes."""
    answers: WeakKeyDictionary[S, T] = WeakKeyDictionary()
    lock = Lock()

    @wraps(derive)
    def answer(trace: S) -> T:
        with lock:  # a page asks for several tiles at once
            if trace not in answers:
                answers[trace] = derive(trace)
            return answers[trace]

    return answer
