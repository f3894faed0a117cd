"""The bound of every saving: no fix gives back more than what the step has beyond its floor.

The step is the typical one, as it is when nobody records. Its floor is what stays whatever is
changed: for a cause on the host the work of the devices, which takes as long without a recorder.
What strikes a few steps only is told of the average step, and may be more than the typical one has;
then it is told as the share of the step that it is of the average.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from selftime.advice.base import Checked, Finding, Outcome, Saving
from selftime.advice.gate import Gate, gate
from selftime.advice.replay import Change, Scale
from selftime.analysis.cached import cached_per_trace
from selftime.trace import Trace

__all__ = ["bounded", "most_of", "whole_step", "within"]

NEARLY: Final = 1 + 1e-9
"""Of two sums of the same times one may be larger by their rounding."""


def bounded(trace: Trace, outcome: Outcome) -> Outcome:
    """The outcome with nothing promised beyond the bound; checked, if that leaves next to nothing.

    Its savings are those of a step that nobody records.
    """
    limits = gate(trace)
    if limits is None or not isinstance(outcome, Finding | Checked):
        return outcome
    if isinstance(outcome, Checked):
        return replace(outcome, upper_ms=_least(outcome.upper_ms, limits.unrecorded_ms))
    saving = within(trace, outcome)
    estimate, before = saving.estimate_ms, outcome.saving.estimate_ms
    is_cut = estimate is not None and before is not None and estimate < before
    if is_cut and not limits.is_worth(estimate or 0.0):
        step = "a step that nobody records" if limits.slowed > 1 else "the step"
        reason = f"{outcome.title.rstrip('.')}: {step} is hardly longer than the device's work"
        return Checked(reason, saving.upper_ms, rule=outcome.rule)
    return replace(outcome, saving=saving)


def most_of(trace: Trace, limits: Gate, changes: Iterable[Change]) -> float:
    """What the typical step has beyond its floor, in ms, if nobody records it.

    A fix of unknown changes may concern anything in the step, and so may one on a device: at best
    it changes more work than it is sure to.
    """
    step, changes = limits.unrecorded_ms, tuple(changes)
    if not changes or any(isinstance(change, Scale) for change in changes):
        return step
    return max(0.0, step - _busy(trace).share * limits.step_ms)


@dataclass(frozen=True, slots=True)
class _Busy:
    """How long the steps, as recorded, had any device work."""

    share: float
    """Of the steps that count."""
    mean_ms: float
    """On average over all steps."""


@cached_per_trace
def _busy(trace: Trace) -> _Busy:
    steps = trace.view("steps")
    every, counted = (_sum(table["busy"]) for table in (steps, steps.filter("counted")))
    whole = _sum(steps.filter("counted")["time"])
    return _Busy(counted / whole if whole else 0.0, every / 1e6 / max(steps.height, 1))


def _sum(times: pl.Series) -> int:
    return sum(times.drop_nulls().to_list())


def whole_step(saving: Saving) -> float | None:
    """The step that a saving is of, in ms: of a speed-up of 2 it is half; None if that is open."""
    estimate, speedup = saving.estimate_ms, saving.speedup
    if not estimate or speedup is None or speedup <= 1:
        return None
    return estimate / (1 - 1 / speedup)


def within(trace: Trace, finding: Finding) -> Saving:
    """The saving of a finding with no number above what there is to save."""
    limits, saving, changes = gate(trace), finding.saving, finding.changes
    if limits is None:
        return saving
    step, most = limits.unrecorded_ms, most_of(trace, limits, changes)
    if saving.estimate_ms is None:
        return replace(saving, upper_ms=_least(saving.upper_ms, most))
    own = whole_step(saving) or step
    if own <= NEARLY * step:
        return _cut(saving, most, step)
    if changes and not any(isinstance(change, Scale) for change in changes):
        own_most = max(0.0, own - _busy(trace).mean_ms)
    else:
        own_most = own
    return _of_step(_cut(saving, own_most, own), own, step)


def _of_step(saving: Saving, own: float, step: float) -> Saving:
    """A saving of a longer step, told of the typical one where it is more than that has."""
    if (saving.estimate_ms or 0.0) > step:
        saving = _scaled(saving, step / own)
    return _cut(saving, step, step)


def _cut(saving: Saving, most: float, step: float) -> Saving:
    """The saving in a step with no number above the most that there is."""
    estimate, fastest = saving.estimate_ms or 0.0, saving.speedup
    if estimate > most:
        saving, estimate, fastest = _scaled(saving, most / estimate), most, None
    left = step - estimate
    return replace(
        saving,
        speedup=_least(fastest or float("inf"), step / left) if left > 0 else fastest,
        estimate_ms=_least(saving.estimate_ms, most),
        low_ms=_least(saving.low_ms, most),
        high_ms=_least(saving.high_ms, most),
        upper_ms=_least(saving.upper_ms, most),
    )


def _scaled(saving: Saving, share: float) -> Saving:
    def part(time: float | None) -> float | None:
        return None if time is None else share * time

    return replace(
        saving,
        estimate_ms=part(saving.estimate_ms),
        low_ms=part(saving.low_ms),
        high_ms=part(saving.high_ms),
        upper_ms=part(saving.upper_ms),
    )


def _least(value: float | None, most: float) -> float | None:
    return None if value is None else min(value, most)
