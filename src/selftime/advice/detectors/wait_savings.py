"""What the sites of waits cost: alone, and once the other waits are gone.

Waits hide each other. A program that waits twice for the same queue gains nothing if only one of
them goes: the other then waits longer. So each site is priced twice by the replay, alone and as the
last to go; the mean of both is its share (of two sites their Shapley values), and the two bound it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from selftime.advice.base import (
    Checked,
    Confidence,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Unknown,
)
from selftime.advice.detectors.wait_sites import Site, lines_that_would_wait, sites_of_waits
from selftime.advice.gate import LEAST_SHARE, Gate, gate
from selftime.advice.pricing import ERROR
from selftime.advice.replay import Change, Cut, Scale, Unwait, replay_of
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.requirements import missing
from selftime.trace import Trace

MOST_SITES: Final = 12
"""So many sites are replayed one by one, those that wait longest: more would take too long."""

FASTER: Final = 4.0
"""Times as fast is the device of the next machine, about two generations on."""

SHOWN: Final = 3
"""Lines named in a sentence."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a site costs the typical step, in ms as recorded."""

    alone: float
    """Saved if only this site goes."""
    last: float
    """Saved by its going if the others are gone."""
    removed: float
    """Saved if the operators around it go too."""


@dataclass(frozen=True, slots=True)
class Advised:
    """What a rule says of a site."""

    covers: tuple[str, ...]
    title: str
    fix: Fix


def changes_of(site: Site) -> tuple[Change, ...]:
    """What the replay changes if the site no longer waits.

    A copy from pageable memory is staged by the host: without the wait it is not.
    """
    if site.cause == "upload":
        return Unwait(site.calls), Cut(site.held)
    return (Unwait(site.calls),)


@dataclass(frozen=True, slots=True)
class Costs:
    """What all sites cost, in ms as recorded, and each of those that were worth a replay."""

    together: float = 0.0
    """At most saved by all of them: none of them costs more."""
    later: float = 0.0
    """Saved by all of them on a device that is `FASTER`."""
    each: dict[Site, Cost] = field(default_factory=dict)


@cached_per_trace
def costs(trace: Trace) -> Costs:
    """The costs of the sites; each alone only if all of them together pass the gate."""
    limits = gate(trace)
    sites = [site for site in sites_of_waits(trace) if site.is_regular]
    if limits is None or not sites:
        return Costs()
    replay = replay_of(trace)

    def saved(*changes: Change) -> float:
        return limits.typical(replay.saving(*changes) / 1e6)

    every = [change for site in sites for change in changes_of(site)]
    together = saved(*every, *(Cut(site.around) for site in sites))
    faster = Scale(replay.graph.work.id, 1 / FASTER)
    later = max(replay.step_time(faster) - replay.step_time(faster, *every), 0.0)
    later = limits.typical(later / 1e6)
    if not limits.passes(together):
        return Costs(together, later)
    joint = saved(*every)
    found = {}
    for site in sites[:MOST_SITES]:
        own = changes_of(site)
        others = [c for other in sites if other is not site for c in changes_of(other)]
        alone = saved(*own)
        last = joint - saved(*others) if others else alone
        found[site] = Cost(alone, max(last, 0.0), saved(*own, Cut(site.around)))
    return Costs(together, later, found)


def found_at(
    trace: Trace, causes: tuple[str, ...], advise: Callable[[Site], Advised]
) -> Iterator[Outcome]:
    """The outcomes of a rule on the sites of some causes."""
    if not trace.device_args.height:
        yield _without_device(trace, causes)
        return
    lacks = missing(trace, ("links", "steps"))
    limits = gate(trace)
    if lacks or limits is None:
        yield Unknown("; ".join(lacks) or "steps whose time can be told")
        return
    own = [site for site in sites_of_waits(trace) if site.cause in causes]
    regular = [site for site in own if site.is_regular]
    if not regular:
        seldom = "in most of the steps" if own else "in any step"
        told = f"the program does not wait for the device in this way {seldom}"
        yield Checked(told, 0.0, is_absent=not own)
    priced = costs(trace)
    for site in regular:
        advised, cost = advise(site), priced.each.get(site)
        judged = limits.judge(_finding(site, advised, cost, limits)) if cost else None
        yield judged if isinstance(judged, Finding) else _free(site, cost, priced, limits)


def _finding(site: Site, advised: Advised, cost: Cost, limits: Gate) -> Finding:
    return Finding(
        covers=advised.covers,
        title=advised.title,
        where=site.where,
        count_per_step=site.per_step,
        saving=_saving(cost, limits),
        confidence=_confidence(cost, limits),
        evidence=(
            Evidence("waits a step", site.per_step, "count", _first(site.calls)),
            Evidence(
                "waiting time a step, most of it hidden by device work", site.wait_ns / 1e6, "ms"
            ),
            Evidence("saving if this wait alone is removed", limits.unrecorded(cost.alone), "ms"),
            Evidence("saving once the other waits are removed", limits.unrecorded(cost.last), "ms"),
        ),
        fix=advised.fix,
        changes=changes_of(site),
    )


def _saving(cost: Cost, limits: Gate) -> Saving:
    estimate = min((cost.alone + cost.last) / 2, limits.step_ms)
    least, most = min(cost.alone, cost.last), max(cost.alone, cost.last)
    upper = min(max(cost.removed, most, (1 + ERROR) * estimate), limits.step_ms)
    return Saving.of_step(
        limits.step_ms,
        estimate,
        method="replay",
        low_ms=(1 - ERROR) * least,
        high_ms=min(max((1 + ERROR) * estimate, most), upper),
        upper_ms=upper,
    )


def _confidence(cost: Cost, limits: Gate) -> Confidence:
    return "high" if limits.passes(min(cost.alone, cost.last)) else "medium"


def _first(calls: np.ndarray) -> tuple[int, ...]:
    return tuple(calls[:1].tolist())


def _free(site: Site, cost: Cost | None, every: Costs, limits: Gate) -> Checked:
    """The verdict on waits that are not worth a change: free, or less than can be told."""
    most = every.together if cost is None else max(cost.alone, cost.last, cost.removed)
    place = str(site.where) if site.where.file else described(site)
    waits = f"waits at {place} ({site.per_step:.3g} a step, {site.wait_ns / 1e6:.2f} ms)"
    if most < LEAST_SHARE * limits.step_ms:
        later = limits.unrecorded(every.later)
        told = (
            "cost nothing today, as the device is busy meanwhile; on a device "
            f"{FASTER:.0f} times as fast all waits of a step would cost {later:.2f} ms"
        )
    else:
        told = "cost less than the steps vary, or less than the other waits leave"
    return Checked(f"{waits} {told}", limits.unrecorded(most))


def _without_device(trace: Trace, causes: tuple[str, ...]) -> Unknown:
    lines = lines_that_would_wait(trace)
    places = [place for cause in causes for place in lines.get(cause, ())]
    needs = "; ".join(missing(trace, ("device",)))
    if not places:
        return Unknown(needs)
    shown = ", ".join(str(place) for place in places[:SHOWN])
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return Unknown(f"{needs}; there {shown}{more} would wait for it in every step")


def described(site: Site) -> str:
    """What the program calls at a site, for a title."""
    name = f"`{site.operators[-1]}`" if site.operators else "a call of its own"
    if site.where.file is None and site.annotation:
        return f"{name} in `{site.annotation}`"
    return name
