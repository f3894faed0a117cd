"""Find the steady step time of a process, without warm-up and unusual steps."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.capture.timing.order import StepTimes

FEWEST_STEPS: Final = 4
"""The fewest steps for a step time: at least half of them are kept, and one proves nothing."""


@dataclass(frozen=True, slots=True)
class SteadySteps:
    """The steady steps of one process."""

    step_ms: float
    """Their mean time in ms, which is the cost of one more step even if steps come in bursts."""
    all_ms: float
    """The mean time of all steps after the warm-up, including unusual ones, in ms."""
    steps: int
    """The number of steady steps."""
    warm_up: int
    """The number of warm-up steps, which are left out."""
    unlike: int
    """The number of unusual steps after the warm-up, which are left out."""
    settled: bool
    """Whether steps stopped getting faster or slower by the middle of the run."""
    source: str
    """The event that marks the end of a step."""
    clock: str
    """The clock that timed the steps: `host` or `device`."""


def steady_steps(times: StepTimes) -> SteadySteps | None:
    """Returns the steady step times of a process; None if it made too few steps.

    The first step, which sets the program up, is not among the times.
    """
    durations = np.asarray(times.durations, np.float64) / 1e6
    usual = np.frombuffer(times.unlike, np.uint8) == 0
    if np.count_nonzero(usual) < FEWEST_STEPS:
        return None
    at = np.flatnonzero(usual)
    cut = warm_up_steps(durations[at])
    kept, later = durations[at[cut:]], durations[at[cut] :]
    return SteadySteps(
        step_ms=float(kept.mean()),
        all_ms=float(later.mean()),
        steps=kept.size,
        warm_up=cut,
        unlike=durations.size - at.size,
        settled=cut < at.size // 2,
        source=times.source,
        clock="device" if times.is_of_device else "host",
    )


def warm_up_steps(durations: NDArray[np.float64]) -> int:
    """Returns how many steps to leave out at the beginning, at most half.

    It minimises the standard error of the mean of the remaining steps: with d of n left out, the
    sum of (x - mean)^2 over the others divided by (n - d)^2. A slow step at the beginning adds more
    error than its one value removes (White, "An effective truncation heuristic for bias reduction
    in simulation output", 1997: the marginal standard error rule).
    """
    count = durations.size
    left = count - np.arange(count // 2 + 1)
    # Sums over the remaining steps, centred near the mean to keep floating-point precision.
    centred = durations - np.median(durations)
    sums = np.cumsum(centred[::-1])[::-1][: left.size]
    squares = np.cumsum(centred[::-1] ** 2)[::-1][: left.size]
    apart = np.maximum(squares - sums**2 / left, 0.0)
    return int(np.argmin(apart / left.astype(np.float64) ** 2))
