"""Detects where a recording's clock was set back, and shifts the events after it.

The recorder numbers calls and operators as they begin, so on one thread a higher number has a later
time. Where it has an earlier one, the clock was set back or restarted. The events from there on in
the file form another window: it is shifted behind the first, with a gap between them, so that no
slice is nested in the wrong window. The length of the real gap is unknown.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selftime.array_types import Ints
from selftime.ingest.events.chunk_merging import FileEventColumns
from selftime.ingest.events.event_types import NO_INT

_MAX_CORRECTION_OF_RUNNING_CLOCK_NS: Final = 1_000_000
"""Largest step back, in ns, that a clock takes when it is adjusted while running. A larger step
means that the clock was set back.
"""
_MAX_CLOCK_STEPS_BACK_PER_RECORDING: Final = 100
"""Largest number of times that the clock of one recording may go back."""
_EVENT_GROUPS_AND_NUMBER_COLUMNS: Final = (("call", "correlation"), ("op", "external_id"))
"""Kinds of events that the recorder numbers, each with the column that holds the number."""


class _NumberedEvents(NamedTuple):
    """Start times of events, sorted by thread and by the number the recorder gave each event."""

    thread: NDArray[np.uint32]
    event_number: Ints
    start_ns: Ints
    row: Ints
    """Each event's row in the table of all slices of the file."""

    def time_drops(self) -> Ints:
        """Returns by how many ns each event begins before the previous event of its thread."""
        same = self.thread[1:] == self.thread[:-1]
        return np.where(same, self.start_ns[:-1] - self.start_ns[1:], 0)


def separate_clock_windows(columns: FileEventColumns) -> None:
    """Shifts all events after each backward step of the clock, so that time increases again."""
    for _ in range(_MAX_CLOCK_STEPS_BACK_PER_RECORDING):
        border = _row_and_size_of_clock_step_back(columns)
        if border is None:
            return
        columns.fault_counts[
            "the clock went back: later events of the file are shifted behind the earlier ones"
        ] += 1
        _shift_events_after_step_back(columns, *border)


def _row_and_size_of_clock_step_back(columns: FileEventColumns) -> tuple[int, int] | None:
    """Returns the first slice's row after a clock step back, and the step in ns; else None."""
    steps = [_largest_clock_step_back(events) for events in _numbered_events_by_group(columns)]
    time_drops = [fall for fall in steps if fall is not None]
    if not time_drops:
        return None
    last, first = (
        max(fall.last_row_before for fall in time_drops),
        min(fall.first_row_after for fall in time_drops),
    )
    if last >= first:
        return None  # the windows are interleaved in the file and cannot be separated
    back = max(fall.size_ns for fall in time_drops)
    """The time in ns by which the clock stepped back."""
    start = columns.slices["start"]
    between = start[last + 1 : first + 1]
    fallen = (between != NO_INT) & (between < start[last] - back // 2)
    return last + 1 + int(fallen.argmax()), back


class _ClockStepBack(NamedTuple):
    """A setting back of the clock: the slice rows before and after it, and its size in ns."""

    last_row_before: int
    """The row of the last slice before the clock stepped back."""
    first_row_after: int
    """The row of the first slice after the clock stepped back."""
    size_ns: int
    """The size of the step in ns."""


def _largest_clock_step_back(events: _NumberedEvents) -> _ClockStepBack | None:
    fall = events.time_drops()
    at = int(fall.argmax()) if fall.size else 0
    if not fall.size or fall[at] <= _MAX_CORRECTION_OF_RUNNING_CLOCK_NS:
        return None
    later = events.event_number >= events.event_number[at + 1]
    if later.all() or not _do_times_rise_with_numbers(events, ~later):
        return None
    return _ClockStepBack(
        int(events.row[~later].max()), int(events.row[later].min()), int(fall[at])
    )


def _numbered_events_by_group(columns: FileEventColumns) -> Iterator[_NumberedEvents]:
    for group, key in _EVENT_GROUPS_AND_NUMBER_COLUMNS:
        found = _numbered_events_of_group(columns, group, key)
        if found is not None:
            yield found


def _numbered_events_of_group(
    columns: FileEventColumns, group: str, key: str
) -> _NumberedEvents | None:
    found = columns.columns_by_group.get(group)
    if found is None:
        return None
    row = found["row"]
    start = columns.slices["start"][row]
    known = (found[key] > 0) & (start != NO_INT)
    row, number = row[known], found[key][known]
    thread, start = columns.slices["thread"][row], start[known]
    if _is_sorted_by_thread_and_number(thread, number):
        return _NumberedEvents(thread, number, start, row)
    order = np.lexsort((number, thread))
    return _NumberedEvents(thread[order], number[order], start[order], row[order])


def _is_sorted_by_thread_and_number(thread: NDArray[np.uint32], number: Ints) -> bool:
    """Returns whether events are sorted by thread, and within each thread by number."""
    same = thread[1:] == thread[:-1]
    return bool((np.where(same, number[1:] > number[:-1], thread[1:] > thread[:-1])).all())


def _do_times_rise_with_numbers(events: _NumberedEvents, is_selected: NDArray[np.bool_]) -> bool:
    """Returns whether the start times of selected events rise with the recorder's event numbers."""
    thread, number, start, row = events
    time_drops = _NumberedEvents(
        thread[is_selected], number[is_selected], start[is_selected], row[is_selected]
    ).time_drops()
    return not time_drops.size or bool((time_drops <= _MAX_CORRECTION_OF_RUNNING_CLOCK_NS).all())


def _shift_events_after_step_back(
    columns: FileEventColumns, first_row: int, step_back_ns: int
) -> None:
    start, duration = columns.slices["start"], columns.slices["duration"]
    known = start != NO_INT
    end = np.where(known, start + np.where(duration == NO_INT, 0, duration), NO_INT)
    before, after = slice(0, first_row), slice(first_row, None)
    first, last = int(start[before][known[before]].min()), int(end[before].max())
    shift = last + max(last - first, step_back_ns) - int(start[after][known[after]].min())
    start[after][known[after]] += shift
    for name in ("memory", "instants"):
        time = columns.columns_by_group.get(name, {}).get("time")
        if time is not None:
            place = _index_after_step_back(time, step_back_ns)
            time[place:][time[place:] != NO_INT] += shift
    place = _index_after_step_back(
        np.array([time for time, *_ in columns.counter_samples], np.int64), step_back_ns
    )
    columns.counter_samples[place:] = [
        _shift_time_of_counter_sample(sample, shift) for sample in columns.counter_samples[place:]
    ]


def _index_after_step_back(times: Ints, step_back_ns: int) -> int:
    """Returns the index of the first time after the clock's step back; the length if none is."""
    known = np.flatnonzero(times != NO_INT)
    time_drops = -np.diff(times[known])
    if not time_drops.size or 2 * time_drops.max() < step_back_ns:
        return int(times.size)
    return int(known[int(time_drops.argmax()) + 1])


def _shift_time_of_counter_sample(
    sample: tuple[int, Any, Any, Any, Any], shift_ns: int
) -> tuple[int, Any, Any, Any, Any]:
    time, *rest = sample
    thread, name, series, value = rest
    return (time if time == NO_INT else time + shift_ns), thread, name, series, value
