"""Reads a recording's events from torch's profiler into columns, to compare two recordings."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from torch._C._autograd import DeviceType, _KinetoEvent

from selftime import names
from selftime.array_types import Flags, Ints

_CATEGORIES_NOT_COMPARED: Final = frozenset({"python_function", "cpu_instant_event", "overhead"})
"""Categories of events that a recording without Python frames does not have, or that the profiler
makes by itself."""

HOST: Final = -1
"""The device number of events on the host."""


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Events of operators, annotations, runtime calls and device work, ordered by start.

    Equal starts are ordered by end, the later first, so that an event comes before those within it.
    """

    name: list[str]
    device: Ints
    """Number of the device that ran the event; `HOST` for the host."""
    thread: Ints
    """Id of the host thread, or number of the device's stream."""
    start_ns: Ints
    end_ns: Ints
    correlation: Ints
    """Number that a runtime call shares with the device work that it launched; 0 without one."""
    step_spans_ns: dict[int, tuple[int, int]]
    """Maps a step's number to its start and end, without selftime's own work."""
    collections_ns: dict[int, list[tuple[int, int]]]
    """Maps a thread to the starts and ends of its garbage collections, which are recorded with
    Python frames."""

    @property
    def is_on_host(self) -> Flags:
        return np.asarray(self.device == HOST, np.bool_)


def event_columns(events: Iterable[_KinetoEvent]) -> EventColumns:
    """Returns the columns of a recording's events, without Python frames and memory events."""
    found: list[tuple[str, int, int, int, int, int]] = []
    own_ranges: dict[int, list[tuple[int, int]]] = {}
    steps: dict[int, tuple[int, tuple[int, int]]] = {}
    collections: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        category = event.activity_type()
        if category in _CATEGORIES_NOT_COMPARED and category != "python_function":
            continue
        try:
            name = event.name()
        except UnicodeDecodeError:  # the profiler may reference freed text
            continue
        if category == "python_function":
            if name == names.GARBAGE_COLLECTION_SLICE:
                of_thread = collections.setdefault(event.device_resource_id(), [])
                of_thread.append((event.start_ns(), event.end_ns()))
            continue
        start, end, thread = event.start_ns(), event.end_ns(), event.device_resource_id()
        if name == names.SELFTIME_WORK_SLICE:
            own_ranges.setdefault(thread, []).append((start, end))
            continue
        is_on_host = event.device_type() == DeviceType.CPU
        number = names.profiler_step_number(name)
        if number is not None:
            if is_on_host:
                steps[number] = thread, (start, end)
            continue
        device = HOST if is_on_host else event.device_index()
        found.append((name, device, thread, start, end, event.correlation_id()))
    found.sort(key=lambda row: (row[3], -row[4]))
    numbers = np.array([row[1:] for row in found], np.int64).reshape(-1, 5)
    spans = {
        number: without_own_work(span, own_ranges.get(thread, ()))
        for number, (thread, span) in sorted(steps.items())
    }
    names_in_order = [row[0] for row in found]
    return EventColumns(names_in_order, *_five_columns(numbers), spans, collections)


def _five_columns(numbers: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    device, thread, start_ns, end_ns, correlation = numbers.T
    return device, thread, start_ns, end_ns, correlation


def without_own_work(
    span_ns: tuple[int, int], own_ranges_ns: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Returns a span in ns without selftime's own work (`own_ranges_ns`) at its start and end."""
    start, end = span_ns
    for own_start, own_end in own_ranges_ns:
        if own_start <= span_ns[0] <= own_end:
            start = own_end
        if own_start <= span_ns[1] <= own_end:
            end = own_start
    return start, max(start, end)
