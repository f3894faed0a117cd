"""What the times in a file's text are as instants of the trace.

Reading settles the unit of a file's times, and lays behind each other what a clock that went back
had laid over each other. The slices tell what became of the times around them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw

from selftime.arrays import Flags, Ints
from selftime.ingest.events.event import NO_INT
from selftime.ingest.text.placed import Marks

_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


_PER_US = 1_000
_CLEARLY = 100
"""A file's times run this much faster than the trace's only if their unit is the nanosecond."""


def with_values(event: bytes, values: Mapping[str, Any]) -> bytes:
    """The event with these values of its keys, which it may not have had.

    >>> with_values(b'{"ts": 1.50, "tid": 7}', {"tid": 9})
    b'{"ts":1.50,"tid":9}'
    """
    return msgspec.json.encode({**_OBJECT.decode(event), **values})


def microseconds(nanoseconds: int) -> Raw:
    """A time as Kineto writes it, exactly.

    >>> bytes(microseconds(1_500)), bytes(microseconds(-1))
    (b'1.500', b'-0.001')
    """
    whole, part = divmod(abs(nanoseconds), 1000)
    return Raw(b"%b%d.%03d" % (b"-" if nanoseconds < 0 else b"", whole, part))


class FileClock:
    """Follows a file's times from its begin to its end."""

    def __init__(self, zero: int) -> None:
        self._shift = -zero
        self._unit = 0

    def instants(self, marks: Marks, at: Ints, start: Ints, timed: Flags) -> Ints:
        """When each event is, in ns from the trace's origin.

        Args:
            marks: The events of a text.
            at: Which of them are slices by themselves.
            start: When those began in the trace.
            timed: For which of those that is known.
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
        """Whether the file's times are a thousand of what they look like."""
        if self._unit or written.size < 2:
            return
        low, high = int(written.argmin()), int(written.argmax())
        passed = int(start[high] - start[low])
        if passed > 0:
            faster = (int(written[high]) - int(written[low])) / passed > _CLEARLY
            self._unit = _PER_US if faster else 1

    def text(self, marks: Marks, at: int, moved: int) -> Raw:
        """An event's time as its file writes it, so many ns later."""
        time = int(marks.time[at]) + moved * max(self._unit, 1)
        return Raw(b"%d" % time) if marks.in_nanoseconds[at] else microseconds(time)

    def length(self, nanoseconds: int, *, whole: bool) -> Raw:
        """A duration as the file writes it; `whole` where times are integer nanoseconds."""
        length = nanoseconds * max(self._unit, 1)
        return Raw(b"%d" % length) if whole else microseconds(length)
