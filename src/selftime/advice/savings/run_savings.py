"""Computes how many seconds of the whole run a fix saves, with the run's ledger.

A fix of a recorded step saves as much in each step that the recorded ones represent, and never
more than that step took. A fix of a cause outside of steady steps saves what its rule claims.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from selftime.advice.advice_result import JointSaving, RunTime
from selftime.advice.rule_outcomes import Checked, Finding
from selftime.advice.savings.checked_causes import finding_as_checked
from selftime.advice.savings.claims import RunClaim
from selftime.advice.savings.saving import Saving
from selftime.advice.step_statistics import MIN_SAVING_TO_NOISE_RATIO
from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.recorded_step_coverage import (
    RecordedStepCoverage,
    recorded_step_coverage,
)
from selftime.run import Run
from selftime.trace import Trace
from selftime.units import seconds_text

MIN_SIGNIFICANT_SAVING_SHARE_OF_RUN: Final = 0.02
"""Smallest share of a run that an estimated saving must have to be reported, as of a step."""
MIN_SIGNIFICANT_UPPER_BOUND_SHARE_OF_RUN: Final = 0.1
"""Smallest share of a run that is reported if the saving of its fix cannot be estimated."""

MIN_SHARE_OF_BOUND: Final = 0.5
"""Smallest bound of findings about steps, as a share of that of one about the whole run, for the
former to be told in place of the latter."""


def program_ns(run: Run) -> int:
    """Returns the run's wall time without selftime's own work, in ns."""
    parts = run_parts(run)
    return int(parts.filter(parts["part"] != "recording")["duration"].sum())


def finding_or_checked_of_run(run: Run, finding: Finding, claim: RunClaim) -> Finding | Checked:
    """Returns the finding with its saving of the run, or rules it out if that is too small."""
    whole, told = program_ns(run), claim.max_saving_ns if claim.saved_ns is None else claim.saved_ns
    share = (
        MIN_SIGNIFICANT_UPPER_BOUND_SHARE_OF_RUN
        if claim.saved_ns is None
        else MIN_SIGNIFICANT_SAVING_SHARE_OF_RUN
    )
    if told <= claim.noise_ns or told < share * whole:
        reason = f"saves at most {seconds_text(claim.max_saving_ns)} of the run"
        return Checked(
            f"{finding.title.rstrip('.')}: {reason}",
            rule=finding.rule,
            run_upper_s=min(claim.max_saving_ns, whole) / 1e9,
        )
    is_noisy = told < MIN_SAVING_TO_NOISE_RATIO * claim.noise_ns
    saving = _saving_of_run_claim(claim, whole)
    return replace(
        finding, saving=saving, confidence="low" if is_noisy else finding.confidence, claim=claim
    )


def _saving_of_run_claim(claim: RunClaim, whole_ns: int) -> Saving:
    most = min(claim.max_saving_ns, whole_ns)
    if claim.saved_ns is None:
        return Saving(run_upper_s=most / 1e9)
    saved = min(claim.saved_ns, most)
    high = most if claim.high_ns is None else max(saved, min(claim.high_ns, most))
    return Saving(
        method="model",
        run_s=saved / 1e9,
        run_low_s=min(claim.low_ns, saved) / 1e9,
        run_high_s=high / 1e9,
        run_upper_s=most / 1e9,
    )


def with_savings_of_run(trace: Trace, findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings about steps with what each fix saves over the run; unchanged if unknown."""
    every = list(findings)
    coverage = recorded_step_coverage(trace) if every else None
    return every if coverage is None else [_with_saving_of_run(coverage, one) for one in every]


def _with_saving_of_run(coverage: RecordedStepCoverage, finding: Finding) -> Finding:
    saving = finding.saving
    if saving.run_s is not None or saving.run_upper_s is not None:
        return finding
    return replace(finding, saving=_with_seconds_of_run(coverage, saving))


def saving_with_seconds_of_run(trace: Trace, saving: Saving) -> Saving:
    """Returns the saving of a step with what it is over the whole run; unchanged if unknown."""
    coverage = recorded_step_coverage(trace)
    return saving if coverage is None else _with_seconds_of_run(coverage, saving)


def _with_seconds_of_run(coverage: RecordedStepCoverage, saving: Saving) -> Saving:
    return replace(
        saving,
        run_s=_seconds_of_steps(coverage, saving.estimate_ms),
        run_low_s=_seconds_of_steps(coverage, saving.low_ms),
        run_high_s=_seconds_of_steps(coverage, saving.high_ms),
        run_upper_s=_seconds_of_steps(coverage, saving.upper_ms),
    )


def _seconds_of_steps(coverage: RecordedStepCoverage, per_step_ms: float | None) -> float | None:
    return None if per_step_ms is None else coverage.saved_ns(per_step_ms * 1e6) / 1e9


def one_finding_per_cause(trace: Trace, findings: list[Finding]) -> list[Finding | Checked]:
    """Keeps one finding per cause: the one about the recorded steps, or about the whole run.

    Two are of one cause if they cover the same entry of the catalogue of bottlenecks. The one
    about steps stays if it saves the run as much as the other one does at the least, for it says
    more of where the time goes. Of one about the run that has a bound alone, it stays if it may
    save a good part of that.
    """
    of_run = [finding for finding in findings if isinstance(finding.claim, RunClaim)]
    of_steps = [finding for finding in findings if not isinstance(finding.claim, RunClaim)]
    outcomes: list[Finding | Checked] = []
    for whole in of_run:
        same = [one for one in of_steps if set(one.covers) & set(whole.covers)]
        if same and _say_as_much(same, whole):
            outcomes.append(_checked_as_same_cause(trace, whole, same))
            continue
        of_steps = [one for one in of_steps if one not in same]
        outcomes += [_checked_as_same_cause(trace, one, [whole]) for one in same]
        outcomes.append(whole)
    return [*of_steps, *outcomes]


def _say_as_much(same: list[Finding], whole: Finding) -> bool:
    """Returns whether findings about steps save as much of the run as one about the run."""
    if whole.saving.run_s is not None:
        return sum(one.saving.run_s or 0.0 for one in same) >= (whole.saving.run_low_s or 0.0)
    bounds = [one.saving.run_upper_s for one in same]
    known = sum(bound for bound in bounds if bound is not None)
    return None in bounds or known >= MIN_SHARE_OF_BOUND * (whole.saving.run_upper_s or 0.0)


def _checked_as_same_cause(trace: Trace, finding: Finding, others: list[Finding]) -> Checked:
    names = ", ".join(dict.fromkeys(f"`{other.rule}`" for other in others))
    reason = f"{finding.title.rstrip('.')}: its cause is that of {names}"
    return finding_as_checked(trace, finding, reason)


def with_joint_saving_of_run(
    trace: Trace, joint: JointSaving, findings: tuple[Finding, ...]
) -> JointSaving:
    """Returns the joint saving of all fixes, with the seconds that they save of the run.

    Causes outside of steady steps are parts of the run that do not overlap: they add up.
    """
    coverage = recorded_step_coverage(trace)
    of_steps = _seconds_of_steps(coverage, joint.estimate_ms) if coverage is not None else None
    is_unknown = of_steps is None and any(f.saving.estimate_ms is not None for f in findings)
    outside = [f.saving.run_s for f in findings if isinstance(f.claim, RunClaim)]
    known = [seconds for seconds in (of_steps, *outside) if seconds is not None]
    if is_unknown or not known:
        return joint
    return replace(joint, run_s=min(sum(known), program_ns(trace.run) / 1e9))


def run_time(trace: Trace) -> RunTime | None:
    """Returns a run's wall time and the steps that its trace represents; None without a run."""
    run = trace.run
    if not run.segments.height:
        return None
    coverage, wall_s = recorded_step_coverage(trace), run.wall_ns / 1e9
    if coverage is None:
        return RunTime(wall_s)
    kinds = " and ".join(coverage.kinds)
    return RunTime(wall_s, kinds, coverage.steps, coverage.duration_ns / 1e9)
