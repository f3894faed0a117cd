"""The gate that a saving must pass to be reported, and the terms in which it is reported.

A saving is worth a line if it is at least 2 % of the step, and more than what the steps and the
model's error leave open. What is large though the steps vary by as much is reported with low
confidence. Savings are what the program gains when nobody records it: a recording that slowed the
steps makes its costs look larger by as much.
"""

from dataclasses import dataclass, replace
from math import isfinite
from statistics import fmean, median
from typing import Final

from selftime.advice.base import Checked, Evidence, Finding, Saving
from selftime.advice.replay import Cut
from selftime.advice.step import step_times_ms
from selftime.analysis.cached import cached_per_trace
from selftime.trace import Trace

LEAST_SHARE: Final = 0.02
"""The smallest share of a step that is worth a change of the program."""
TIMES_NOISE: Final = 3.0
"""A saving within this many deviations of the steps, or errors of the model, may be none."""
LARGE_SHARE: Final = 0.1
"""A saving of this share of the step is told even if the steps vary by more, as uncertain."""
INFLATED: Final = 1.3
"""Host time of a recorded step against one that is not, where nobody measured it: as was measured
elsewhere, on small networks."""
INFLATED_BY_STACKS: Final = 1.7
"""The same for a recording with Python stacks."""
SLOWED: Final = 1.5
"""A recording that slowed the steps beyond this factor leaves no finding highly certain."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a step takes, how steps vary, and the smallest saving worth a report."""

    step_ms: float
    """The median of the steps that count, as recorded."""
    noise_ms: float = 0.0
    """The median absolute deviation of the steps; 0 where a single step shows none."""
    mean_ms: float | None = None
    """The mean of the same steps: what averages over them belong to."""
    slowed: float = 1.0
    """Time of a recorded step against one that was not recorded; 1 where that is not known."""
    inflated: float = 1.0
    """By how much the recorder may have slowed the host beyond that."""

    @property
    def unrecorded_ms(self) -> float:
        """The typical step, if nobody records it."""
        return self.unrecorded(self.step_ms)

    def typical(self, average_ms: float) -> float:
        """A time that is an average over the steps, in the typical step."""
        return average_ms * self.step_ms / self.mean_ms if self.mean_ms else average_ms

    def floor_ms(self, error_ms: float = 0.0) -> float:
        """The smallest saving to report where the estimate itself is off by `error_ms`.

        What noise may be is left out, but a large saving is told all the same.
        """
        noise = min(TIMES_NOISE * max(self.noise_ms, error_ms), LARGE_SHARE * self.step_ms)
        return max(LEAST_SHARE * self.step_ms, noise)

    def of_cause(self, noise_ms: float) -> "Gate":
        """The gate for a cause whose own cost is seen to vary so: what else varies is not its."""
        return replace(self, noise_ms=noise_ms)

    def passes(self, estimate_ms: float, *, error_ms: float = 0.0) -> bool:
        return estimate_ms > 0 and estimate_ms >= self.floor_ms(error_ms)

    def is_worth(self, unrecorded_ms: float) -> bool:
        """Whether so much of a step that nobody records is worth a line."""
        return unrecorded_ms > 0 and unrecorded_ms >= LEAST_SHARE * self.unrecorded_ms

    def judge(self, finding: Finding, *, error_ms: float = 0.0) -> Finding | Checked:
        """The finding if it is worth a change, else what was checked and why it is not."""
        estimate = finding.saving.estimate_ms
        if estimate is None:
            return finding
        if not self.passes(estimate, error_ms=error_ms):
            upper = finding.saving.upper_ms
            most = estimate if upper is None else upper
            return Checked(self.reason(finding.title, error_ms), self.unrecorded(most))
        return self._told(finding, estimate, error_ms)

    def _told(self, finding: Finding, estimate: float, error_ms: float) -> Finding:
        noise = TIMES_NOISE * max(self.noise_ms, error_ms)
        confidence, evidence = finding.confidence, finding.evidence
        if estimate < noise:
            confidence = "low"
            evidence = (*evidence, Evidence("step-to-step variation", self.noise_ms, "ms"))
        elif self.slowed > SLOWED and confidence == "high":
            confidence = "medium"
        if self.slowed > 1:
            told = Evidence("recording overhead", self.slowed, "times")
            evidence = (*evidence, told)
        saving = self._unrecorded(finding.saving, self._host_share(finding))
        return replace(finding, saving=saving, confidence=confidence, evidence=evidence)

    def unrecorded(self, time_ms: float) -> float:
        """A time of the recorded step, in a step that nobody records."""
        return time_ms / self.slowed

    def _host_share(self, finding: Finding) -> float:
        """What may be left of a saving of host time once nobody records; device time stays."""
        on_host = any(isinstance(change, Cut) for change in finding.changes)
        return 1 / self.inflated if on_host else 1.0

    def _unrecorded(self, saving: Saving, least: float) -> Saving:
        """The saving in a step that nobody records, of which `least` may be left.

        The bound stays what was recorded, up to the whole step: a recorder slows some things more
        than others, and makes none of them faster.
        """

        def told(time_ms: float | None) -> float | None:
            return None if time_ms is None else self.unrecorded(time_ms)

        low = told(saving.low_ms)
        return replace(
            saving,
            estimate_ms=told(saving.estimate_ms),
            low_ms=None if low is None else least * low,
            high_ms=told(saving.high_ms),
            upper_ms=self._bound(saving),
        )

    def _bound(self, saving: Saving) -> float | None:
        """At most the step, or what is promised where that is more than the typical step."""
        if saving.upper_ms is None:
            return None
        promised = max(saving.high_ms or 0.0, saving.estimate_ms or 0.0)
        return min(saving.upper_ms, max(self.unrecorded_ms, self.unrecorded(promised)))

    def reason(self, title: str, error_ms: float = 0.0) -> str:
        """Why a saving below the floor is not reported, as the end of a sentence on `title`."""
        is_noise = self.floor_ms(error_ms) > LEAST_SHARE * self.step_ms
        limit = (
            "the saving is within step-to-step variation"
            if is_noise
            else f"saves less than {LEAST_SHARE:.0%} of the step"
        )
        return f"{title.rstrip('.')}: {limit}"


@cached_per_trace
def gate(trace: Trace) -> Gate | None:
    """The gate of this trace; None if it has no step that took time to measure by."""
    times = step_times_ms(trace)
    typical = median(times) if times else 0.0
    if not typical:
        return None
    noise = median(abs(time - typical) for time in times)
    slowed = _slowed(trace)
    inflated = 1.0 if slowed is not None else inflation(trace)
    return Gate(typical, noise, fmean(times), max(1.0, slowed or 1.0), inflated)


def inflation(trace: Trace) -> float:
    """By how much a recording of this kind slows the host."""
    return INFLATED_BY_STACKS if trace.frame_args.height else INFLATED


def _slowed(trace: Trace) -> float | None:
    overhead = trace.facts.get("overhead")
    ratio = overhead.get("ratio") if isinstance(overhead, dict) else None
    return float(ratio) if isinstance(ratio, int | float) and isfinite(ratio) else None
