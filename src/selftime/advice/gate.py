"""The gate that a saving must pass to be reported: what is below it is noise or not worth a change.

A saving is worth a line if it is at least 2 % of the step, three times what the steps vary by, and
three times the error of the model that estimated it.
"""

from dataclasses import dataclass
from statistics import median
from typing import Final

from selftime.advice.base import Checked, Finding
from selftime.advice.step import step_times_ms
from selftime.trace import Trace

__all__ = ["Gate", "gate"]

LEAST_SHARE: Final = 0.02
"""The smallest share of a step that is worth a change of the program."""
TIMES_NOISE: Final = 3.0
"""A saving within this many deviations of the steps, or errors of the model, may be none."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a step takes, how steps vary, and the smallest saving worth a report."""

    step_ms: float
    noise_ms: float = 0.0
    """The median absolute deviation of the steps; 0 where a single step shows none."""

    def floor_ms(self, error_ms: float = 0.0) -> float:
        """The smallest saving to report where the estimate itself is off by `error_ms`."""
        noise = TIMES_NOISE * max(self.noise_ms, error_ms)
        return max(LEAST_SHARE * self.step_ms, noise)

    def passes(self, estimate_ms: float, *, error_ms: float = 0.0) -> bool:
        return estimate_ms > 0 and estimate_ms >= self.floor_ms(error_ms)

    def judge(self, finding: Finding, *, error_ms: float = 0.0) -> Finding | Checked:
        """The finding if it is worth a change, else what was checked and why it is not."""
        estimate = finding.saving.estimate_ms
        if estimate is None or self.passes(estimate, error_ms=error_ms):
            return finding
        upper = finding.saving.upper_ms
        return Checked(self.reason(finding.title, error_ms), estimate if upper is None else upper)

    def reason(self, title: str, error_ms: float = 0.0) -> str:
        """Why a saving below the floor is not reported, as the end of a sentence on `title`."""
        is_noise = self.floor_ms(error_ms) > LEAST_SHARE * self.step_ms
        limit = "the steps vary by more" if is_noise else f"below {LEAST_SHARE:.0%} of the step"
        return f"{title.rstrip('.')}: {limit}"


def gate(trace: Trace) -> Gate | None:
    """The gate of this trace; None if it has no step and no host time to measure by."""
    times = step_times_ms(trace)
    if not times:
        return None
    typical = median(times)
    return Gate(typical, median(abs(time - typical) for time in times))
