"""Computes findings' savings from what rules claim, and drops findings that save little."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from selftime.advice.rule_outcomes import Checked, Evidence, Finding, Outcome
from selftime.advice.savings.bounds import (
    limit_saving_amount,
    limit_to_phase_of_run,
    max_saving_ms,
)
from selftime.advice.savings.calibration import (
    NO_CALIBRATION_FACTORS,
    CalibrationFactors,
    calibrate_saving,
)
from selftime.advice.savings.checked_causes import (
    checked_with_upper_bound,
    finding_as_checked,
    upper_bound_of_recorded_time,
)
from selftime.advice.savings.claims import (
    ComputedSavingClaim,
    ModelledClaim,
    RemovalClaim,
    RunClaim,
    SavingClaim,
    UpperBoundClaim,
    changes_of_claim,
    largest_changes_of_claim,
)
from selftime.advice.savings.estimates import (
    estimated_saving_of_recorded_step,
    without_recording_cost,
)
from selftime.advice.savings.rare_events import with_interval_of_rate
from selftime.advice.savings.run_savings import finding_or_checked_of_run
from selftime.advice.savings.saving import Saving, SavingAmount, min_if_known
from selftime.advice.step_statistics import (
    MIN_SAVING_TO_NOISE_RATIO,
    StepStatistics,
    step_statistics,
)
from selftime.trace import Trace

MAX_SLOWDOWN_FOR_HIGH_CONFIDENCE: Final = 1.5
"""Largest slowdown by recording (recorded step time / unrecorded one) for `high` confidence."""


def outcome_with_saving(
    trace: Trace,
    outcome: Outcome,
    factors_by_rule: Mapping[str, CalibrationFactors] = NO_CALIBRATION_FACTORS,
) -> Outcome:
    """Returns a rule's outcome with its saving; a finding that saves little becomes ruled out.

    Args:
        trace: The trace that the rule looked at.
        outcome: The outcome, signed with the rule's name.
        factors_by_rule: How far estimates of each rule have been off.
    """
    match outcome:
        case Checked():
            return checked_with_upper_bound(trace, outcome)
        case Finding(claim=RunClaim() as of_run):
            return finding_or_checked_of_run(trace.run, outcome, of_run)
        case Finding():
            step_stats = step_statistics(trace)
            claim = outcome.claim or ComputedSavingClaim(outcome.saving, outcome.changes)
            finding = replace(outcome, claim=claim, changes=changes_of_claim(claim))
            if step_stats is None:
                return finding
            saving = saving_from_claim(trace, step_stats, claim, finding.rule, factors_by_rule)
            return _finding_or_checked(trace, step_stats, replace(finding, saving=saving), claim)
        case _:
            return outcome


def saving_from_claim(
    trace: Trace,
    step_stats: StepStatistics,
    claim: SavingClaim,
    rule: str,
    factors_by_rule: Mapping[str, CalibrationFactors] = NO_CALIBRATION_FACTORS,
    remaining_share: float = 1.0,
) -> Saving:
    """Returns how much time a rule's claimed fix saves per step without profiler.

    The range and the bounds are corrected by the past errors of the rule's estimates.

    Args:
        trace: The trace.
        step_stats: Its typical step.
        claim: What the rule says of its fix.
        rule: The name of the rule.
        factors_by_rule: How far estimates of each rule have been off.
        remaining_share: The share of the saving that the fixes of other findings leave.
    """
    match claim:
        case UpperBoundClaim(most, is_slowed):
            return Saving(
                upper_ms=upper_bound_of_recorded_time(step_stats, most, is_slowed=is_slowed)
            )
        case ComputedSavingClaim(saving, changes) if saving.estimate_ms is None:
            return replace(
                saving,
                upper_ms=min_if_known(saving.upper_ms, max_saving_ms(trace, step_stats, changes)),
            )
        case RunClaim():
            return Saving()
        case ComputedSavingClaim(saving):
            amount = SavingAmount.from_saving(saving, step_stats.unrecorded_step_ms)
        case _:
            amount = without_recording_cost(
                step_stats, claim, estimated_saving_of_recorded_step(trace, claim)
            )
    amount = with_interval_of_rate(trace, claim, amount)
    if isinstance(claim, RemovalClaim) and claim.phase is not None:
        amount = limit_to_phase_of_run(trace.run, amount, claim.phase)
    amount = calibrate_saving(
        amount, rule, factors_by_rule, is_bounded=trace.device_args.height > 0
    )
    amount = limit_saving_amount(trace, step_stats, amount, largest_changes_of_claim(claim))
    return amount.scaled_by(remaining_share).to_saving()


def _finding_or_checked(
    trace: Trace, step_stats: StepStatistics, finding: Finding, claim: SavingClaim
) -> Finding | Checked:
    """Returns the finding, or rules it out with a reason if it saves too little."""
    if not isinstance(claim, RemovalClaim | ModelledClaim):
        return finding
    own = step_stats if claim.noise_ms is None else step_stats.with_noise(claim.noise_ms)
    if own.is_unrecorded_saving_worth_reporting(finding.saving.estimate_ms or 0.0):
        return _with_adjusted_confidence(own, finding)
    before = without_recording_cost(
        step_stats, claim, estimated_saving_of_recorded_step(trace, claim)
    )
    reason = own.reason_saving_is_small(finding.title)
    if own.is_unrecorded_saving_worth_reporting(before.estimate_ms):
        step = "a step without recording" if step_stats.measured_slowdown > 1 else "the step"
        reason = f"{finding.title.rstrip('.')}: {step} is hardly longer than the device's work"
    return finding_as_checked(trace, finding, reason)


def _with_adjusted_confidence(step_stats: StepStatistics, finding: Finding) -> Finding:
    """Returns the finding, with less confidence if steps vary or recording slows them much.

    By how much they vary is unknown where a single step was recorded.
    """
    confidence, evidence = finding.confidence, finding.evidence
    if (finding.saving.estimate_ms or 0.0) < step_stats.unrecorded_time_ms(
        MIN_SAVING_TO_NOISE_RATIO * step_stats.noise_ms
    ):
        confidence = "low"
        evidence = (*evidence, Evidence("step-to-step variation", step_stats.noise_ms, "ms"))
    elif confidence == "high" and (
        step_stats.measured_slowdown > MAX_SLOWDOWN_FOR_HIGH_CONFIDENCE or step_stats.is_single
    ):
        confidence = "medium"
    if step_stats.measured_slowdown > 1:
        evidence = (
            *evidence,
            Evidence("recording overhead", step_stats.measured_slowdown, "times"),
        )
    return replace(finding, confidence=confidence, evidence=evidence)
