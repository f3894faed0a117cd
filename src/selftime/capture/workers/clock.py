"""How the clock that all processes share relates to the trace's axis.

`time.perf_counter_ns` counts alike in all processes of a machine. A trace's times are those of the
system's clock, to which PyTorch converts its own.
"""

import time
from dataclasses import dataclass
from typing import Final

ATTEMPTS: Final = 20
"""Readings of both clocks, of which the closest counts: one may be interrupted."""

TORCH_NS: Final = 50_000
"""An allowance for PyTorch's own conversion, which fits a line through pairs of readings.

What it is off by was not measured apart.
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """Both clocks at one instant."""

    counter: int
    offset: int
    """The system's clock without the counter, in ns."""
    error: int
    """Half the time between the readings, and the resolution of the clock."""

    @classmethod
    def now(cls) -> "Reading":
        return min((cls._once() for _ in range(ATTEMPTS)), key=lambda reading: reading.error)

    @classmethod
    def _once(cls) -> "Reading":
        early = time.perf_counter_ns()
        system = time.time_ns()
        late = time.perf_counter_ns()
        resolution = int(time.get_clock_info("time").resolution * 1e9)
        return cls(early, system - (early + late) // 2, (late - early + 1) // 2 + resolution)


def between(begin: Reading, end: Reading) -> Reading:
    """For the time between two readings: what the system's clock was corrected by is an error."""
    middle = (begin.offset + end.offset) // 2
    apart = abs(begin.offset - end.offset) // 2
    return Reading(begin.counter, middle, apart + max(begin.error, end.error) + TORCH_NS)
