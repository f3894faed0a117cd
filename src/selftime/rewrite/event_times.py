"""Convert the times in a file's text to times of the trace, and back.

Loading normalises the unit of a file's times, and shifts windows apart where the clock went back.
The slices, whose times are known in both, show the conversion of the events around them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw

from selftime.arrays import Flags, Ints
from selftime.ingest.events.event import NO_INT
from selftime.ingest.text.trace_in_file import EventFields

_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


_PER_US = 1_000
_CLEARLY = 100
"""A file's times advance this much faster than the trace's only if they are in nanoseconds."""


def with_values(event: bytes, values: Mapping[str, Any]) -> bytes:
    """Returns the event with these values set, adding keys that it did not have.

    >>> with_values(b'{"ts": 1.50, "tid": 7}', {"tid": 9})
    b'{"ts":1.50,"tid":9}'
    """
    return msgspec.json.encode({**_OBJECT.decode(event), **values})


def microseconds(nanoseconds: int) -> Raw:
    """Returns a time in ns as an exact number of microseconds, as Kineto writes it.

    >>> bytes(microseconds(1_500)), bytes(microseconds(-1))
    (b'1.500', b'-0.001')
    """
    whole, part = divmod(abs(nanoseconds), 1000)
    return Raw(b"%b%d.%03d" % (b"-" if nanoseconds < 0 else b"", whole, part))


class FileClock:
    """Converts a file's times, from its start to its end."""

    def __init__(self, zero: int) -> None:
        self._shift = -zero
        self._unit = 0

    def instants(self, marks: EventFields, at: Ints, start: Ints, timed: Flags) -> Ints:
        """Returns the time of each event, in ns since the trace's origin.

        Args:
            marks: The fields of a text's events.
            at: Indices of events that are slices by themselves.
            start: Their starts in the trace, in ns.
            timed: Which of these starts are known.
        """
        known = timed & (marks.time[at] != NO_INT)
        at, start = at[known], start[known]
        self._settle(marks.time[at], start)
        times = marks.time // max(self._unit, 1)
        shifts = np.full(times.size, self._shift, np.int64)
        if at.size:
            shift = start - times[at]
            last = np.searchsorted(at, np.arange(times.size), side="right") - 1
            shifts = np.where(last < 0, self._shift, shift[np.maximum(last, 0)])
            self._shift = int(shift[-1])
        return np.where(marks.time == NO_INT, NO_INT, times + shifts)

    def _settle(self, written: Ints, start: Ints) -> None:
        """Detect whether the file's times are in nanoseconds instead of microseconds."""
        if self._unit or written.size < 2:
            return
        low, high = int(written.argmin()), int(written.argmax())
        passed = int(start[high] - start[low])
        if passed > 0:
            faster = (int(written[high]) - int(written[low])) / passed > _CLEARLY
            self._unit = _PER_US if faster else 1

    def text(self, marks: EventFields, at: int, moved: int) -> Raw:
        """Returns an event's time as its file writes it, shifted by `moved` ns."""
        time = int(marks.time[at]) + moved * max(self._unit, 1)
        return Raw(b"%d" % time) if marks.in_nanoseconds[at] else microseconds(time)

    def length(self, nanoseconds: int, *, whole: bool) -> Raw:
        """Returns a duration as the file writes it; `whole` if it is in integer nanoseconds."""
        length = nanoseconds * max(self._unit, 1)
        return Raw(b"%d" % length) if whole else microseconds(length)
