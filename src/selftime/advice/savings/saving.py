"""Defines the saving of a fix in ms per step: the reported form, and the form for computing."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

EstimateMethod: TypeAlias = Literal["replay", "model", "none"]


@dataclass(frozen=True, slots=True)
class Saving:
    """How much time a fix saves, per step and over the whole run; None for unknown numbers.

    `estimate_ms` to `upper_ms` are of one step. `run_s` to `run_upper_s` are of the whole run, in
    seconds, and only known with the run's ledger. A low end below 0 is a loss: the fix may cost
    time.
    """

    estimate_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    upper_ms: float | None = None
    speedup: float | None = None
    method: EstimateMethod = "none"
    run_s: float | None = None
    run_low_s: float | None = None
    run_high_s: float | None = None
    run_upper_s: float | None = None

    def __post_init__(self) -> None:
        of_step = [self.low_ms, self.estimate_ms, self.high_ms, self.upper_ms]
        of_run = [self.run_low_s, self.run_s, self.run_high_s, self.run_upper_s]
        for known in (of_step, of_run):
            values = [value for value in known if value is not None]
            if values != sorted(values) or any(value < 0 for value in known[1:] if value):
                raise ValueError(
                    f"expected low <= estimate <= high <= upper, 0 <= estimate, got {known}"
                )
        is_estimated = self.estimate_ms is not None or self.run_s is not None
        if is_estimated != (self.method != "none"):
            raise ValueError("expected a method exactly if there is an estimate")

    @classmethod
    def of_step(
        cls,
        step_ms: float,
        estimate_ms: float,
        *,
        method: EstimateMethod,
        low_ms: float = 0.0,
        high_ms: float | None = None,
        upper_ms: float | None = None,
    ) -> "Saving":
        """Returns a saving of `estimate_ms` in a step of `step_ms`, with the resulting speed-up.

        >>> Saving.of_step(100.0, 20.0, method="model", high_ms=30.0, upper_ms=30.0).speedup
        1.25
        """
        left = step_ms - estimate_ms
        speedup = step_ms / left if left > 0 else None
        return cls(estimate_ms, low_ms, high_ms, upper_ms, speedup, method)


@dataclass(frozen=True, slots=True)
class SavingAmount:
    """A saving while it is computed, in ms, and the duration in ms of the step that it shortens."""

    step_ms: float
    estimate_ms: float
    low_ms: float
    high_ms: float
    upper_ms: float
    """Largest saving that any fix can reach, in ms."""
    method: EstimateMethod

    @classmethod
    def from_saving(cls, saving: Saving, step_ms: float) -> "SavingAmount":
        """Returns a reported saving as an amount; `step_ms` is used if it has no speed-up.

        A speed-up of 2 by 10 ms is that of a step of 20 ms.
        """
        estimate, fastest = saving.estimate_ms or 0.0, saving.speedup
        if estimate and fastest is not None and fastest > 1:
            step_ms = estimate / (1 - 1 / fastest)
        low = estimate if saving.low_ms is None else saving.low_ms
        high = estimate if saving.high_ms is None else saving.high_ms
        upper = max(step_ms, high) if saving.upper_ms is None else saving.upper_ms
        return cls(step_ms, estimate, low, high, upper, saving.method)

    def scaled_by(self, share: float) -> "SavingAmount":
        """Returns a copy with all savings multiplied by `share`, and the same step duration."""
        return replace(
            self,
            estimate_ms=share * self.estimate_ms,
            low_ms=share * self.low_ms,
            high_ms=share * self.high_ms,
            upper_ms=share * self.upper_ms,
        )

    def limited_to_ms(self, most_ms: float) -> "SavingAmount":
        """Returns a copy with no saving above `most_ms`; the interval keeps its relative width."""
        part = self.scaled_by(most_ms / self.estimate_ms) if self.estimate_ms > most_ms else self
        return replace(
            part,
            estimate_ms=min(part.estimate_ms, most_ms),
            low_ms=min(part.low_ms, most_ms),
            high_ms=min(part.high_ms, most_ms),
            upper_ms=min(part.upper_ms, most_ms),
        )

    def to_saving(self) -> Saving:
        """Returns the amount in the reported form, with the resulting speed-up of the step."""
        return Saving.of_step(
            self.step_ms,
            self.estimate_ms,
            method=self.method,
            low_ms=self.low_ms,
            high_ms=self.high_ms,
            upper_ms=self.upper_ms,
        )


def min_if_known(value: float | None, most: float) -> float | None:
    """Returns the smaller of two numbers; None if `value` is None."""
    return None if value is None else min(value, most)
