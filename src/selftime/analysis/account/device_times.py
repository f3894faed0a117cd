"""Measures how long devices work in the steps that an account divides, whatever the host does.

The account follows the longest chain of a step. Where the host launches hardly faster than a device
computes, that chain may run through the launches, though the device is hardly idle; and it passes
by the communication beside which the host is at work. Both show in these times.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from selftime.analysis.account.undisturbed_step import undisturbed_factors_of_segments
from selftime.analysis.device.device_work import device_work
from selftime.analysis.health.recording_under_check import is_device_work_mostly_lost
from selftime.analysis.slice_filters import covered_time
from selftime.intervals import intersect, length, subtract, union
from selftime.trace import Trace

_NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class DeviceTimes:
    """How long devices work in a mean step."""

    busy_ms: float
    """Time in ms in which at least one device works."""
    communication_ms: float
    """Part of `busy_ms` in which all work of devices is communication."""


def device_times_of_mean_step(
    trace: Trace, segments: pl.DataFrame, steps: int
) -> DeviceTimes | None:
    """Returns how long devices work in a step; None where their work was not recorded, or lost.

    It is of a step without recording, where the time of such a step is known.

    Args:
        trace: The trace.
        segments: The segments of the account of these steps, with start and end in ns.
        steps: The number of these steps.
    """
    work = device_work(trace)
    if not work.height or is_device_work_mostly_lost(trace):
        return None
    within = union(segments["start"].to_numpy(), segments["end"].to_numpy())
    busy = intersect(covered_time(work), within)
    alone = subtract(busy, covered_time(work.filter(pl.col("kind") != "communication")))
    factor = undisturbed_factors_of_segments(trace, segments, steps).on_device
    ms_of_mean_step = factor / (steps * _NS_PER_MS)
    return DeviceTimes(length(busy) * ms_of_mean_step, length(alone) * ms_of_mean_step)
