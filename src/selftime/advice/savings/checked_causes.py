"""Computes the most that fixing a ruled-out cause could save of a step without profiler.

A rule states how long the cause takes at most of the typical step as recorded, and whether
recording slows it. What the host does takes less without a recording, by the factor that was
measured for the whole step; a device works as long, and so do other processes and the links between
them.
"""

from dataclasses import replace

from selftime.advice.rule_outcomes import Checked, Finding
from selftime.advice.savings.bounds import do_changes_affect_devices, max_saving_ms
from selftime.advice.savings.claims import ModelledClaim, RemovalClaim, largest_changes_of_claim
from selftime.advice.savings.estimates import estimated_saving_of_recorded_step
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.trace import Trace


def upper_bound_of_recorded_time(
    step_stats: StepStatistics, recorded_ms: float, *, is_slowed: bool
) -> float:
    """Returns how long a cause takes at most in a typical step without profiler, in ms.

    Args:
        step_stats: The typical step.
        recorded_ms: How long the cause takes at most in the typical step as recorded, in ms.
        is_slowed: Whether recording slows the cause; False for the work of devices.
    """
    spent_ms = step_stats.unrecorded_time_ms(recorded_ms) if is_slowed else recorded_ms
    return min(spent_ms, step_stats.unrecorded_step_ms)


def checked_with_upper_bound(trace: Trace, checked: Checked) -> Checked:
    """Returns a ruled-out cause with the most that a fix could save of a step without profiler.

    It is computed from the recorded time that the rule states; None if it states none, or if the
    duration of a step is unknown.
    """
    step_stats = step_statistics(trace)
    if step_stats is None or checked.max_cause_ms is None:
        return checked
    upper_ms = upper_bound_of_recorded_time(
        step_stats, checked.max_cause_ms, is_slowed=checked.is_slowed
    )
    return replace(checked, upper_ms=upper_ms)


def finding_as_checked(trace: Trace, finding: Finding, reason: str) -> Checked:
    """Returns a ruled-out cause in place of a finding, with the most that its fix could save.

    Args:
        trace: The trace.
        finding: The finding, with its saving.
        reason: A sentence that says why it is ruled out.
    """
    upper_ms, claim, step_stats = finding.saving.upper_ms, finding.claim, step_statistics(trace)
    if step_stats is not None and isinstance(claim, RemovalClaim | ModelledClaim):
        changes = largest_changes_of_claim(claim)
        is_slowed = claim.is_slowed and not do_changes_affect_devices(changes)
        spent_ms = estimated_saving_of_recorded_step(trace, claim).upper_ms
        upper_ms = min(
            upper_bound_of_recorded_time(step_stats, spent_ms, is_slowed=is_slowed),
            max_saving_ms(trace, step_stats, changes),
        )
    return Checked(reason, upper_ms=upper_ms, rule=finding.rule)
