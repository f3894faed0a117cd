"""What worker processes can do for the loading of data, on the machine that was recorded.

With W workers, batches arrive every L / W; the step takes C without waiting; and all that computes
shares the cores: T' = max(C, L / W, (host work of C + what of L computes) / cores) + h, where h is
the hand-over of a batch from a worker to the loop. Loading that waits for storage needs no core:
where Python frames were recorded, those that wait tell how much of it does.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from selftime.advice.detectors.cpu_usage import Workers, cores_of
from selftime.advice.detectors.loading import Loading

HAND_OVER_MS: Final = 1.0
"""What `next` takes when the batch is ready: 0.1 to 1.9 ms on recorded loops."""

USUAL_WORKERS: Final = 4
"""Workers to assume where the machine's cores are not known."""

MOST_WORKERS: Final = 8
"""More are not recommended without a measurement."""

WORTH: Final = 0.02
"""A further worker must take this share off the step."""


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
    cores, threads = cores_of(facts), facts.get("threads")
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


def more_workers(loading: Loading, workers: Workers, facts: Mapping[str, Any]) -> Prediction:
    """The step of a loop whose workers are too slow, with as many as it takes.

    Those there are never rest but to wait for storage: a batch takes as many steps as there are
    workers, and computes for as much of that as they ask for a core.
    """
    total = workers.count * loading.step
    demand = 1.0 if workers.demand is None else workers.demand
    waiting = (1.0 - demand) * total
    return without_waiting(replace(loading, total=total, waiting=waiting), facts)


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
