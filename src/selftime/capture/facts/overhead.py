"""How much longer a step takes while it is recorded."""

from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any


@dataclass(slots=True)
class StepTimes:
    """Durations of steps on the host, outside recordings and within.

    A step that warms something up, be it the program or the recorder, belongs in neither list.
    """

    source: str
    """What tells where a step ends: `prof.step()`, or what a recording found by itself."""
    unprofiled: list[int] = field(default_factory=list)
    profiled: list[int] = field(default_factory=list)
    unprofiled_faults: list[int] = field(default_factory=list)
    """Pages that the system gave in each step outside recordings, where it tells."""

    def add_unprofiled(self, elapsed: int, faults: int | None) -> None:
        self.unprofiled.append(elapsed)
        if faults is not None:
            self.unprofiled_faults.append(faults)

    def facts(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "unprofiled_ns": list(self.unprofiled),
            "profiled_ns": list(self.profiled),
            "unprofiled_page_faults": list(self.unprofiled_faults),
        }

    def overhead(self) -> dict[str, Any]:
        """The ratio of the lower quartiles, and the medians; null where there was no such step.

        What strikes some steps and not others, a pause or a busy machine, only makes them longer:
        the shorter ones are alike but for the recorder.
        """
        without, within = _lower_quartile(self.unprofiled), _lower_quartile(self.profiled)
        return {
            "ratio": within / without if within is not None and without else None,
            "unprofiled_median_ns": median(self.unprofiled) if self.unprofiled else None,
            "profiled_median_ns": median(self.profiled) if self.profiled else None,
        }


def _lower_quartile(times: list[int]) -> float | None:
    if len(times) < 2:
        return float(times[0]) if times else None
    return quantiles(times, n=4, method="inclusive")[0]
