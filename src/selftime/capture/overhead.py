"""How much longer a step takes while it is recorded."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

__all__ = ["StepTimes"]


@dataclass(slots=True)
class StepTimes:
    """Durations of steps on the host, outside recordings and within.

    A step that warms something up, be it the program or the recorder, belongs in neither list.
    """

    source: str
    """What tells where a step ends: `prof.step()`, or what a recording found by itself."""
    unprofiled: list[int] = field(default_factory=list)
    profiled: list[int] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "unprofiled_ns": list(self.unprofiled),
            "profiled_ns": list(self.profiled),
        }

    def overhead(self) -> dict[str, Any]:
        """The medians and their ratio; null where there was no such step."""
        without = median(self.unprofiled) if self.unprofiled else None
        within = median(self.profiled) if self.profiled else None
        return {
            "ratio": within / without if within is not None and without else None,
            "unprofiled_median_ns": without,
            "profiled_median_ns": within,
        }
