"""Computes how long the parts of a recorded step take in a step without profiler.

What devices do takes as long without a profiler. The rest of the step shrinks, all of it by one
factor, so that the whole takes what the unrecorded steps take.
"""

from dataclasses import dataclass

from selftime.advice.step_statistics import step_statistics
from selftime.analysis.recording_slowdown import recording_slowdown
from selftime.trace import Trace


@dataclass(frozen=True, slots=True)
class UndisturbedFactors:
    """By which factors recorded times become those of a step without profiler."""

    is_measured: bool
    """Whether steps without profiler were timed; if not, both factors are 1."""
    on_device: float = 1.0
    elsewhere: float = 1.0


def undisturbed_factors(trace: Trace, device_ns: int, step_ns: int) -> UndisturbedFactors:
    """Returns the factors for the parts of a step.

    Args:
        trace: The trace.
        device_ns: How long the recorded step follows the work of devices, in ns.
        step_ns: How long the recorded step takes, in ns.
    """
    stats = step_statistics(trace)
    if stats is None or recording_slowdown(trace) is None:
        return UndisturbedFactors(is_measured=False)
    whole_ns = stats.unrecorded_time_ms(step_ns)
    if device_ns < whole_ns:
        elsewhere = (whole_ns - device_ns) / (step_ns - device_ns)
        return UndisturbedFactors(is_measured=True, elsewhere=elsewhere)
    uniform = whole_ns / step_ns if step_ns else 1.0
    return UndisturbedFactors(is_measured=True, on_device=uniform, elsewhere=uniform)
