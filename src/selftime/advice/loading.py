"""What a step would take if worker processes loaded its data.

With W workers, batches arrive every L / W; the step takes C without waiting; and all that computes
shares the cores: T' = max(C, L / W, (host work of C + what of L computes) / cores) + h, where h is
the hand-over of a batch from a worker to the loop. Loading that waits for storage needs no core:
where Python frames were recorded, those that wait tell how much of it does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Loading", "Prediction", "without_waiting"]

HAND_OVER_MS: Final = 1.0
"""What `next` takes when the batch is ready: 0.1 to 1.4 ms on recorded loops."""

USUAL_WORKERS: Final = 4
"""Workers to assume where the machine's cores are not known."""

MOST_WORKERS: Final = 8
"""More are not recommended without a measurement."""


@dataclass(frozen=True, slots=True)
class Loading:
    """The typical step and its data loading, in ms."""

    step: float
    exposed: float
    """Loading while nothing else ran."""
    total: float
    """Time in the loader on the main thread."""
    waiting: float
    """Of that, in frames that wait for storage, a socket or a timer; 0 where none was recorded."""
    noise: float
    """How the exposed loading varies from step to step."""
    shares: tuple[float, ...]
    """Exposed share of each step."""
    rest: float
    """The step without its loading, by the replay."""
    lag: float
    """How far the device is behind the host."""
    has_workers: bool
    has_device: bool


@dataclass(frozen=True, slots=True)
class Prediction:
    """The step with workers, in ms: if loading computes all the time, and if it only waits."""

    likely: float
    best: float
    workers: int
    cores_known: bool


def without_waiting(loading: Loading, facts: Mapping[str, Any]) -> Prediction:
    """The step with enough workers for the machine that `facts` describe."""
    rest = loading.rest
    cores, threads = _cores(facts), facts.get("threads")
    workers = _workers(loading, cores)
    if loading.has_workers:
        # Starved: batches arrive once a step. Twice the workers make them in half the time.
        halved = max(rest, loading.step / 2)
        return Prediction(halved, rest, workers, cores_known=False)
    best = max(rest, loading.total / max(workers, USUAL_WORKERS)) + HAND_OVER_MS
    if cores is None:
        return Prediction(best, best, workers, cores_known=False)
    busy = min(threads, cores) if isinstance(threads, int) and not loading.has_device else 1
    computing = (busy * rest + loading.total - loading.waiting) / cores
    likely = max(rest, loading.total / workers, computing) + HAND_OVER_MS
    return Prediction(likely, min(best, likely), workers, cores_known=True)


def _workers(loading: Loading, cores: float | None) -> int:
    """One a free core; where most of the loading waits, as many as hide it in the step."""
    if loading.waiting > loading.total / 2:
        hiding = math.ceil(loading.total / max(loading.rest, HAND_OVER_MS))
        return max(USUAL_WORKERS, min(MOST_WORKERS, hiding))
    return USUAL_WORKERS if cores is None else max(1, min(MOST_WORKERS, int(cores) - 1))


def _cores(facts: Mapping[str, Any]) -> float | None:
    told = facts.get("cores")
    cores = told.get("effective") if isinstance(told, Mapping) else None
    return float(cores) if isinstance(cores, int | float) and cores >= 1 else None
