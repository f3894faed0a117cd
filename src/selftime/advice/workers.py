"""What worker processes can do for the loading of data, on the machine that was recorded.

With W workers, batches arrive every L / W; the step takes C without waiting; and all that computes
shares the cores: T' = max(C, L / W, (host work of C + what of L computes) / cores) + h, where h is
the hand-over of a batch from a worker to the loop. Loading that waits for storage needs no core:
where Python frames were recorded, those that wait tell how much of it does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from selftime.advice.loading import Loading

__all__ = ["Prediction", "Workers", "without_waiting"]

HAND_OVER_MS: Final = 1.0
"""What `next` takes when the batch is ready: 0.1 to 1.9 ms on recorded loops."""

USUAL_WORKERS: Final = 4
"""Workers to assume where the machine's cores are not known."""

MOST_WORKERS: Final = 8
"""More are not recommended without a measurement."""

WORTH: Final = 0.02
"""A further worker must take this share off the step."""

SATURATED: Final = 0.85
"""Cores that are used so much have nothing left for more workers."""

COMPUTING: Final = 0.5
"""Workers that ask for a core so much of the time are slow because they compute."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The step with workers, in ms: if loading computes all the time, and if it only waits."""

    likely: float
    best: float
    workers: int
    cores_known: bool


def without_waiting(loading: Loading, facts: Mapping[str, Any]) -> Prediction:
    """The step of a loop that loads by itself, with the workers that its machine has cores for."""
    rest = loading.rest
    cores, threads = _cores(facts), facts.get("threads")
    if cores is None:
        best = max(rest, loading.total / USUAL_WORKERS) + HAND_OVER_MS
        workers = _hiding(loading) if _waits(loading) else USUAL_WORKERS
        return Prediction(best, best, workers, cores_known=False)
    busy = min(threads, cores) if isinstance(threads, int) and not loading.has_device else 1
    computing = (busy * rest + loading.total - loading.waiting) / cores

    def step(workers: int) -> float:
        return max(rest, loading.total / workers, computing) + HAND_OVER_MS

    workers = _hiding(loading) if _waits(loading) else _enough(step, cores)
    likely = step(workers)
    best = max(rest, loading.total / max(workers, USUAL_WORKERS)) + HAND_OVER_MS
    return Prediction(likely, min(best, likely), workers, cores_known=True)


def _waits(loading: Loading) -> bool:
    return loading.waiting > loading.total / 2


def _hiding(loading: Loading) -> int:
    """Workers that hide loading which waits: these need no core."""
    hiding = math.ceil(loading.total / max(loading.rest, HAND_OVER_MS))
    return max(USUAL_WORKERS, min(MOST_WORKERS, hiding))


def _enough(step: Any, cores: float) -> int:
    """The fewest workers beyond which another gains nothing worth it; at most one a core."""
    most = max(1, min(MOST_WORKERS, int(cores)))
    best = step(most)
    return next(count for count in range(1, most + 1) if step(count) <= (1 + WORTH) * best)


@dataclass(frozen=True, slots=True)
class Workers:
    """What the recording knows of its worker processes; None for what it does not."""

    count: int
    demand: float | None
    """The share of the time in which a worker asked for a core, had it been the only one."""
    used: float | None
    """The share of the cores' time that was used, by whomever."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Workers | None":
        """What the facts `usage` and `cores` tell; None if they do not."""
        usage = facts.get("usage")
        told = usage.get("workers") if isinstance(usage, Mapping) else None
        if not isinstance(usage, Mapping) or not isinstance(told, Mapping):
            return None
        wall, count = _number(usage.get("wall_s")), told.get("count")
        if not isinstance(count, int) or count < 1 or not wall:
            return None
        spent, cores = _number(told.get("cpu_s")), _cores(facts)
        return cls(count, _demand(spent, wall * count, facts), _used(usage, spent, wall, cores))

    @property
    def saturate(self) -> bool:
        """Whether they compute, and no core is free for more of them."""
        return (
            self.demand is not None
            and self.demand > COMPUTING
            and self.used is not None
            and self.used > SATURATED
        )


def _demand(spent: float | None, time: float, facts: Mapping[str, Any]) -> float | None:
    """CPU time against what the workers could get: on a loaded machine no process has a core."""
    if spent is None:
        return None
    told, cores = facts.get("cores"), _cores(facts)
    load = _number(told.get("load")) if isinstance(told, Mapping) else None
    fair = min(1.0, cores / load) if cores and load else 1.0
    return min(1.0, spent / (time * fair))


def _used(
    usage: Mapping[str, Any], spent: float | None, wall: float, cores: float | None
) -> float | None:
    """By all processes on the cores, or by this program of what a container may use."""
    shares = [_number(usage.get("busy"))]
    own = _number(usage.get("process_s"))
    if own is not None and spent is not None and cores:
        shares.append(min(1.0, (own + spent) / (wall * cores)))
    known = [share for share in shares if share is not None]
    return max(known) if known else None


def _cores(facts: Mapping[str, Any]) -> float | None:
    told = facts.get("cores")
    cores = _number(told.get("effective")) if isinstance(told, Mapping) else None
    return cores if cores is not None and cores >= 1 else None


def _number(told: Any) -> float | None:
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return float(told) if is_number and math.isfinite(told) and told >= 0 else None
