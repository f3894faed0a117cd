"""A clock that went back in the middle of a recording: the times after it lie over those before.

The recorder numbers calls and operators as they begin, so on one thread a later number has a later
time. Where it has an earlier one, the clock was set back, or began anew. What stands in the file
from there on is another window: it is laid behind the first, with a hole between them, so that
nothing of the one is put within the other. How long the hole was is not known.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from selftime.arrays import Ints
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.event import NO_INT

_SLACK: Final = 1_000_000
"""Clocks are slewed by less than 1 ms at once; what goes back by more was set."""
_MOST: Final = 100
"""So many windows are told apart."""
_NUMBERED: Final = (("call", "correlation"), ("op", "external_id"))
"""Groups of events that the recorder numbers, and the number's column."""


class _Numbered(NamedTuple):
    """Events of a group with number and time, by thread and number."""

    thread: NDArray[np.uint32]
    number: Ints
    start: Ints
    row: Ints
    """Place among the file's slices."""

    def falls(self) -> Ints:
        """By how many ns each begins before the event of its thread that has the number before."""
        same = self.thread[1:] == self.thread[:-1]
        return np.where(same, self.start[:-1] - self.start[1:], 0)


def part_windows(columns: FileColumns) -> None:
    """Lay what follows each fall of the clock behind what precedes it."""
    for _ in range(_MOST):
        border = _border(columns)
        if border is None:
            return
        columns.faults["the clock went back: what follows is a window of its own, laid behind"] += 1
        _lay_behind(columns, *border)


def _border(columns: FileColumns) -> tuple[int, int] | None:
    """The first row of a later window, and by how many ns its clock lies back."""
    told = [_fall_in(events) for events in _groups(columns)]
    falls = [fall for fall in told if fall is not None]
    if not falls:
        return None
    last, first = max(fall.last for fall in falls), min(fall.first for fall in falls)
    if last >= first:
        return None  # the windows do not stand one after the other: nothing tells them apart
    back = max(fall.back for fall in falls)
    start = columns.slices["start"]
    between = start[last + 1 : first + 1]
    fallen = (between != NO_INT) & (between < start[last] - back // 2)
    return last + 1 + int(fallen.argmax()), back


class _Fall(NamedTuple):
    """Where the clock goes back among numbered events."""

    last: int
    """The last row before it."""
    first: int
    """The first row after it."""
    back: int
    """By how many ns."""


def _fall_in(events: _Numbered) -> _Fall | None:
    fall = events.falls()
    at = int(fall.argmax()) if fall.size else 0
    if not fall.size or fall[at] <= _SLACK:
        return None
    later = events.number >= events.number[at + 1]
    if later.all() or not _is_in_order(events, ~later):
        return None
    return _Fall(int(events.row[~later].max()), int(events.row[later].min()), int(fall[at]))


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
    """Whether the events are in order of thread and number as they stand, as is common."""
    same = thread[1:] == thread[:-1]
    return bool((np.where(same, number[1:] > number[:-1], thread[1:] > thread[:-1])).all())


def _is_in_order(events: _Numbered, those: NDArray[np.bool_]) -> bool:
    """Whether a window is in order by itself: else the numbers tell nothing of time."""
    thread, number, start, row = events
    falls = _Numbered(thread[those], number[those], start[those], row[those]).falls()
    return not falls.size or bool((falls <= _SLACK).all())


def _lay_behind(columns: FileColumns, row: int, fall: int) -> None:
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
            place = _fall_of(time, fall)
            time[place:][time[place:] != NO_INT] += shift
    place = _fall_of(np.array([time for time, *_ in columns.counters], np.int64), fall)
    columns.counters[place:] = [_later(sample, shift) for sample in columns.counters[place:]]


def _fall_of(time: Ints, fall: int) -> int:
    """Where the times of a table go back about as far; behind its end if they do not."""
    known = np.flatnonzero(time != NO_INT)
    falls = -np.diff(time[known])
    if not falls.size or 2 * falls.max() < fall:
        return int(time.size)
    return int(known[int(falls.argmax()) + 1])


def _later(sample: tuple[int, Any, Any, Any, Any], shift: int) -> tuple[int, Any, Any, Any, Any]:
    time, *rest = sample
    thread, name, series, value = rest
    return (time if time == NO_INT else time + shift), thread, name, series, value
