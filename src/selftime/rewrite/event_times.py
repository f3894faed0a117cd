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


MAX_TIME_WITH_TENTHS_NS: Final = 1000 << 39
"""Time in ns below which a double of microseconds tells tenths of nanoseconds apart."""
_NS_PER_DAY: Final = 86_400 * 10**9
BASE_TIME_KEY: Final = "baseTimeNanoseconds"
"""Top-level key of the Unix time in ns at which a file's times are 0."""
ADDED_BASE_TIME_KEY: Final = "selftime_clock"
"""Top-level key which says that the recorder did not write `baseTimeNanoseconds`."""
ADDED_BASE_TIME_JSON: Final = b'{"format":"selftime.clock/1","base_added":true}'


def base_time_of_written_file(origin_ns: int) -> int:
    """Returns the Unix time in ns from which a written trace counts: the begin of the UTC day.

    Viewers hold a time as a double of microseconds. Since the epoch, doubles are 0.25 us apart, so
    that slices that touch would overlap; within some days they are exact to the nanosecond. Traces
    of one job that begin on one day have one base, as those of the recorder do.

    >>> base_time_of_written_file(1_712_195_495_520_824_518)
    1712188800000000000
    """
    return origin_ns // _NS_PER_DAY * _NS_PER_DAY


def event_with_values(event_json: bytes, values: Mapping[str, Any]) -> bytes:
    """Returns the JSON of an event with `values` set; new keys are added.

    >>> event_with_values(b'{"ts": 1.50, "tid": 7}', {"tid": 9})
    b'{"ts":1.50,"tid":9}'
    """
    return msgspec.json.encode({**_OBJECT_DECODER.decode(event_json), **values})


def microseconds_json(nanoseconds: int) -> Raw:
    """Returns the JSON of a time in ns as a decimal number of microseconds, as Kineto writes it.

    A fourth decimal stands where a viewer that multiplies by 1,000 and drops the rest, as Perfetto
    does, would show a nanosecond less. It is a tenth of a nanosecond: rounding removes it.

    >>> [bytes(microseconds_json(time)) for time in (1_500, -1, 1_001)]
    [b'1.500', b'-0.001', b'1.0011']
    """
    magnitude = abs(nanoseconds)
    whole, part = divmod(magnitude, 1000)
    extra = b"1" if is_shown_short(magnitude) else b""
    return Raw(b"%b%d.%03d%b" % (b"-" if nanoseconds < 0 else b"", whole, part, extra))


def is_shown_short(nanoseconds: int) -> bool:
    """Returns whether a double of three decimals of a microsecond, times 1,000, is a ns less."""
    return nanoseconds < MAX_TIME_WITH_TENTHS_NS and int(nanoseconds / 1000 * 1000) < nanoseconds


class TraceFileClock:
    """Converts the times of events, given in file order, to ns since the trace's origin.

    What it writes counts from `base_time_of_written_file`, where the file's times are microseconds
    and their date is known.

    Args:
        file_origin: The time on the file's clock, in ns, that is time 0 of the trace.
        origin: The Unix time in ns of the trace's origin; None if it is unknown.
    """

    def __init__(self, file_origin: int, origin: int | None) -> None:
        self._shift = -file_origin
        self._unit = 0
        self._file_origin = file_origin
        self._rebasing_ns = (
            None if origin is None else origin - base_time_of_written_file(origin) - file_origin
        )

    @property
    def writes_base_time(self) -> bool:
        """Whether what is written counts from `base_time_of_written_file`."""
        return self._rebasing_ns is not None and self._unit <= 1

    def rebased_time(self, fields: IdentifyingEventFields, event_index: int) -> Raw | None:
        """Returns JSON of an event's time as it is written; None if it stays as it is."""
        time = int(fields.time_ns[event_index])
        if not self.writes_base_time or time == NO_INT or fields.is_written_in_ns[event_index]:
            return None
        if time < self._file_origin - _NS_PER_DAY:  # no time of this recording, such as 0
            return Raw(b"null")
        return microseconds_json(time + (self._rebasing_ns or 0))

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
        if fields.is_written_in_ns[event_index]:
            return Raw(b"%d" % time)
        rebasing_ns = self._rebasing_ns if self.writes_base_time else None
        return microseconds_json(time + (rebasing_ns or 0))

    def duration_json(self, nanoseconds: int, *, is_integer: bool) -> Raw:
        """Returns JSON of a duration given in ns, in the unit that the file uses."""
        length = nanoseconds * max(self._unit, 1)
        return Raw(b"%d" % length) if is_integer else microseconds_json(length)
