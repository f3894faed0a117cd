"""How much longer the recorded steps took than unrecorded steps around them."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from selftime.trace import Trace

MAX_ACCEPTABLE_SLOWDOWN: Final = 1.5
"""Largest factor by which the steps of a good recording may be longer than unrecorded ones."""


@dataclass(frozen=True, slots=True)
class RecordingSlowdown:
    """Times of recorded steps as multiples of those of unrecorded ones, as the recorder measured.

    Pauses and other load only make steps longer, so the shorter steps differ by the recorder alone.
    """

    of_shorter_steps: float
    """Lower quartile of the recorded steps' times, divided by that of the unrecorded ones."""
    of_medians: float | None = None
    """Median of the recorded steps' times, divided by that of the unrecorded ones; None if it was
    not measured."""

    @property
    def has_other_cause(self) -> bool:
        """Returns whether something else than the recorder made the recorded steps much longer.

        Such as other programs that took the cores while they were recorded.
        """
        return self.of_medians is not None and self.of_medians > max(
            MAX_ACCEPTABLE_SLOWDOWN, self.of_shorter_steps
        )

    @property
    def of_typical_step(self) -> float:
        """Returns the ratio by which a typical recorded step is longer than an unrecorded one."""
        if self.has_other_cause and self.of_medians is not None:
            return self.of_medians
        return self.of_shorter_steps


def recording_slowdown(trace: Trace) -> RecordingSlowdown | None:
    """Returns how much longer a trace's recorded steps took; None if that was not measured."""
    overhead = trace.facts.get("overhead")
    if not isinstance(overhead, dict):
        return None
    ratio = _number(overhead, "ratio")
    recorded, unrecorded = (
        _number(overhead, "profiled_median_ns"),
        _number(overhead, "unprofiled_median_ns"),
    )
    if ratio is None:
        return None
    return RecordingSlowdown(ratio, recorded / unrecorded if recorded and unrecorded else None)


def _number(facts: dict[str, Any], key: str) -> float | None:
    value = facts.get(key)
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
