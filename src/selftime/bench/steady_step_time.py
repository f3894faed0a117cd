"""Computes the mean step time of a process, leaving out warm-up and unusual steps."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime.capture.timing.step_times import StepTimes

MIN_STEADY_STEPS: Final = 4
"""Smallest number of usual steps from which a step time is computed; up to half of them count as
warm-up."""


@dataclass(frozen=True, slots=True)
class SteadySteps:
    """Mean step time of one process, and how many steps it is computed from."""

    step_ms: float
    """Mean time of a steady step in ms, without warm-up and unusual steps."""
    all_ms: float
    """Mean time in ms of all steps after the warm-up, including unusual steps."""
    steps: int
    """Number of steady steps: those that are neither warm-up nor unusual."""
    warm_up: int
    """Number of warm-up steps, which are left out of the mean."""
    unusual_steps: int
    """Number of unusual steps after the warm-up, such as evaluations, which are left out of the
    mean."""
    is_steady_by_half: bool
    """Whether step times were steady by the middle of the run."""
    source: str
    """What marked the ends of steps, such as `optimizer steps`."""
    clock: str
    """Clock that timed the steps: `host` or `device`."""


def steady_steps(times: StepTimes) -> SteadySteps | None:
    """Returns the steady step time of a process; None if the process made too few steps.

    The first step, which sets the program up, is not among the times.
    """
    durations = np.asarray(times.durations, np.float64) / 1e6
    usual = np.frombuffer(times.unusual, np.uint8) == 0
    if np.count_nonzero(usual) < MIN_STEADY_STEPS:
        return None
    at = np.flatnonzero(usual)
    cut = count_warm_up_steps(durations[at])
    kept, later = durations[at[cut:]], durations[at[cut] :]
    return SteadySteps(
        step_ms=float(kept.mean()),
        all_ms=float(later.mean()),
        steps=kept.size,
        warm_up=cut,
        unusual_steps=durations.size - at.size,
        is_steady_by_half=cut < at.size // 2,
        source=times.source,
        clock="device" if times.is_device_clock else "host",
    )


def count_warm_up_steps(durations: NDArray[np.float64]) -> int:
    """Returns how many of the first steps are warm-up: at most half of all steps.

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
