"""Describes for the web page how long a step takes now, with one fix, and with all fixes."""

from typing import Any, Final

from selftime.advice import Advice
from selftime.advice.advice_result import TypicalStep
from selftime.advice.rule_definition import Saving
from selftime.advice.savings.finding_overlap import joint_interval_ms
from selftime.reports.advice import wording
from selftime.reports.advice.account_sentence import account_basis_text
from selftime.units import milliseconds_text

_MIN_SHOWN_RECORDING_OVERHEAD: Final = 0.02
"""Smallest share of a step that recording adds for which the step without it is told, too."""

_WITH_FIXES: Final = ("after", "range", "speedup")
"""What the headline has of a step with all fixes."""


def step_with_fix_data(advice: Advice, saving: Saving) -> dict[str, Any] | None:
    """Returns the step before and after a fix as the page's JSON object `StepWithFix`.

    Times are in ms, without the overhead of recording where that is known. Returns None if the step
    or the saving is unknown, or the saving is larger than the step.
    """
    estimate = saving.estimate_ms
    before = _step_before_ms(estimate, saving.speedup) or _typical_step_ms(advice.step)
    if estimate is None or before is None or estimate > before:
        return None
    shortest = max(0.0, before - (estimate if saving.high_ms is None else saving.high_ms))
    longest = before - (estimate if saving.low_ms is None else saving.low_ms)
    with_all = _step_with_all_fixes_ms(advice, before)
    after = before - estimate
    text = (
        f"A step takes {milliseconds_text(before)} now, {milliseconds_text(after)} with this "
        f"change, between {milliseconds_text(shortest)} and {milliseconds_text(longest)}"
    )
    if with_all is not None:
        text += f"; with all changes {milliseconds_text(with_all)}"
    return {
        "before_ms": before,
        "after_ms": after,
        "shortest_ms": shortest,
        "longest_ms": longest,
        "with_all_ms": with_all,
        "text": text,
    }


def headline_texts(advice: Advice) -> dict[str, str | None] | None:
    """Returns the step now and with all fixes, on one basis; None if no time of a step is known.

    `after`, `range` and `speedup` are None if no saving has an estimate.
    """
    estimate, speedup = advice.joint.estimate_ms, advice.joint.speedup
    before = _step_before_ms(estimate, speedup)
    typical = wording.typical_step_text(advice.step, with_bound=advice.account is None)
    if not advice.findings or estimate is None or speedup is None or before is None:
        known = _typical_step_ms(advice.step) if advice.account is None else advice.account.step_ms
        if known is None:
            return None
        title = f"A step{account_basis_text(advice)}" if advice.step.count else "The recording"
        now = milliseconds_text(known)
        return {"title": title, "now": now, "step": typical, **dict.fromkeys(_WITH_FIXES)}
    changes = "change" if len(advice.findings) == 1 else "changes"
    is_unrecorded = is_headline_without_recording(advice)
    return {
        "title": "A step without recording" if is_unrecorded else "A step",
        "now": milliseconds_text(before),
        "step": f"recorded: {typical}" if is_unrecorded else typical,
        "after": milliseconds_text(before - estimate),
        "range": _range_text(advice, before),
        "speedup": f"{wording.speedup_text(speedup)} with the {changes} below",
    }


def _range_text(advice: Advice, before: float) -> str | None:
    """Returns between which times the step with all fixes is."""
    saved = joint_interval_ms(advice.joint, advice.findings)
    if saved is None:
        return None
    least, most = saved
    longest = milliseconds_text(max(0.0, before - least))
    if most >= before:  # the most that each saves adds up to the step: its shortest time is unknown
        return f"at most {longest}"
    return f"{milliseconds_text(before - most)} to {longest}"


def is_headline_without_recording(advice: Advice) -> bool:
    """Returns whether savings are of a step that is notably shorter than the recorded one."""
    recorded = _typical_step_ms(advice.step)
    before = _step_before_ms(advice.joint.estimate_ms, advice.joint.speedup)
    if recorded is None or before is None:
        return False
    return before < (1 - _MIN_SHOWN_RECORDING_OVERHEAD) * recorded


def _step_before_ms(estimate_ms: float | None, speedup: float | None) -> float | None:
    """Returns the time of the step that a saving and its speed-up refer to, in ms.

    >>> _step_before_ms(20, 1.25)
    100.0
    """
    if estimate_ms is None or speedup is None or speedup <= 1:
        return None
    return estimate_ms * speedup / (speedup - 1)


def _typical_step_ms(step: TypicalStep) -> float | None:
    return step.host_ms if step.device_ms is None else step.device_ms


def _step_with_all_fixes_ms(advice: Advice, before_ms: float) -> float | None:
    """Returns the step with all fixes in ms; None unless several have an estimate."""
    estimates = [finding.saving.estimate_ms for finding in advice.findings]
    joint = advice.joint
    if len(estimates) - estimates.count(None) < 2 or joint.estimate_ms is None:
        return None
    before = _step_before_ms(joint.estimate_ms, joint.speedup) or before_ms
    return max(0.0, before - joint.estimate_ms)
