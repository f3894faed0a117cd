"""Sums stack samples of the current segment by activity, until the segment ends."""

from collections import deque
from time import perf_counter_ns
from typing import Any, Final

from selftime.capture.ledger.stacks import Activity

MAX_ACTIVITIES: Final = 10_000
"""Largest number of distinct activities in one ledger: samples of further ones are dropped."""


class StackReadings:
    """What stack samples tell of one segment after the other: how long which activity took."""

    def __init__(self) -> None:
        self._activities: dict[Activity, int] = {}
        """The number of each activity that the ledger names."""
        self._summed: dict[int, list[int]] = {}
        """[time in ns, number of samples] by number of the activity, of the current segment."""
        self._first: deque[tuple[int, int, int]] = deque(maxlen=MAX_ACTIVITIES)
        """Time in ns, activity and duration in ns of each sample before the first step: that step
        may turn out to have begun earlier."""

    def add(
        self, activity: Activity, duration: int, *, is_before_first_step: bool
    ) -> dict[str, Any] | None:
        """Adds a sample that stands for `duration` ns of the current segment.

        Returns:
            The ledger's line that gives the activity its number, the first time; else None.
        """
        number, line = self._activities.get(activity), None
        if number is None:
            if len(self._activities) >= MAX_ACTIVITIES:
                return None
            number = self._activities[activity] = len(self._activities)
            line = {"activity": number, **_known_fields(activity)}
        summed = self._summed.setdefault(number, [0, 0])
        summed[0] += duration
        summed[1] += 1
        if is_before_first_step:
            self._first.append((perf_counter_ns(), number, duration))
        return line

    def take(self) -> list[list[int]]:
        """Returns [activity, time in ns, number of samples] of the segment that ends."""
        summed, self._summed = self._summed, {}
        return [[number, *known] for number, known in summed.items()]

    def take_before(self, at: int) -> list[list[int]]:
        """Returns what `take` does for samples before an instant, in ns; the others stay.

        Only of the segment before the first step.
        """
        later: dict[int, list[int]] = {}
        for read_ns, number, duration in self._first:
            if read_ns - duration // 2 > at:
                taken, known = later.setdefault(number, [0, 0]), self._summed[number]
                taken[:] = taken[0] + duration, taken[1] + 1
                known[:] = known[0] - duration, known[1] - 1
        self._first.clear()
        before = [[number, *known] for number, known in self._summed.items() if known[1]]
        self._summed = later
        return before


def _known_fields(activity: Activity) -> dict[str, Any]:
    told: dict[str, Any] = {"part": activity.part, "what": activity.what, "file": activity.file}
    told |= {"line": activity.line, "function": activity.function}
    return {key: value for key, value in told.items() if value}
