"""Measures the offset in ns between `time.perf_counter_ns` and the clock of trace times.

`time.perf_counter_ns` is the same in all processes of a machine. Times in traces are those of the
system clock, to which PyTorch converts its own.
"""

import time
from dataclasses import dataclass
from typing import Final

CLOCK_READING_COUNT: Final = 20
"""Number of times that both clocks are read; the pair of values closest in time is used."""

TORCH_CLOCK_CONVERSION_ERROR_NS: Final = 50_000
"""Assumed error of PyTorch's conversion of clock ticks to ns, in ns.

The error has not been measured separately.
"""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A value of `time.perf_counter_ns`, and the system clock's offset from it with its error."""

    counter_ns: int
    offset_ns: int
    """System clock minus `time.perf_counter_ns`, in ns."""
    error_ns: int
    """Largest error of the offset in ns: half the time that reading took plus the clock's
    resolution."""

    @classmethod
    def now(cls) -> "ClockReading":
        return min(
            (cls._read_clocks_once() for _ in range(CLOCK_READING_COUNT)),
            key=lambda reading: reading.error_ns,
        )

    @classmethod
    def _read_clocks_once(cls) -> "ClockReading":
        early = time.perf_counter_ns()
        system = time.time_ns()
        late = time.perf_counter_ns()
        resolution = int(time.get_clock_info("time").resolution * 1e9)
        return cls(early, system - (early + late) // 2, (late - early + 1) // 2 + resolution)


def combine_clock_readings(begin: ClockReading, end: ClockReading) -> ClockReading:
    """Returns the mean of two clock offsets, to be used for times between these two readings.

    A change of the offset between them adds to the error.
    """
    middle = (begin.offset_ns + end.offset_ns) // 2
    apart = abs(begin.offset_ns - end.offset_ns) // 2
    return ClockReading(
        begin.counter_ns,
        middle,
        apart + max(begin.error_ns, end.error_ns) + TORCH_CLOCK_CONVERSION_ERROR_NS,
    )
