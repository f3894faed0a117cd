"""The recorder's events as columns, read from its own objects.

To make an event's object costs about half a microsecond, and each question to it a tenth of one:
what only some events can answer is asked of those alone.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from torch._C._autograd import _KinetoEvent

from selftime.arrays import Ints

Value = TypeVar("Value", bound=Hashable)

_ASKED: Final = (
    "activity_type",
    "correlation_id",
    "device_index",
    "device_resource_id",
    "device_type",
    "end_ns",
    "end_thread_id",
    "flops",
    "is_async",
    "is_hidden_event",
    "name",
    "nbytes",
    "overload_name",
    "shapes",
    "start_ns",
    "start_thread_id",
)


def are_readable() -> bool:
    """Whether this version of PyTorch tells of its events all that is asked."""
    return all(hasattr(_KinetoEvent, name) for name in _ASKED)


class Codes(dict[Value, int]):
    """Numbers for values, in order of their first appearance."""

    def __missing__(self, value: Value) -> int:
        number = self[value] = len(self)
        return number


class Events:
    """A recording's events. A column has an entry for each of them, or for those asked for."""

    def __init__(self, results: Any) -> None:
        self._events: list[_KinetoEvent] = results.events()

    def __len__(self) -> int:
        return len(self._events)

    def take(self, places: Ints) -> None:
        """Keep the events at these places, in this order."""
        if places.size < len(self) or (places[1:] < places[:-1]).any():
            self._events = self._at(places)

    def numbers(
        self, ask: Callable[[_KinetoEvent], Any], dtype: DTypeLike, at: Ints | None = None
    ) -> NDArray[Any]:
        """What each event answers, a number or a truth."""
        events = self._at(at)
        return np.fromiter(map(ask, events), dtype, len(events))

    def coded(
        self, ask: Callable[[_KinetoEvent], Value], codes: Codes[Value], at: Ints | None = None
    ) -> NDArray[np.uint32]:
        """The number of what each event answers.

        Raises:
            UnicodeDecodeError: A text is not UTF-8.
        """
        events = self._at(at)
        return np.fromiter(map(codes.__getitem__, map(ask, events)), np.uint32, len(events))

    def _at(self, places: Ints | None) -> list[_KinetoEvent]:
        if places is None:
            return self._events
        return [self._events[place] for place in places.tolist()]
