"""Counts the waits of the host for the device in each step, by source line and operator."""

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import median_high
from typing import Final, Literal

WaitKind = Literal["sync", "copy_to_host", "copy_to_device"]
StepPhase = Literal["forward", "backward", "other"]
LineSource = Literal["stack", "backward"]

HARMLESS_COPY_KIND: Final = "harmless"
"""Value of `HostWait.kind` for an asynchronous copy of pinned memory, which makes no wait."""

_SORT_RANK_BY_WAIT_KIND: Final = {"sync": 0, "copy_to_host": 1, "copy_to_device": 2}


@dataclass(frozen=True, slots=True)
class UserSourceLocation:
    """A line of the user's code, and the line of an installed package that this line called."""

    file: str | None
    """Path of the user's file; None if the stack contains no frame of the user's code."""
    line: int | None
    function: str | None
    how: LineSource = "stack"
    inside: str | None = None
    """`FILE:LINE` in an installed package other than torch that called the operator; None
    without one."""


@dataclass(frozen=True, slots=True)
class HostWait:
    """A wait of the host for the device, or a copy without a wait, at a source line."""

    location: UserSourceLocation
    op: str
    kind: str
    """The kind of wait, one of `WaitKind`, or `HARMLESS_COPY_KIND` for a copy without a wait."""
    phase: StepPhase
    fix: str


@dataclass(frozen=True, slots=True)
class PreflightWaitSite:
    """A source line and operator at which the host would wait for the device, with counts."""

    file: str | None
    line: int | None
    function: str | None
    op: str
    kind: WaitKind
    phase: StepPhase
    times: int
    """Median number of waits per step, over the steps with at least one; without steps, the
    number in the run."""
    in_steps: int
    """Number of counted steps in which the host waits here; 0 if no steps were counted."""
    how: LineSource
    """How the line was found: `stack` if it was executing, `backward` if its gradient was
    computed."""
    inside: str | None
    fix: str


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A part of the program that a preflight cannot check, and why."""

    file: str | None
    line: int | None
    why: str


@dataclass
class PreflightWaits:
    """The waits of the host found so far by a preflight; can be read while the program runs."""

    _segments: list[Counter[HostWait]] = field(default_factory=lambda: [Counter()])
    """Number of each wait in the first step, in each further step, and after the last step."""
    _not_checked: dict[NotChecked, None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_wait(self, wait: HostWait) -> None:
        with self._lock:
            self._segments[-1][wait] += 1

    def leave_unchecked(self, location: UserSourceLocation, why: str) -> None:
        self._not_checked.setdefault(NotChecked(location.file, location.line, why))

    def end_step(self) -> None:
        """Ends the current step and begins the next."""
        with self._lock:
            self._segments.append(Counter())

    def forget_steps(self) -> None:
        """Excludes all steps so far from the count, because their ends were wrong."""
        with self._lock:
            self._segments = [sum(self._segments, Counter())]

    @property
    def steps(self) -> int:
        """Returns the number of counted steps, which are all complete steps except the first."""
        return max(0, len(self._segments) - 2)

    @property
    def sites(self) -> list[PreflightWaitSite]:
        """Returns the waits in steps after the first; in a run without steps, all waits."""
        return [s for s in self._sites_in_and_outside_steps() if s.in_steps or not self.steps]

    @property
    def sites_outside_steps(self) -> list[PreflightWaitSite]:
        """Returns the waits that occur only in the first step or outside of all steps."""
        return [s for s in self._sites_in_and_outside_steps() if self.steps and not s.in_steps]

    @property
    def harmless_copies(self) -> int:
        """Returns the median number of copies without a wait per step; without steps, all."""
        counts = [
            sum(n for wait, n in segment.items() if wait.kind == HARMLESS_COPY_KIND)
            for segment in self._wait_counts_of_counted_steps()
        ]
        return median_high(counts)

    @property
    def not_checked(self) -> list[NotChecked]:
        return sorted(self._not_checked, key=lambda n: (n.file or "", n.line or 0, n.why))

    def _wait_counts_of_counted_steps(self) -> list[Counter[HostWait]]:
        if self.steps:
            return self._segments[1:-1]
        return [sum(self._segments, Counter())]

    def _sites_in_and_outside_steps(self) -> list[PreflightWaitSite]:
        with self._lock:
            counted, everything = (
                self._wait_counts_of_counted_steps(),
                sum(self._segments, Counter()),
            )
            steps = self.steps
        sites = []
        for waits in _group_forward_and_other_phases(everything):
            totals = [sum(segment[wait] for wait in waits) for segment in counted]
            times = [total for total in totals if total]
            count = median_high(times) if times else sum(everything[wait] for wait in waits)
            most_frequent = max(waits, key=lambda wait: (everything[wait], wait.phase))
            sites.append(_site_of_wait(most_frequent, count, len(times) if steps else 0))
        return sorted(sites, key=_site_sort_key)


def _group_forward_and_other_phases(waits: Counter[HostWait]) -> list[list[HostWait]]:
    """Groups equal waits of phases `forward` and `other`; other phases stay apart.

    A line may run in phase `other` in a step before the first graph is built.
    """
    groups: dict[HostWait, list[HostWait]] = {}
    for wait in waits:
        if wait.kind != HARMLESS_COPY_KIND:
            phase: StepPhase = "backward" if wait.phase == "backward" else "other"
            groups.setdefault(replace(wait, phase=phase), []).append(wait)
    return list(groups.values())


def _site_of_wait(wait: HostWait, times: int, in_steps: int) -> PreflightWaitSite:
    location, kind = wait.location, wait.kind
    return PreflightWaitSite(
        file=location.file,
        line=location.line,
        function=location.function,
        op=wait.op,
        kind=kind,  # type: ignore[arg-type]  # harmless ones are left out above
        phase=wait.phase,
        times=times,
        in_steps=in_steps,
        how=location.how,
        inside=location.inside,
        fix=wait.fix,
    )


def _site_sort_key(site: PreflightWaitSite) -> tuple[str, int, int, str, str]:
    return (
        site.file or "~",
        site.line or 0,
        _SORT_RANK_BY_WAIT_KIND[site.kind],
        site.phase,
        site.op,
    )
