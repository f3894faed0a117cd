"""Computes how much shorter a step is if a source line no longer waits for the device.

Waits hide each other. A program that waits twice for the same queue gains nothing if only one of
them goes: the other then waits longer. So the replay tells the saving of each site
twice, alone and as the last to be removed. The mean of both is its share (for two sites the Shapley
value), and the two bound it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from selftime.advice.detectors.step_results import RESULT_TEXT, reads_result
from selftime.advice.detectors.wait_sites import (
    WaitSite,
    lines_that_would_wait_for_device,
    wait_sites,
)
from selftime.advice.replay import Change, CutHostTime, RemoveWaits, ScaleDeviceWork, replay_of
from selftime.advice.rule_definition import (
    STEPS_WITH_DURATION,
    Checked,
    Confidence,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
)
from selftime.advice.savings.claims import REPLAYED_SAVING_RANGE, ModelledClaim
from selftime.advice.savings.estimates import replayed_saving_ms
from selftime.advice.step_statistics import (
    MIN_SIGNIFICANT_SAVING_SHARE_OF_STEP,
    StepStatistics,
    step_statistics,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.trace import Trace
from selftime.units import share_text, tenths_text

MAX_REPLAYED_WAITING_LINES: Final = 12
"""Largest number of waiting source lines, longest waits first, whose cost is simulated line by
line."""

FUTURE_DEVICE_SPEEDUP: Final = 4.0
"""Assumed speed of a future device relative to the recorded one, about two generations later."""

MAX_SOURCE_LINES_PER_SENTENCE: Final = 3
"""Number of source lines that a sentence names at most."""


@dataclass(frozen=True, slots=True)
class LineWaitCost:
    """What one source line's waits for the device cost per typical recorded step, in ms."""

    saving_alone_ms: float
    """Saving in ms per step if only this line no longer waits."""
    saving_as_last_ms: float
    """Saving in ms per step if this line no longer waits after all other lines no longer do."""
    saving_with_operators_ms: float
    """Saving in ms per step if the operators around the waits are removed too."""


@dataclass(frozen=True, slots=True)
class WaitSiteAdvice:
    """Title and fix of a finding about one source line that waits for the device."""

    covers: tuple[str, ...]
    title: str
    fix: Fix


def changes_removing_waits(site: WaitSite) -> tuple[Change, ...]:
    """Returns the simulated changes that remove one line's waits for the device.

    The host stages a copy from pageable memory; without the wait it does not.
    """
    if site.cause == "upload":
        return RemoveWaits(site.call_ids), CutHostTime(site.wait_intervals)
    return (RemoveWaits(site.call_ids),)


@dataclass(frozen=True, slots=True)
class AllWaitCosts:
    """What all waits for the device cost per typical recorded step, in ms: in total and by line."""

    saving_without_waits_ms: float = 0.0
    """Saving in ms per step if no line waits; an upper bound for each single line."""
    saving_on_faster_device_ms: float = 0.0
    """Saving in ms per step if no line waits, on a device `FUTURE_DEVICE_SPEEDUP` times as fast."""
    cost_by_line: dict[WaitSite, LineWaitCost] = field(default_factory=dict)
    """Cost of each source line whose waits were simulated."""


@cached_per_trace
def wait_costs(trace: Trace) -> AllWaitCosts:
    """Returns what all waits for the device cost; if that is much, also the cost of each line."""
    limits = step_statistics(trace)
    sites = [site for site in wait_sites(trace) if site.is_regular]
    if limits is None or not sites:
        return AllWaitCosts()
    replay = replay_of(trace)

    def saved_ms(*changes: Change) -> float:
        return replayed_saving_ms(trace, limits, changes)

    every = [change for site in sites for change in changes_removing_waits(site)]
    together = saved_ms(*every, *(CutHostTime(site.operator_intervals) for site in sites))
    faster = ScaleDeviceWork(replay.graph.work.id, 1 / FUTURE_DEVICE_SPEEDUP)
    later = max(replay.step_time(faster) - replay.step_time(faster, *every), 0.0)
    later = limits.scaled_to_typical_step(later / 1e6)
    if not limits.is_saving_worth_reporting(together):
        return AllWaitCosts(together, later)
    joint = saved_ms(*every)
    found = {}
    for site in sites[:MAX_REPLAYED_WAITING_LINES]:
        own = changes_removing_waits(site)
        others = [c for other in sites if other is not site for c in changes_removing_waits(other)]
        alone = saved_ms(*own)
        last = joint - saved_ms(*others) if others else alone
        found[site] = LineWaitCost(
            alone, max(last, 0.0), saved_ms(*own, CutHostTime(site.operator_intervals))
        )
    return AllWaitCosts(together, later, found)


def outcomes_of_waiting_lines(
    trace: Trace, causes: tuple[str, ...], advise: Callable[[WaitSite], WaitSiteAdvice]
) -> Iterator[Outcome]:
    """Yields a rule's outcome for each source line that waits for the device due to `causes`."""
    if not trace.device_args.height:
        yield _outcome_without_device(trace, causes)
        return
    lacks = missing_requirement_sentences(trace, ("links", "steps"))
    limits = step_statistics(trace)
    if lacks or limits is None:
        yield Unknown("; ".join(lacks) or STEPS_WITH_DURATION)
        return
    own = [site for site in wait_sites(trace) if site.cause in causes]
    regular = [site for site in own if site.is_regular]
    if not regular:
        seldom = "in most of the recorded steps" if own else "in any recorded step"
        told = f"the program does not wait for the device in this way {seldom}"
        yield Checked(told, 0.0, is_absent=not own)
    priced = wait_costs(trace)
    for site in regular:
        advised, cost = advise(site), priced.cost_by_line.get(site)
        if cost is not None and limits.is_saving_worth_reporting(_likely_saving_ms(cost)):
            finding = _wait_finding(site, advised, cost, limits)
            yield _doubted_finding(finding) if reads_result(trace, site) else finding
        else:
            yield _outcome_of_insignificant_wait(site, cost, priced, limits)


def _doubted_finding(finding: Finding) -> Finding:
    """Returns a finding on a wait that may be for the result that the step is made for."""
    fix = replace(finding.fix, text=f"{finding.fix.text} {RESULT_TEXT}")
    return replace(finding, confidence="low", fix=fix)


def _wait_finding(
    site: WaitSite, advised: WaitSiteAdvice, cost: LineWaitCost, limits: StepStatistics
) -> Finding:
    """Returns the finding that one source line waits for the device."""
    return Finding(
        covers=advised.covers,
        title=advised.title,
        where=site.where,
        count_per_step=site.waits_per_step,
        claim=_saving_claim_for_waits(cost, site),
        confidence=_confidence_in_wait_saving(cost, limits),
        evidence=(
            Evidence(
                "waits a step",
                site.waits_per_step,
                "count",
                _first_call_id(site.call_ids),
                site.call_ids,
            ),
            Evidence(
                "waiting time a step, most of it hidden by device work",
                site.wait_ns_per_step / 1e6,
                "ms",
                (),
                site.call_ids,
            ),
            Evidence(
                "share of the step saved if this wait alone is removed",
                cost.saving_alone_ms / limits.step_ms,
                "ratio",
            ),
            Evidence(
                "share of the step saved once the other waits are removed",
                cost.saving_as_last_ms / limits.step_ms,
                "ratio",
            ),
        ),
        fix=advised.fix,
    )


def _saving_claim_for_waits(cost: LineWaitCost, site: WaitSite) -> ModelledClaim:
    """Returns a claim that removing a line's waits saves a time between its two savings in `cost`.

    The two are the savings if the line is the first, or the last, that no longer waits.
    """
    least, most = (
        min(cost.saving_alone_ms, cost.saving_as_last_ms),
        max(cost.saving_alone_ms, cost.saving_as_last_ms),
    )
    return ModelledClaim(
        _likely_saving_ms(cost),
        max(cost.saving_with_operators_ms, most),
        changes=changes_removing_waits(site),
        low_ms=least,
        low_share=REPLAYED_SAVING_RANGE.low,
        high_ms=most,
        may_exceed_max=True,
    )


def _likely_saving_ms(cost: LineWaitCost) -> float:
    """Returns the mean of `cost.saving_alone_ms` and `cost.saving_as_last_ms`, in ms per step."""
    return (cost.saving_alone_ms + cost.saving_as_last_ms) / 2


def _confidence_in_wait_saving(cost: LineWaitCost, limits: StepStatistics) -> Confidence:
    """Returns `high` if removing a line's waits saves much in any order of fixes, else `medium`."""
    return (
        "high"
        if limits.is_saving_worth_reporting(min(cost.saving_alone_ms, cost.saving_as_last_ms))
        else "medium"
    )


def _first_call_id(calls: np.ndarray) -> tuple[int, ...]:
    """Returns the first call's slice id in a tuple; an empty tuple if there are no calls."""
    return tuple(calls[:1].tolist())


def _outcome_of_insignificant_wait(
    site: WaitSite, cost: LineWaitCost | None, all_costs: AllWaitCosts, limits: StepStatistics
) -> Checked:
    """Returns the outcome that says why one line's waits are not worth a change."""
    most = (
        all_costs.saving_without_waits_ms
        if cost is None
        else max(cost.saving_alone_ms, cost.saving_as_last_ms, cost.saving_with_operators_ms)
    )
    place = str(site.where) if site.where.file else waiting_call_text(site)
    share = share_text(limits.scaled_to_typical_step(site.wait_ns_per_step / 1e6) / limits.step_ms)
    waits = f"waits at {place} ({tenths_text(site.waits_per_step)} a step, {share} of it)"
    if most < MIN_SIGNIFICANT_SAVING_SHARE_OF_STEP * limits.step_ms:
        later = share_text(all_costs.saving_on_faster_device_ms / limits.step_ms)
        told = (
            "cost nothing now: the device is busy meanwhile. On a "
            f"{FUTURE_DEVICE_SPEEDUP:.0f} times faster device all waits of a step would take "
            f"{later} of today's step time"
        )
    else:
        told = (
            "cost less than step times vary, or removing them saves nothing unless the other waits "
            "go too"
        )
    return Checked(f"{waits} {told}", most)


def _outcome_without_device(trace: Trace, causes: tuple[str, ...]) -> Unknown:
    """Returns the outcome for a CPU recording; it names lines that would wait for a device."""
    lines = lines_that_would_wait_for_device(trace)
    places = [place for cause in causes for place in lines.get(cause, ())]
    needs = "; ".join(missing_requirement_sentences(trace, ("device",)))
    if not places:
        return Unknown(needs)
    shown = ", ".join(str(place) for place in places[:MAX_SOURCE_LINES_PER_SENTENCE])
    more = (
        f" and {len(places) - MAX_SOURCE_LINES_PER_SENTENCE} more"
        if len(places) > MAX_SOURCE_LINES_PER_SENTENCE
        else ""
    )
    return Unknown(f"{needs}; there {shown}{more} would wait for it in every step")


def waiting_call_text(site: WaitSite) -> str:
    """Returns the name of the operator that waits at a source line, for a finding's title."""
    name = f"`{site.operators[-1]}`" if site.operators else "a call of its own"
    if site.where.file is None and site.annotation:
        return f"{name} in `{site.annotation}`"
    return name
