"""Computes how long the parts of a recorded step take in a step without profiler.

What devices do takes as long without a profiler. The rest of the step shrinks, all of it by one
factor, so that the whole takes what the unrecorded steps take.
"""

from dataclasses import dataclass

import polars as pl

from selftime.analysis.recording_slowdown import recording_slowdown
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class UndisturbedFactors:
    """By which factors recorded times become those of a step without profiler."""

    on_device: float = 1.0
    elsewhere: float = 1.0


def undisturbed_factors_of_segments(
    trace: Trace, segments: pl.DataFrame, steps: int
) -> UndisturbedFactors:
    """Returns the factors for the segments of the account of so many steps."""
    time = segments["end"] - segments["start"]
    on_device_ns = int(time.filter(segments["on_device"]).sum())
    return undisturbed_factors(trace, on_device_ns // steps, int(time.sum()) // steps)


def undisturbed_factors(trace: Trace, device_ns: int, step_ns: int) -> UndisturbedFactors:
    """Returns the factors for the parts of a step; 1 where no step without profiler was timed.

    Args:
        trace: The trace.
        device_ns: How long the recorded step follows the work of devices, in ns.
        step_ns: How long the recorded step takes, in ns.
    """
    slowdown = recording_slowdown(trace)
    if slowdown is None:
        return UndisturbedFactors()
    whole_ns = step_ns / max(1.0, slowdown.of_typical_step)
    if device_ns < whole_ns:
        elsewhere = (whole_ns - device_ns) / (step_ns - device_ns)
        return UndisturbedFactors(elsewhere=elsewhere)
    uniform = whole_ns / step_ns if step_ns else 1.0
    return UndisturbedFactors(on_device=uniform, elsewhere=uniform)
