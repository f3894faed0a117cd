"""Computes what changes that a user names save, by the same steps as the saving of a finding."""

from dataclasses import dataclass, replace
from typing import Final

from selftime.advice.replay import Change, ScaleDeviceWork
from selftime.advice.savings.calibration import measured_calibration_factors
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.savings.run_savings import saving_with_seconds_of_run
from selftime.advice.savings.saving import Saving, SavingAmount
from selftime.advice.savings.saving_from_claim import saving_from_claim
from selftime.advice.step_statistics import StepStatistics
from selftime.trace import Trace

_CALIBRATED_AS: Final = "what_if"
"""Name under which the saving is calibrated: no rule has it, so that all rules' errors count."""


@dataclass(frozen=True, slots=True)
class StepAfterChanges:
    """The typical step without profiler, now and after changes, in ms, with the saving."""

    step_ms: float
    predicted_ms: float
    predicted_low_ms: float
    predicted_high_ms: float
    is_unrecorded: bool
    """Whether the cost of recording was measured, and is taken off."""
    saving: Saving


def step_after_changes(
    trace: Trace, step_stats: StepStatistics, changes: tuple[Change, ...], hidden_ms: float
) -> StepAfterChanges:
    """Returns what a typical step takes after the changes, by one simulation of all of them.

    Args:
        trace: The trace.
        step_stats: Its typical step.
        changes: All changes.
        hidden_ms: How long hidden work still takes per recorded step, in ms: no step is shorter.
    """
    step_ms = step_stats.unrecorded_step_ms
    is_slowed = not all(isinstance(change, ScaleDeviceWork) for change in changes)
    claim = RemovalClaim(changes, is_slowed=is_slowed)
    saving = saving_from_claim(
        trace, step_stats, claim, _CALIBRATED_AS, measured_calibration_factors()
    )
    if hidden_ms:
        saving = _limited_saving(saving, step_ms, max(0.0, step_ms - hidden_ms))
    saved, low, high = (
        value or 0.0 for value in (saving.estimate_ms, saving.low_ms, saving.high_ms)
    )
    return StepAfterChanges(
        step_ms=step_ms,
        predicted_ms=step_ms - saved,
        predicted_low_ms=step_ms - high,
        predicted_high_ms=step_ms - low,
        is_unrecorded=step_stats.assumed_slowdown == 1.0,
        saving=saving_with_seconds_of_run(trace, saving),
    )


def _limited_saving(saving: Saving, step_ms: float, most_ms: float) -> Saving:
    """Returns the saving of a step of `step_ms`, no number of it above `most_ms`."""
    amount = replace(SavingAmount.from_saving(saving, step_ms), step_ms=step_ms)
    return amount.limited_to_ms(most_ms).to_saving()
