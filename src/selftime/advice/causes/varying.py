"""How a cause varies from step to step, which is less than all that varies with it."""

from typing import Final

import numpy as np

from selftime.advice.gate import Gate
from selftime.intervals import Intervals, before
from selftime.trace import Trace
from selftime.views.accounts.steps.judging import counted_windows

__all__ = ["gate_of"]

LEAST_STEPS: Final = 3
"""Of fewer steps nobody can tell how a cause varies."""


def gate_of(trace: Trace, limits: Gate, times: Intervals) -> Gate:
    """The gate for a cause that takes these times of the host.

    What the cause takes in one step and in another tells how it varies; that the steps vary for
    other reasons, as on a busy machine, speaks not against it. A cause that varies more than the
    steps do is held to the steps.
    """
    windows = counted_windows(trace)
    if windows.height < LEAST_STEPS or not times.starts.size:
        return limits
    start, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    taken = (before(times, end) - before(times, start)) / 1e6
    own = float(np.median(np.abs(taken - np.median(taken))))
    return limits.of_cause(min(own, limits.noise_ms))
