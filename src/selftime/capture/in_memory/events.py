"""Copies attributes of the profiler's C++ event objects into NumPy arrays.

Creating the Python object of an event takes about 500 ns, and each method call on it 100 ns.
Methods that only some events need are called on those alone.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from torch._C._autograd import _KinetoEvent

from selftime.array_types import Ints
from selftime.names import FRAME_CATEGORIES, SELFTIME_WORK_SLICE

Value = TypeVar("Value", bound=Hashable)

_ALLOCATION_CATEGORY: Final = "cpu_instant_event"
"""Category of events of memory that is allocated or released."""

_RANGE_CATEGORY: Final = "user_annotation"
"""Category of ranges that a program marks, and of the recorder's own work."""

_NAMES_OF_METHODS_READ_FROM_EVENTS: Final = (
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


def are_kineto_events_supported() -> bool:
    """Returns whether this PyTorch's profiler events have all methods that this module calls."""
    return all(hasattr(_KinetoEvent, name) for name in _NAMES_OF_METHODS_READ_FROM_EVENTS)


def event_counts(events: Sequence[_KinetoEvent]) -> tuple[int, int, int]:
    """Returns the numbers of events and, among them, of Python frames and of allocations.

    Events that begin within the recorder's own work are none of the step's, and do not count.
    """
    categories = [event.activity_type() for event in events]
    counts = Counter(categories)
    own = [
        (event.start_ns(), event.end_ns())
        for event, category in zip(events, categories, strict=True)
        if category == _RANGE_CATEGORY and event.name() == SELFTIME_WORK_SLICE
    ]
    if own:
        starts = np.fromiter((event.start_ns() for event in events), np.int64, len(events))
        is_own = np.zeros(starts.size, bool)
        for begin, end in own:
            is_own |= (starts >= begin) & (starts <= end)
        counts -= Counter(categories[at] for at in np.flatnonzero(is_own).tolist())
    frames = sum(counts[category] for category in FRAME_CATEGORIES)
    return sum(counts.values()), frames, counts[_ALLOCATION_CATEGORY]


class CodeByValue(dict[Value, int]):
    """Assigns consecutive integers to distinct values, in order of first appearance."""

    def __missing__(self, value: Value) -> int:
        number = self[value] = len(self)
        return number


class KinetoEvents:
    """The events of a recording, given torch's `profiler.kineto_results`.

    A column has one entry for each event, or for each of the given `indices`.
    """

    def __init__(self, results: Any) -> None:
        self._events: list[_KinetoEvent] = results.events()

    def __len__(self) -> int:
        return len(self._events)

    def keep_events_at(self, indices: Ints) -> None:
        """Drops all events except those at `indices`, and puts these in the given order."""
        if indices.size < len(self) or (indices[1:] < indices[:-1]).any():
            self._events = self._events_at(indices)

    def read_numbers(
        self, method: Callable[[_KinetoEvent], Any], dtype: DTypeLike, indices: Ints | None = None
    ) -> NDArray[Any]:
        """Returns an array of the numbers or booleans that `method` returns for each event."""
        events = self._events_at(indices)
        return np.fromiter(map(method, events), dtype, len(events))

    def read_value_codes(
        self,
        method: Callable[[_KinetoEvent], Value],
        codes: CodeByValue[Value],
        indices: Ints | None = None,
    ) -> NDArray[np.uint32]:
        """Returns for each event the integer in `codes` for the value that `method` returns.

        Raises:
            UnicodeDecodeError: A returned text is not UTF-8.
        """
        events = self._events_at(indices)
        return np.fromiter(map(codes.__getitem__, map(method, events)), np.uint32, len(events))

    def _events_at(self, indices: Ints | None) -> list[_KinetoEvent]:
        if indices is None:
            return self._events
        return [self._events[index] for index in indices.tolist()]
