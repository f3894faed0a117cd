"""Keeps at which lines the program was at random instants of its usual steps."""

import random
from array import array
from time import perf_counter_ns
from typing import Any, Final

from selftime.capture.ledger.stacks import Activity, StackReadings

_MEAN_PAUSES_S: Final = ((400, 0.05), (4_000, 0.25))
"""Pairs (number of samples, mean pause in s before each of the first so many): a short run gets
enough samples to tell its lines apart, and a long one costs little."""

_LAST_MEAN_PAUSE_S: Final = 1.0
"""Mean pause in s before each further sample."""


class StepSamples:
    """Samples not yet written, and the instant of the next one.

    Pauses are random, so that samples do not keep time with the steps.
    """

    def __init__(self, now: int) -> None:
        self.random = random.Random()  # noqa: S311 - of its own: the program's stays as it is
        self._count = 0
        self._at = array("q")
        self._activity = array("i")
        self.next_at = now
        """When to take the next sample, in ns of `time.perf_counter_ns`."""
        self.plan_next(now)

    def plan_next(self, now: int) -> None:
        """Sets the instant of the next sample: half to one and a half mean pauses from now."""
        mean_s = next((s for most, s in _MEAN_PAUSES_S if self._count < most), _LAST_MEAN_PAUSE_S)
        self.next_at = now + int(mean_s * 1e9 * self.random.uniform(0.5, 1.5))

    def add(self, readings: StackReadings, activity: Activity) -> list[dict[str, Any]]:
        """Adds a sample that was taken now; returns the ledger's line on a new activity, if any."""
        number, line = readings.number(activity)
        if number is not None:
            self._count += 1
            self._at.append(perf_counter_ns())
            self._activity.append(number)
        return [] if line is None else [line]

    def take(self) -> list[dict[str, Any]]:
        """Returns the ledger's line with the samples since the last call; none without any."""
        at, self._at = self._at, array("q")
        activity, self._activity = self._activity, array("i")
        if not at:
            return []
        return [{"samples": {"at": at.tolist(), "activity": activity.tolist()}}]
