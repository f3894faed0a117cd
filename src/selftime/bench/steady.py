"""How long a step takes once a program has warmed up, of the times of all steps of one process."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.capture.timing.order import StepTimes

FEWEST: Final = 4
"""Steps of which a pace is told: half of them are kept at least, and one alone may be any."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The steady steps of one process."""

    step_ms: float
    """Their mean: what it takes for one more step, where steps come in bursts too."""
    all_ms: float
    """The mean of all steps after the warm-up, with those that are unlike the others."""
    steps: int
    """Of which `step_ms` is."""
    warm_up: int
    """Steps that were left out at the beginning."""
    unlike: int
    """Steps that were left out since, as something happened in them that happens in few."""
    settled: bool
    """Whether steps were no longer getting faster or slower half-way at the latest."""
    source: str
    """What told where steps end."""
    clock: str
    """`host` or `device`."""


def pace(times: StepTimes) -> Pace | None:
    """The pace of a process; None if it made too few steps.

    The step that sets the program up is not among the times.
    """
    durations = np.asarray(times.durations, np.float64) / 1e6
    usual = np.frombuffer(times.unlike, np.uint8) == 0
    if np.count_nonzero(usual) < FEWEST:
        return None
    at = np.flatnonzero(usual)
    cut = warm_up(durations[at])
    kept, later = durations[at[cut:]], durations[at[cut] :]
    return Pace(
        step_ms=float(kept.mean()),
        all_ms=float(later.mean()),
        steps=kept.size,
        warm_up=cut,
        unlike=durations.size - at.size,
        settled=cut < at.size // 2,
        source=times.source,
        clock="device" if times.is_of_device else "host",
    )


def warm_up(durations: NDArray[np.float64]) -> int:
    """How many steps to leave out at the beginning: at most half.

    As many as make the standard error of the mean of those that are left the smallest: with d left
    out of n that is the sum of (x - mean)^2 over the others, by (n - d)^2. A slow step at the
    beginning costs more than the one value that it adds (White, "An effective truncation heuristic
    for bias reduction in simulation output", 1997: the marginal standard error rule).
    """
    count = durations.size
    left = count - np.arange(count // 2 + 1)
    # The sums of what is left from each step on, about a value near the mean, so none is lost.
    centred = durations - np.median(durations)
    sums = np.cumsum(centred[::-1])[::-1][: left.size]
    squares = np.cumsum(centred[::-1] ** 2)[::-1][: left.size]
    apart = np.maximum(squares - sums**2 / left, 0.0)
    return int(np.argmin(apart / left.astype(np.float64) ** 2))
