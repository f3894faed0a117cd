"""What a preflight finds: places where the host would wait, counted by step."""

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import median_high
from typing import Final, Literal

Kind = Literal["sync", "copy_to_host", "copy_to_device"]
Phase = Literal["forward", "backward", "other"]
How = Literal["stack", "backward"]

HARMLESS: Final = "harmless"
"""What is no wait: a copy of pinned memory that the program does not wait for."""

_SEVERITY: Final = {"sync": 0, "copy_to_host": 1, "copy_to_device": 2}


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's own code, and through which installed package it got there."""

    file: str | None
    """None where no frame of the user's is on the stack."""
    line: int | None
    function: str | None
    how: How = "stack"
    inside: str | None = None
    """The line of an installed package (not torch) that did it for the user, `FILE:LINE`."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One occurrence, without its number."""

    place: Place
    op: str
    kind: str
    """A `Kind`, or `HARMLESS`."""
    phase: Phase
    fix: str


@dataclass(frozen=True, slots=True)
class Site:
    """A place where the host would wait for the device."""

    file: str | None
    line: int | None
    function: str | None
    op: str
    kind: Kind
    phase: Phase
    times: int
    """In a step: the median of the steps that have it. Without steps, in the whole run."""
    in_steps: int
    """In how many of the counted steps it occurs; 0 where no steps were counted."""
    how: How
    """`stack`: the line was executing. `backward`: the line whose gradient was computed."""
    inside: str | None
    fix: str


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A part of the program that a preflight cannot judge, and why."""

    file: str | None
    line: int | None
    why: str


@dataclass
class Found:
    """What was found so far; it can be read while the program runs."""

    _segments: list[Counter[Wait]] = field(default_factory=lambda: [Counter()])
    """By step: all up to the end of the first, then one for each, and what follows the last."""
    _not_checked: dict[NotChecked, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, wait: Wait) -> None:
        with self._lock:
            self._segments[-1][wait] += 1

    def leave_unchecked(self, place: Place, why: str) -> None:
        self._not_checked.setdefault(NotChecked(place.file, place.line, why))

    def end_step(self) -> None:
        """Count what comes from now on for the next step."""
        with self._lock:
            self._segments.append(Counter())

    def forget_steps(self) -> None:
        """All that was found belongs before the first step: what told the steps was wrong."""
        with self._lock:
            self._segments = [sum(self._segments, Counter())]

    @property
    def steps(self) -> int:
        """Steps that count: all that have ended but the first, which shares with the start."""
        return max(0, len(self._segments) - 2)

    @property
    def sites(self) -> list[Site]:
        """Where the host waits in a step that counts; in the whole run if there is none."""
        return [s for s in self._all() if s.in_steps or not self.steps]

    @property
    def outside(self) -> list[Site]:
        """Where the host waits only before the steps, in the first, or after the last."""
        return [s for s in self._all() if self.steps and not s.in_steps]

    @property
    def harmless(self) -> int:
        """Copies of a step that the host does not wait for; of the whole run without steps."""
        counts = [
            sum(n for wait, n in segment.items() if wait.kind == HARMLESS)
            for segment in self._counted()
        ]
        return median_high(counts)

    @property
    def not_checked(self) -> list[NotChecked]:
        return sorted(self._not_checked, key=lambda n: (n.file or "", n.line or 0, n.why))

    def _counted(self) -> list[Counter[Wait]]:
        if self.steps:
            return self._segments[1:-1]
        return [sum(self._segments, Counter())]

    def _all(self) -> list[Site]:
        with self._lock:
            counted, everything = self._counted(), sum(self._segments, Counter())
            steps = self.steps
        sites = []
        for waits in _alike(everything):
            totals = [sum(segment[wait] for wait in waits) for segment in counted]
            times = [total for total in totals if total]
            often = median_high(times) if times else sum(everything[wait] for wait in waits)
            usual = max(waits, key=lambda wait: (everything[wait], wait.phase))
            sites.append(_site(usual, often, len(times) if steps else 0))
        return sorted(sites, key=_order)


def _alike(waits: Counter[Wait]) -> list[list[Wait]]:
    """Those that differ in the phase alone: a line may come before the first graph is built."""
    groups: dict[Wait, list[Wait]] = {}
    for wait in waits:
        if wait.kind != HARMLESS:
            phase: Phase = "backward" if wait.phase == "backward" else "other"
            groups.setdefault(replace(wait, phase=phase), []).append(wait)
    return list(groups.values())


def _site(wait: Wait, times: int, in_steps: int) -> Site:
    place, kind = wait.place, wait.kind
    return Site(
        file=place.file,
        line=place.line,
        function=place.function,
        op=wait.op,
        kind=kind,  # type: ignore[arg-type]  # harmless ones are left out above
        phase=wait.phase,
        times=times,
        in_steps=in_steps,
        how=place.how,
        inside=place.inside,
        fix=wait.fix,
    )


def _order(site: Site) -> tuple[str, int, int, str, str]:
    return (site.file or "~", site.line or 0, _SEVERITY[site.kind], site.phase, site.op)
