"""Tells whether anybody waits for the answer to a request, and ends what nobody waits for.

A browser that leaves the page, or whose reader presses Cancel, ends its requests' connections.
Other servers than Waitress do not tell it: there a request is answered in any case.
"""

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextvars import ContextVar
from typing import Final, TypeVar

from selftime.errors import ReadingStopped

V = TypeVar("V")

STOPPED_SENTENCE: Final = "this was stopped before its end; open the trace again to go on"
_SECONDS_BETWEEN_LOOKS: Final = 0.2
"""Time in s between looks whether a client that waits has gone."""

is_client_gone: ContextVar[Callable[[], bool] | None] = ContextVar("is_client_gone", default=None)
"""Tells whether the client of the current request has gone; None where that is not known."""


def is_client_waiting() -> bool:
    """Returns whether the current request has a client that is known to wait."""
    is_gone = is_client_gone.get()
    return is_gone is not None and not is_gone()


def require_client() -> None:
    """Raises `ReadingStopped` if the client of the current request has gone."""
    is_gone = is_client_gone.get()
    if is_gone is not None and is_gone():
        raise ReadingStopped(STOPPED_SENTENCE)


def result_while_client_waits(value: "Future[V]") -> V:
    """Returns what another thread computes.

    Raises:
        ReadingStopped: The client of this request has gone.
    """
    if is_client_gone.get() is not None:
        while not wait([value], _SECONDS_BETWEEN_LOOKS).done:
            require_client()
    return value.result()
