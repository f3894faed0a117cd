"""Converts the times in a trace file's text to ns since the trace's origin, and back.

Loading normalises the unit of a file's times, and shifts windows apart where the clock went back.
The slices, whose times are known in both, show the conversion of the events around them.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Raw

from selftime.array_types import Flags, Ints
from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.text.event_positions import IdentifyingEventFields

_OBJECT_DECODER: Final = msgspec.json.Decoder(dict[str, Raw])


_NS_PER_MICROSECOND = 1_000
_MIN_TIME_RATIO_OF_NANOSECOND_FILE = 100
"""If file times, read as us, advance over 100 times as fast as the trace's times, they are in
ns."""


def event_with_values(event_json: bytes, values: Mapping[str, Any]) -> bytes:
    """Returns the JSON of an event with `values` set; new keys are added.

    >>> event_with_values(b'{"ts": 1.50, "tid": 7}', {"tid": 9})
    b'{"ts":1.50,"tid":9}'
    """
    return msgspec.json.encode({**_OBJECT_DECODER.decode(event_json), **values})


def microseconds_json(nanoseconds: int) -> Raw:
    """Returns the JSON of a time in ns as a decimal number of microseconds, as Kineto writes it.

    >>> bytes(microseconds_json(1_500)), bytes(microseconds_json(-1))
    (b'1.500', b'-0.001')
    """
    whole, part = divmod(abs(nanoseconds), 1000)
    return Raw(b"%b%d.%03d" % (b"-" if nanoseconds < 0 else b"", whole, part))


class TraceFileClock:
    """Converts the times of events, given in file order, to ns since the trace's origin."""

    def __init__(self, zero: int) -> None:
        self._shift = -zero
        self._unit = 0

    def event_times(
        self,
        fields: IdentifyingEventFields,
        slice_events: Ints,
        slice_starts: Ints,
        is_timed: Flags,
    ) -> Ints:
        """Returns the time of each event, in ns since the trace's origin.

        Args:
            fields: The fields of a text's events.
            slice_events: Indices of events that are slices by themselves.
            slice_starts: Their starts in the trace, in ns.
            is_timed: Which of these starts are known.
        """
        known = is_timed & (fields.time_ns[slice_events] != NO_INT)
        slice_events, slice_starts = slice_events[known], slice_starts[known]
        self._detect_unit_of_file_times(fields.time_ns[slice_events], slice_starts)
        times = fields.time_ns // max(self._unit, 1)
        shifts = np.full(times.size, self._shift, np.int64)
        if slice_events.size:
            shift = slice_starts - times[slice_events]
            last = np.searchsorted(slice_events, np.arange(times.size), side="right") - 1
            shifts = np.where(last < 0, self._shift, shift[np.maximum(last, 0)])
            self._shift = int(shift[-1])
        return np.where(fields.time_ns == NO_INT, NO_INT, times + shifts)

    def _detect_unit_of_file_times(self, file_times: Ints, trace_times: Ints) -> None:
        """Detects from events with known times whether the file's times are in ns or in us."""
        if self._unit or file_times.size < 2:
            return
        low, high = int(file_times.argmin()), int(file_times.argmax())
        passed = int(trace_times[high] - trace_times[low])
        if passed > 0:
            faster = (
                int(file_times[high]) - int(file_times[low])
            ) / passed > _MIN_TIME_RATIO_OF_NANOSECOND_FILE
            self._unit = _NS_PER_MICROSECOND if faster else 1

    def time_json(self, fields: IdentifyingEventFields, event_index: int, shift_ns: int) -> Raw:
        """Returns JSON of an event's time plus `shift_ns`, in the unit that the file uses."""
        time = int(fields.time_ns[event_index]) + shift_ns * max(self._unit, 1)
        return (
            Raw(b"%d" % time) if fields.is_written_in_ns[event_index] else microseconds_json(time)
        )

    def duration_json(self, nanoseconds: int, *, is_integer: bool) -> Raw:
        """Returns JSON of a duration given in ns, in the unit that the file uses."""
        length = nanoseconds * max(self._unit, 1)
        return Raw(b"%d" % length) if is_integer else microseconds_json(length)
