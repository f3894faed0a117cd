"""Measures how much longer a step takes while the profiler records it."""

from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any


@dataclass(slots=True)
class StepOverhead:
    """Durations in ns of recorded and of unrecorded steps, and the overhead that they show.

    A step in which the program or the recorder warms up belongs to neither.
    """

    source: str
    """What marks the ends of steps, as text: `prof.step()`, or a kind of event such as
    `optimizer steps`."""
    unprofiled: list[int] = field(default_factory=list)
    profiled: list[int] = field(default_factory=list)
    unprofiled_page_faults: list[int] = field(default_factory=list)
    """Number of page faults in each unrecorded step; empty if the system does not count them."""
    detailed: list[int] = field(default_factory=list)
    """Durations of the steps that were recorded in detail, if other steps' times replace them."""
    timed: list[int] = field(default_factory=list)
    """Durations of those steps while their times were recorded, of which `profiled` has less what
    that cost."""
    matched_share: float | None = None
    """Share of the events recorded in detail that have the times of other steps; None without."""
    first_step: int | None = None
    """The number of the first recorded step in the run, from 1; None if unknown."""
    is_window: bool = False
    """Whether the recording holds a part of a step, or of a program without steps: its durations
    are then those of other work, and are left out."""
    left_out: dict[str, str | None] = field(default_factory=dict)
    """The options of `selftime run` with which details that it left out would be recorded, by
    detail: `shapes` or `stacks`; None where the memory does not suffice."""

    def of_window(self) -> "StepOverhead":
        """Returns what is known if the recording holds a part of a step: no durations."""
        return StepOverhead(self.source, is_window=True, left_out=self.left_out)

    def add_unprofiled(self, duration: int, page_faults: int | None) -> None:
        self.unprofiled.append(duration)
        if page_faults is not None:
            self.unprofiled_page_faults.append(page_faults)

    def replace_profiled(
        self, durations: list[int], timed: list[int], matched_share: float
    ) -> None:
        """Replaces the recorded steps' durations by those that their events have in the trace.

        Args:
            durations: Those in the trace, in ns.
            timed: Durations of the same steps while their times were recorded, in ns.
            matched_share: Share of the events that were found in these steps.
        """
        self.detailed, self.profiled, self.timed = self.profiled, durations, timed
        self.matched_share = matched_share

    def step_duration_facts(self) -> dict[str, Any]:
        left_out = {"left_out": self.left_out} if self.left_out else {}
        if self.is_window:
            window = {"window": True, "unprofiled_ns": [], "profiled_ns": []}
            return {"source": self.source, **window, **left_out}
        facts: dict[str, Any] = {
            **left_out,
            "source": self.source,
            "unprofiled_ns": list(self.unprofiled),
            "profiled_ns": list(self.profiled),
            "unprofiled_page_faults": list(self.unprofiled_page_faults),
        }
        if self.first_step is not None:
            facts["first_step"] = self.first_step
        if self.matched_share is not None:
            facts |= {
                "detailed_ns": list(self.detailed),
                "matched_share": self.matched_share,
                "removed_share": 1 - sum(self.profiled) / sum(self.timed) if sum(self.timed) else 0,
            }
        return facts

    def overhead_ratio_and_medians(self) -> dict[str, Any]:
        """Returns by name: recorded / unrecorded step duration, and both medians in ns.

        Pauses and other load only make steps longer, so the shorter steps differ by the recorder
        alone.
        """
        unprofiled, profiled = (
            lower_quartile_ns(self.unprofiled),
            lower_quartile_ns(self.profiled),
        )
        return {
            "ratio": profiled / unprofiled if profiled is not None and unprofiled else None,
            "unprofiled_median_ns": median(self.unprofiled) if self.unprofiled else None,
            "profiled_median_ns": median(self.profiled) if self.profiled else None,
        }


def lower_quartile_ns(durations: list[int]) -> float | None:
    """Returns the lower quartile of durations in ns; None without any."""
    if len(durations) < 2:
        return float(durations[0]) if durations else None
    return quantiles(durations, n=4, method="inclusive")[0]
