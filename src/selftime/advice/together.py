"""What several fixes are worth together: each claims only the time that the others leave.

Causes overlap. A loop of small operators is one cause, that the program issues many small operators
another, and both claim the same time. So findings are settled in order: first those with a line and
a fix of their own, those that save most before the others, then the broad ones, whose fix is for
the program as a whole. Each is priced by the replay with all before it fixed.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from selftime.advice.base import Checked, Finding, Outcome, Saving
from selftime.advice.bounds import most_of
from selftime.advice.gate import Gate, gate
from selftime.advice.replay import Change, Cut, Scale, replay_of
from selftime.intervals import intersect, length
from selftime.trace import Trace

EXPLAINED: Final = 1 / 3
"""A cause of which less than this is left once another is fixed is that other by another name.

A fix that halves the time of some work, as a smaller dtype does, leaves the work: it may still be
needless.
"""


def settled(
    trace: Trace,
    findings: Iterable[Finding],
    broad: frozenset[str],
    apart: frozenset[str] = frozenset(),
) -> list[Outcome]:
    """The findings, those of other causes' time as checked, broad ones with what is left to them.

    `broad` names the rules whose fix is for the program as a whole, `apart` those that tell of
    several ranks what others tell of one: both are told.
    """
    every, limits = list(findings), gate(trace)
    of_ranks = [finding for finding in every if finding.rule in apart]
    findings = [finding for finding in every if finding.rule not in apart]
    ordered = sorted(findings, key=lambda f: (f.rule in broad, -(f.saving.estimate_ms or 0.0)))
    if limits is None:
        return [*of_ranks, *ordered]
    fixed: list[Finding] = []
    outcomes: list[Outcome] = [*of_ranks]
    for finding in ordered:
        outcome = _after(trace, limits, finding, fixed, is_broad=finding.rule in broad)
        outcomes.append(outcome)
        if isinstance(outcome, Finding) and outcome.saving.estimate_ms is not None:
            fixed.append(outcome)
    return outcomes


def saved_together(trace: Trace, findings: Iterable[Finding]) -> float | None:
    """Milliseconds of a step that all fixes save in one replay, as of a step that nobody records.

    None if one of several findings does not say what it changes, or if there is none.
    """
    priced = [finding for finding in findings if finding.saving.estimate_ms is not None]
    if len(priced) == 1:
        return priced[0].saving.estimate_ms
    limits = gate(trace)
    if not priced or limits is None or not all(finding.changes for finding in priced):
        return None
    changes = _changes(priced)
    saved = limits.unrecorded(limits.typical(replay_of(trace).saving(*changes) / 1e6))
    least = max(finding.saving.estimate_ms or 0.0 for finding in priced)
    return max(min(saved, most_of(trace, limits, changes)), least)


def _changes(findings: Iterable[Finding]) -> list[Change]:
    return [change for finding in findings for change in finding.changes]


def _after(
    trace: Trace, limits: Gate, finding: Finding, fixed: list[Finding], *, is_broad: bool
) -> Outcome:
    """The finding once the fixed ones are gone."""
    saving = finding.saving
    others = [f for f in fixed if is_broad or _overlap(f.changes, finding.changes)]
    if saving.estimate_ms is None or not finding.changes or not others:
        return finding
    replay = replay_of(trace)
    before, own = _changes(others), finding.changes
    alone = replay.saving(*own)
    left = replay.step_time(*before) - replay.step_time(*before, *own)
    share = min(1.0, max(0.0, left / alone)) if alone else 1.0
    names = ", ".join(dict.fromkeys(f"`{f.rule}`" for f in others))
    if not is_broad:
        return finding if share >= EXPLAINED else _explained(finding, names)
    estimate = share * saving.estimate_ms
    if not limits.passes(estimate * limits.slowed):
        return _explained(finding, names)
    return replace(finding, saving=_shared(limits, finding, share))


def _explained(finding: Finding, names: str) -> Checked:
    reason = f"{finding.title.rstrip('.')}: most of the saving comes with the fix of {names}"
    return Checked(reason, finding.saving.upper_ms, rule=finding.rule)


def _shared(limits: Gate, finding: Finding, share: float) -> Saving:
    saving = finding.saving

    def part(time: float | None) -> float | None:
        return None if time is None else share * time

    estimate = part(saving.estimate_ms)
    left = limits.unrecorded(limits.step_ms) - (estimate or 0.0)
    return replace(
        saving,
        estimate_ms=estimate,
        low_ms=part(saving.low_ms),
        high_ms=part(saving.high_ms),
        upper_ms=part(saving.upper_ms),
        speedup=((estimate or 0.0) + left) / left if left > 0 else None,
    )


def _overlap(these: Iterable[Change], those: Iterable[Change]) -> bool:
    """Whether two fixes take away some of the same time: host time, or time of the same work."""
    return any(_meet(one, other) for one in these for other in those)


def _meet(one: Change, other: Change) -> bool:
    match one, other:
        case Cut(), Cut():
            return length(intersect(one.where, other.where)) > 0
        case Scale(), Scale():
            return bool(np.isin(one.work, other.work).any())
        case _:
            return False
