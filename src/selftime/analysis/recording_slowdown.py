"""How much longer the recorded steps took than unrecorded steps around them."""

from dataclasses import dataclass
from math import isfinite
from statistics import fmean, median
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
    of_most_steps: float | None = None
    """Median of the recorded steps' times, divided by that of the unrecorded ones, or this ratio of
    their means if it is less; None if it was not measured.

    Where short and long steps alternate, as in a loop that waits for slow workers, a few steps have
    another median than a few others, and nearly the same mean.
    """

    @property
    def has_other_cause(self) -> bool:
        """Returns whether something else than the recorder made the recorded steps much longer.

        Such as other programs that took the cores while they were recorded.
        """
        return self.of_most_steps is not None and self.of_most_steps > max(
            MAX_ACCEPTABLE_SLOWDOWN, self.of_shorter_steps
        )

    @property
    def of_typical_step(self) -> float:
        """Returns the ratio by which a typical recorded step is longer than an unrecorded one."""
        if self.has_other_cause and self.of_most_steps is not None:
            return self.of_most_steps
        return self.of_shorter_steps


def recording_slowdown(trace: Trace) -> RecordingSlowdown | None:
    """Returns how much longer a trace's recorded steps took; None if that was not measured."""
    overhead = trace.facts.get("overhead")
    if not isinstance(overhead, dict):
        return None
    ratio = _number(overhead, "ratio")
    return None if ratio is None else RecordingSlowdown(ratio, _ratio_of_most_steps(trace))


def unrecorded_step_times(trace: Trace) -> list[int]:
    """Returns the durations in ns of the unrecorded steps around the recorded ones, if known."""
    return _step_times(trace, "unprofiled_ns")


def _step_times(trace: Trace, key: str) -> list[int]:
    facts = trace.facts.get("steps")
    told = facts.get(key) if isinstance(facts, dict) else None
    return [ns for ns in told if type(ns) is int and ns > 0] if isinstance(told, list) else []


def _ratio_of_most_steps(trace: Trace) -> float | None:
    recorded, unrecorded = _step_times(trace, "profiled_ns"), unrecorded_step_times(trace)
    if not recorded or not unrecorded:
        return None
    return min(median(recorded) / median(unrecorded), fmean(recorded) / fmean(unrecorded))


def _number(facts: dict[str, Any], key: str) -> float | None:
    value = facts.get(key)
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
