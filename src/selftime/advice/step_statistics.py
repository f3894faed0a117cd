"""Decides which savings are large enough to report, by the step time and its variation.

A saving is significant if it is at least 2 % of the step, and more than the steps vary by. A large
one is reported though the steps vary by as much, with low confidence. Savings are those of a step
without the cost of recording: a recording that slows the steps makes costs look larger.
"""

from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final

import polars as pl

from selftime.advice.advice_result import TypicalStep
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.recording_slowdown import recording_slowdown
from selftime.analysis.steps.bound_by import step_bound_by
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_SIGNIFICANT_SAVING_SHARE_OF_STEP: Final = 0.02
"""Smallest share of the step that a saving must have to be reported."""
MIN_SAVING_TO_NOISE_RATIO: Final = 3.0
"""Smallest ratio of a saving to the deviation of step times for the saving not to count as
noise."""
LARGE_SAVING_SHARE_OF_STEP: Final = 0.1
"""Share of the step from which a saving is reported even if step times vary more."""
ASSUMED_RECORDING_SLOWDOWN: Final = 1.3
"""Assumed ratio of host time with profiler to host time without, where it was not measured."""
ASSUMED_RECORDING_SLOWDOWN_WITH_STACKS: Final = 1.7
"""Assumed ratio of host time with profiler and Python stacks to host time without profiler, where
it was not measured."""


@dataclass(frozen=True, slots=True)
class StepStatistics:
    """A trace's median step time and its variation in ms, and the slowdown by recording."""

    step_ms: float
    """Median time of the measured steps as recorded, in ms."""
    noise_ms: float = 0.0
    """Median absolute deviation of the measured steps' times, in ms; 0 for a single step."""
    mean_ms: float | None = None
    """Mean time of the measured steps, in ms; None if it equals the median."""
    measured_slowdown: float = 1.0
    """Measured ratio of step time with profiler to step time without; 1 if not measured."""
    assumed_slowdown: float = 1.0
    """Assumed ratio of host time with profiler to host time without; 1 if it was measured."""
    is_single: bool = False
    """Whether a single step was recorded, so that the variation between steps is unknown."""

    @property
    def unrecorded_step_ms(self) -> float:
        """Estimated median step time without profiler, in ms."""
        return self.unrecorded_time_ms(self.step_ms)

    @property
    def unrecorded_mean_step_ms(self) -> float:
        """Estimated mean step time without profiler, in ms; no less than the median."""
        return self.unrecorded_time_ms(max(self.step_ms, self.mean_ms or 0.0))

    def scaled_to_typical_step(self, mean_ms: float) -> float:
        """Returns `mean_ms`, a mean per step, times the ratio of median to mean step time."""
        return mean_ms * self.step_ms / self.mean_ms if self.mean_ms else mean_ms

    def least_significant_saving_ms(self) -> float:
        """Returns the smallest saving in a recorded step that is worth reporting, in ms."""
        noise = min(
            MIN_SAVING_TO_NOISE_RATIO * self.noise_ms, LARGE_SAVING_SHARE_OF_STEP * self.step_ms
        )
        return max(MIN_SIGNIFICANT_SAVING_SHARE_OF_STEP * self.step_ms, noise)

    def with_noise(self, noise_ms: float) -> "StepStatistics":
        """Returns a copy in which the variation between steps is `noise_ms`, in ms."""
        return replace(self, noise_ms=noise_ms)

    def is_saving_worth_reporting(self, recorded_saving_ms: float) -> bool:
        """Returns whether a saving in a recorded step, in ms, is large enough to report."""
        return recorded_saving_ms > 0 and recorded_saving_ms >= self.least_significant_saving_ms()

    def is_unrecorded_saving_worth_reporting(self, saved_ms: float) -> bool:
        """Returns whether a saving in a step without profiler, in ms, is large enough to report."""
        return self.is_saving_worth_reporting(saved_ms * self.measured_slowdown)

    def unrecorded_time_ms(self, time_ms: float) -> float:
        """Returns how long a recorded time would take without profiler, in ms."""
        return time_ms / self.measured_slowdown

    def reason_saving_is_small(self, finding_title: str) -> str:
        """Returns a sentence: the finding's title, and why its saving is too small to report."""
        is_noise = (
            self.least_significant_saving_ms() > MIN_SIGNIFICANT_SAVING_SHARE_OF_STEP * self.step_ms
        )
        least = whole_percent_text(MIN_SIGNIFICANT_SAVING_SHARE_OF_STEP)
        limit = (
            "the saving is within step-to-step variation"
            if is_noise
            else f"saves less than {least} of the step"
        )
        return f"{finding_title.rstrip('.')}: {limit}"


@cached_per_trace
def step_statistics(trace: Trace) -> StepStatistics | None:
    """Returns a trace's typical step and its variation; None if no measured step took time."""
    times = counted_step_times_ms(trace)
    typical = median(times) if times else 0.0
    if not typical:
        return None
    noise = median(abs(time - typical) for time in times)
    slowed = recording_slowdown(trace)
    if slowed is None:
        inflated = assumed_recording_slowdown(trace)
        found = StepStatistics(typical, noise, fmean(times), assumed_slowdown=inflated)
    else:
        found = StepStatistics(typical, noise, fmean(times), max(1.0, slowed.of_typical_step))
    return replace(found, is_single=trace.view("steps").height == 1)


def assumed_recording_slowdown(trace: Trace) -> float:
    """Returns the assumed ratio of host time with profiler to host time without."""
    return (
        ASSUMED_RECORDING_SLOWDOWN_WITH_STACKS
        if trace.frame_args.height
        else ASSUMED_RECORDING_SLOWDOWN
    )


def typical_step(trace: Trace) -> TypicalStep:
    """Returns the median times of the measured steps, in ms; None for unrecorded times."""
    counted = _counted_steps(trace)
    host, device = (
        _ns_to_ms_without_nulls(counted["host_time"]),
        _ns_to_ms_without_nulls(counted["device_time"]),
    )
    return TypicalStep(
        count=counted.height,
        device_ms=median(device) if device else None,
        host_ms=median(host) if host else None,
        regime=step_bound_by(trace),
    )


def counted_step_times_ms(trace: Trace) -> list[float]:
    """Returns the measured steps' device times in ms, or their host times without device times."""
    counted = _counted_steps(trace)
    return _ns_to_ms_without_nulls(counted["device_time"]) or _ns_to_ms_without_nulls(
        counted["host_time"]
    )


def _counted_steps(trace: Trace) -> pl.DataFrame:
    return trace.view("steps").filter(pl.col("counted"))


def _ns_to_ms_without_nulls(times_ns: pl.Series) -> list[float]:
    return [time / 1e6 for time in times_ns.drop_nulls().to_list()]
