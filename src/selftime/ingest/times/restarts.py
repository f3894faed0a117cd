"""Separate windows of a recording whose clock went back.

The recorder numbers calls and operators as they begin, so on one thread a higher number has a later
time. Where it has an earlier one, the clock was set back or restarted. The events from there on in
the file form another window: it is shifted behind the first, with a gap between them, so that no
slice is nested in the wrong window. The length of the real gap is unknown.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selftime.arrays import Ints
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.event import NO_INT

_SLACK: Final = 1_000_000
"""ns: clock corrections are below 1 ms at once; a larger step back means the clock was set."""
_MOST: Final = 100
"""The most windows that are separated."""
_NUMBERED: Final = (("call", "correlation"), ("op", "external_id"))
"""Groups of events that the recorder numbers, and the column of the number."""


class _Numbered(NamedTuple):
    """Numbered events of a group, sorted by thread and number."""

    thread: NDArray[np.uint32]
    number: Ints
    start: Ints
    row: Ints
    """Row among the file's slices."""

    def falls(self) -> Ints:
        """Returns by how many ns each event begins before its thread's previous number."""
        same = self.thread[1:] == self.thread[:-1]
        return np.where(same, self.start[:-1] - self.start[1:], 0)


def separate_windows(columns: FileColumns) -> None:
    """Shift each window after a step back of the clock behind the window before it."""
    for _ in range(_MOST):
        border = _window_border(columns)
        if border is None:
            return
        columns.faults["the clock went back: what follows is a window of its own, laid behind"] += 1
        _shift_window(columns, *border)


def _window_border(columns: FileColumns) -> tuple[int, int] | None:
    """Returns the first row of a later window, and its clock's step back in ns."""
    steps = [_step_back_in(events) for events in _groups(columns)]
    falls = [fall for fall in steps if fall is not None]
    if not falls:
        return None
    last, first = max(fall.last for fall in falls), min(fall.first for fall in falls)
    if last >= first:
        return None  # the windows are interleaved in the file and cannot be separated
    back = max(fall.back for fall in falls)
    start = columns.slices["start"]
    between = start[last + 1 : first + 1]
    fallen = (between != NO_INT) & (between < start[last] - back // 2)
    return last + 1 + int(fallen.argmax()), back


class _StepBack(NamedTuple):
    """A step back of the clock among numbered events."""

    last: int
    """The last row before it."""
    first: int
    """The first row after it."""
    back: int
    """The size of the step in ns."""


def _step_back_in(events: _Numbered) -> _StepBack | None:
    fall = events.falls()
    at = int(fall.argmax()) if fall.size else 0
    if not fall.size or fall[at] <= _SLACK:
        return None
    later = events.number >= events.number[at + 1]
    if later.all() or not _is_in_order(events, ~later):
        return None
    return _StepBack(int(events.row[~later].max()), int(events.row[later].min()), int(fall[at]))


def _groups(columns: FileColumns) -> Iterator[_Numbered]:
    for group, key in _NUMBERED:
        found = _numbered(columns, group, key)
        if found is not None:
            yield found


def _numbered(columns: FileColumns, group: str, key: str) -> _Numbered | None:
    found = columns.groups.get(group)
    if found is None:
        return None
    row = found["row"]
    start = columns.slices["start"][row]
    known = (found[key] > 0) & (start != NO_INT)
    row, number = row[known], found[key][known]
    thread, start = columns.slices["thread"][row], start[known]
    if _is_rising(thread, number):
        return _Numbered(thread, number, start, row)
    order = np.lexsort((number, thread))
    return _Numbered(thread[order], number[order], start[order], row[order])


def _is_rising(thread: NDArray[np.uint32], number: Ints) -> bool:
    """Returns whether the events are already sorted by thread and number, as is common."""
    same = thread[1:] == thread[:-1]
    return bool((np.where(same, number[1:] > number[:-1], thread[1:] > thread[:-1])).all())


def _is_in_order(events: _Numbered, selected: NDArray[np.bool_]) -> bool:
    """Returns whether a window's times rise with its numbers, so that numbers show time."""
    thread, number, start, row = events
    falls = _Numbered(thread[selected], number[selected], start[selected], row[selected]).falls()
    return not falls.size or bool((falls <= _SLACK).all())


def _shift_window(columns: FileColumns, row: int, fall: int) -> None:
    start, duration = columns.slices["start"], columns.slices["duration"]
    known = start != NO_INT
    end = np.where(known, start + np.where(duration == NO_INT, 0, duration), NO_INT)
    before, after = slice(0, row), slice(row, None)
    first, last = int(start[before][known[before]].min()), int(end[before].max())
    shift = last + max(last - first, fall) - int(start[after][known[after]].min())
    start[after][known[after]] += shift
    for name in ("memory", "instants"):
        time = columns.groups.get(name, {}).get("time")
        if time is not None:
            place = _index_of_step_back(time, fall)
            time[place:][time[place:] != NO_INT] += shift
    place = _index_of_step_back(np.array([time for time, *_ in columns.counters], np.int64), fall)
    columns.counters[place:] = [_shifted(sample, shift) for sample in columns.counters[place:]]


def _index_of_step_back(time: Ints, fall: int) -> int:
    """Returns the index where a table's times step back by about `fall`; its length if nowhere."""
    known = np.flatnonzero(time != NO_INT)
    falls = -np.diff(time[known])
    if not falls.size or 2 * falls.max() < fall:
        return int(time.size)
    return int(known[int(falls.argmax()) + 1])


def _shifted(sample: tuple[int, Any, Any, Any, Any], shift: int) -> tuple[int, Any, Any, Any, Any]:
    time, *rest = sample
    thread, name, series, value = rest
    return (time if time == NO_INT else time + shift), thread, name, series, value
