"""Stores the segments of a run (setup, each step, end) as columns of numbers."""

from array import array
from collections import deque
from typing import Any, Final

from selftime.ledger_format import MIN_SLOW_STEP_EXCESS_NS, MIN_SLOW_STEP_TIME_FACTOR


class SegmentColumns:
    """Segments of a run not yet written: start, duration (ns), kind and times by activity."""

    def __init__(self) -> None:
        self.start = array("q")
        self.duration = array("q")
        self.kind = array("i")
        self.counted: dict[str, list[tuple[int, int]]] = {}
        """Maps each activity to pairs (row, time in ns) of the segments in which its time is not
        0."""

    def __len__(self) -> int:
        return len(self.start)

    def append(self, start: int, duration: int, kind: int, counted: dict[str, int]) -> None:
        """Adds a segment; `counted` holds {activity: time in ns} for times that are not 0."""
        if counted:
            row = len(self.start)
            for name, value in counted.items():
                self.counted.setdefault(name, []).append((row, value))
        self.start.append(start)
        self.duration.append(duration)
        self.kind.append(kind)

    def as_json(self) -> dict[str, Any]:
        """Returns {column name: list of values}, without columns in which all values are 0."""
        columns = {"start": self.start, "duration": self.duration, "kind": self.kind}
        told = {name: column.tolist() for name, column in columns.items()}
        for name, values in self.counted.items():
            column = array("q", bytes(8 * len(self)))
            for row, value in values:
                column[row] = value
            told[name] = column.tolist()
        return told


RECENT_STEPS: Final = 64
"""Number of recent steps whose median is taken as the usual step duration."""

FIRST_STEPS: Final = 5
"""Number of first steps during which stacks are sampled from the step's start, since the usual
duration is unknown."""

_STEPS_BETWEEN_MEDIANS: Final = 8
"""Number of steps between computations of the median, to keep the cost of a step low."""


MIN_PAUSE_WITHOUT_MEDIAN_NS: Final = 1_000_000_000
"""Shortest time in ns since the last step that counts as long if no usual step is known."""


class SlowStepLimit:
    """Keeps the durations of recent usual steps; a step much longer than their median is slow."""

    def __init__(self) -> None:
        self.read_after_ns = 0
        """Time in ns after the start of a step before which its stack is not sampled."""
        self._steps = 0
        self._recent: deque[int] = deque(maxlen=RECENT_STEPS)
        """Duration in ns of recent usual steps."""

    @property
    def median_ns(self) -> int | None:
        """Returns the median duration in ns of recent usual steps; None before the first."""
        return sorted(self._recent)[len(self._recent) // 2] if self._recent else None

    @property
    def slow_after_ns(self) -> int:
        """Returns the duration in ns from which on a step is much longer than usual steps."""
        median = self.median_ns
        if median is None:
            return MIN_PAUSE_WITHOUT_MEDIAN_NS
        return max(int(median * MIN_SLOW_STEP_TIME_FACTOR), median + MIN_SLOW_STEP_EXCESS_NS)

    def end_step(self, usual_duration: int | None) -> None:
        """Notes the duration of a step in ns; None if it was recorded, or of an unusual kind."""
        self._steps += 1
        if usual_duration is not None:
            self._recent.append(usual_duration)
        if self._steps <= FIRST_STEPS or not self._recent:
            self.read_after_ns = 0
        elif self._steps % _STEPS_BETWEEN_MEDIANS == 0 or self.read_after_ns == 0:
            self.read_after_ns = self.slow_after_ns
