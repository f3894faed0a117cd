"""Drops findings whose time other fixes remove as well; computes the saving of all fixes.

Causes overlap. A loop of small operators is one cause, that the program launches many small
operators another, and both claim the same time. So findings are settled in order: first those with
a line and a fix of their own, the largest first, then the broad ones, whose fix is for the program
as a whole. The replay tells of each how much is left of it with the fixes before it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from selftime.advice.advice_result import JointSaving
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork, replay_of
from selftime.advice.rule_outcomes import Checked, Finding, Outcome
from selftime.advice.savings.bounds import max_saving_ms
from selftime.advice.savings.calibration import NO_CALIBRATION_FACTORS, CalibrationFactors
from selftime.advice.savings.checked_causes import finding_as_checked
from selftime.advice.savings.claims import UpperBoundClaim
from selftime.advice.savings.estimates import replayed_saving_ms
from selftime.advice.savings.saving_from_claim import saving_from_claim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.intervals import intersect, length
from selftime.trace import Trace

MIN_SAVING_SHARE_LEFT_BY_OTHER_FIX: Final = 1 / 3
"""Smallest share of a finding's saving that must remain after other fixes to keep the finding.

A fix that halves the time of some work, as a smaller dtype does, leaves the work: it may still be
needless.
"""


def resolve_overlapping_findings(
    trace: Trace,
    findings: Iterable[Finding],
    broad_rules: frozenset[str],
    rank_rules: frozenset[str] = frozenset(),
    factors_by_rule: Mapping[str, CalibrationFactors] = NO_CALIBRATION_FACTORS,
) -> list[Outcome]:
    """Returns the findings; those whose time other fixes remove anyway become ruled-out causes.

    `broad_rules` names the rules whose fix is for the program as a whole: their findings get the
    saving that the others leave. `rank_rules` names those that compare several ranks: their
    findings stay as they are.
    """
    every, step_stats = list(findings), step_statistics(trace)
    of_ranks = [finding for finding in every if finding.rule in rank_rules]
    findings = [finding for finding in every if finding.rule not in rank_rules]
    ordered = sorted(
        findings, key=lambda f: (f.rule in broad_rules, -(f.saving.estimate_ms or 0.0))
    )
    if step_stats is None:
        return [*of_ranks, *ordered]
    fixed: list[Finding] = []
    outcomes: list[Outcome] = [*of_ranks]
    for finding in ordered:
        is_broad = finding.rule in broad_rules
        others = [f for f in fixed if is_broad or _do_changes_overlap(f.changes, finding.changes)]
        outcome = _outcome_after_other_fixes(
            trace, step_stats, finding, others, factors_by_rule if is_broad else None
        )
        outcomes.append(outcome)
        if isinstance(outcome, Finding) and outcome.saving.estimate_ms is not None:
            fixed.append(outcome)
    return outcomes


def _outcome_after_other_fixes(
    trace: Trace,
    step_stats: StepStatistics,
    finding: Finding,
    others: list[Finding],
    factors_by_rule: Mapping[str, CalibrationFactors] | None,
) -> Finding | Checked:
    """Returns the finding; a ruled-out cause if it saves too little after the other fixes."""
    if not others:
        return finding
    if isinstance(finding.claim, UpperBoundClaim) and finding.claim.removing_changes:
        return _bounded_outcome_after_other_fixes(trace, step_stats, finding, finding.claim, others)
    if finding.saving.estimate_ms is None or not finding.changes:
        return finding
    left = _remaining_saving_share(trace, finding.changes, others)
    if factors_by_rule is None or finding.claim is None:
        return (
            finding
            if left >= MIN_SAVING_SHARE_LEFT_BY_OTHER_FIX
            else _checked_as_cause_of_other_findings(trace, finding, others)
        )
    saving = saving_from_claim(
        trace, step_stats, finding.claim, finding.rule, factors_by_rule, left
    )
    if not step_stats.is_unrecorded_saving_worth_reporting(saving.estimate_ms or 0.0):
        return _checked_as_cause_of_other_findings(trace, finding, others)
    return replace(finding, saving=saving)


def _bounded_outcome_after_other_fixes(
    trace: Trace,
    step_stats: StepStatistics,
    finding: Finding,
    claim: UpperBoundClaim,
    others: list[Finding],
) -> Finding | Checked:
    """Returns a finding that only limits its saving: by what the other fixes leave of that."""
    left = _remaining_saving_share(trace, claim.removing_changes, others)
    if left < MIN_SAVING_SHARE_LEFT_BY_OTHER_FIX:
        return _checked_as_cause_of_other_findings(trace, finding, others)
    claim = replace(claim, max_saving_ms=left * claim.max_saving_ms)
    return replace(finding, saving=saving_from_claim(trace, step_stats, claim, finding.rule))


def _remaining_saving_share(trace: Trace, own: tuple[Change, ...], others: list[Finding]) -> float:
    """Returns the share of what `own` changes save that remains after the fixes of `others`."""
    replay, before = replay_of(trace), _changes_of_findings(others)
    alone = replay.saving(*own)
    left = replay.step_time(*before) - replay.step_time(*before, *own)
    return min(1.0, max(0.0, left / alone)) if alone else 1.0


def _checked_as_cause_of_other_findings(
    trace: Trace, finding: Finding, others: list[Finding]
) -> Checked:
    named = ", ".join(dict.fromkeys(_rule_text(other, finding) for other in others))
    reason = f"{finding.title.rstrip('.')}: most of the saving comes with the fix of {named}"
    return finding_as_checked(trace, finding, reason)


def _rule_text(other: Finding, finding: Finding) -> str:
    """Returns the rule of another finding; if it is the same rule, also where the other one is."""
    if other.rule != finding.rule:
        return f"`{other.rule}`"
    if other.where.file is None:
        return f"another `{other.rule}`"
    return f"`{other.rule}` at {other.where}"


def joint_saving(trace: Trace, findings: Iterable[Finding]) -> JointSaving:
    """Returns what all fixes save together, in ms per step, from one simulation of all changes."""
    told = [finding for finding in findings if finding.saving.estimate_ms is not None]
    if len(told) == 1:
        return joint_saving_of_single_fix(told[0])
    estimate, step_stats = saved_together_ms(trace, told), step_statistics(trace)
    if estimate is None or step_stats is None:
        return JointSaving()
    step = step_stats.unrecorded_step_ms
    if estimate > step:  # causes that strike a few steps only save time of the mean step
        step = step_stats.unrecorded_mean_step_ms
    return JointSaving(estimate, step / (step - estimate) if step > estimate else None)


def joint_saving_of_single_fix(finding: Finding) -> JointSaving:
    """Returns the joint saving of advice with one finding: that finding's saving."""
    return JointSaving(finding.saving.estimate_ms, finding.saving.speedup, finding.saving.run_s)


def joint_interval_ms(
    joint: JointSaving, findings: Iterable[Finding]
) -> tuple[float, float] | None:
    """Returns the least and the most that all fixes save together, in ms; None if unknown.

    Together they save at least what the surest of them does, and at most the sum of the most that
    each saves: the intervals of fixes that overlap do not add up.
    """
    savings = [finding.saving for finding in findings if finding.saving.estimate_ms is not None]
    lows = [saving.low_ms for saving in savings if saving.low_ms is not None]
    highs = [saving.high_ms for saving in savings if saving.high_ms is not None]
    if joint.estimate_ms is None or not len(savings) == len(lows) == len(highs) > 0:
        return None
    return min(max(lows), joint.estimate_ms), max(sum(highs), joint.estimate_ms)


def saved_together_ms(trace: Trace, findings: Iterable[Finding]) -> float | None:
    """Returns the ms per unprofiled step that all fixes save together; None if unknown.

    None if one of several findings does not say what it changes, or if there is none.
    """
    told = [finding for finding in findings if finding.saving.estimate_ms is not None]
    if len(told) == 1:
        return told[0].saving.estimate_ms
    step_stats = step_statistics(trace)
    if not told or step_stats is None or not all(finding.changes for finding in told):
        return None
    changes = _changes_of_findings(told)
    saved = step_stats.unrecorded_time_ms(replayed_saving_ms(trace, step_stats, changes))
    estimates = [finding.saving.estimate_ms or 0.0 for finding in told]
    if not trace.device_args.height:  # nothing is hidden behind work of a device, so that is a sum
        saved = min(saved, sum(estimates))
    return max(min(saved, max_saving_ms(trace, step_stats, changes)), *estimates)


def _changes_of_findings(findings: Iterable[Finding]) -> list[Change]:
    return [change for finding in findings for change in finding.changes]


def _do_changes_overlap(changes: Iterable[Change], other_changes: Iterable[Change]) -> bool:
    """Returns whether two fixes shorten some of the same host time or the same device work."""
    return any(_do_two_changes_overlap(one, other) for one in changes for other in other_changes)


def _do_two_changes_overlap(change: Change, other: Change) -> bool:
    match change, other:
        case CutHostTime(), CutHostTime():
            return length(intersect(change.intervals, other.intervals)) > 0
        case ScaleDeviceWork(), ScaleDeviceWork():
            return bool(np.isin(change.work, other.work).any())
        case _:
            return False
