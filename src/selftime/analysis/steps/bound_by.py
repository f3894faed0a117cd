"""Finds what limits the speed of a step: the device, the launching of work, or gaps between work.

Two shares decide: how busy the device is, and how many kernels were launched onto a stream that had
no work left. A device may be busy from its first to its last kernel and idle for half of the step,
so the smaller of the two busy shares counts.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.device.device_work import device_work, is_device_unrecorded
from selftime.analysis.health.recording_under_check import is_device_work_mostly_lost
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.steps.steady_steps import (
    counted_step_spans,
    recorded_time_windows_of_steps,
    steps_with_counted_flags,
)
from selftime.intervals import Intervals, clip, covered_time_before, length, subtract, union
from selftime.trace import Trace

BoundBy: TypeAlias = Literal["device-bound", "launch-bound", "gap-bound", "mixed", "host-only"]

BOUND_BY_PHRASES: Final[dict[BoundBy, str]] = {
    "device-bound": "device work",
    "launch-bound": "kernel launches",
    "gap-bound": "gaps between device work",
    "mixed": "kernel launches and gaps between device work",
    "host-only": "the host (no device work)",
}
"""Maps what bounds a step, such as `device-bound`, to the words that follow "bound by"."""
MIN_BUSY_SHARE_WHEN_DEVICE_BOUND: Final = 0.95
"""Smallest share (0 to 1) of a step in which the device is busy if the step is device-bound."""
MIN_BUSY_SHARE_WITH_FEW_GAPS: Final = 0.9
"""Busy share (0 to 1) of a device below which the gaps in its work are worth investigating."""
MAX_BUSY_SHARE_WHEN_LAUNCH_BOUND: Final = 0.8
"""Busy share (0 to 1) of a device below which a step can be launch-bound."""
MIN_STARVED_LAUNCH_SHARE: Final = 0.5
"""Share (0 to 1) of launches onto an idle stream above which the host launches too slowly."""
MAX_STARVED_LAUNCH_SHARE_OF_FAST_HOST: Final = 0.25
"""Share (0 to 1) of launches onto an idle stream below which the host launches fast enough."""


@dataclass(frozen=True, slots=True)
class StepBounds:
    """What limits the speed of a trace's steps, and the two shares that decide it."""

    bound_by: BoundBy | None = None
    busy_share: float | None = None
    """Share (0 to 1) of the counted steps in which the device works, or of the time from its first
    to its last work if that share is smaller; None if unknown.
    """
    idle_launch_share: float | None = None
    """Share (0 to 1) of launches whose stream had no work left at the launch; None if unknown."""


def step_bound_by(trace: Trace) -> BoundBy | None:
    """Returns what bounds the steps of this trace; None if it cannot be determined."""
    return step_bounds(trace).bound_by


def step_bounds(trace: Trace) -> StepBounds:
    """Returns what limits the speed of this trace's steps, with the shares that decide it."""
    work = device_work(trace)
    if not work.height:
        is_untold = (
            trace.device_args.height or not trace.slices.height or is_device_unrecorded(trace)
        )
        return StepBounds(None if is_untold else "host-only")
    if is_device_work_mostly_lost(trace):
        return StepBounds()  # apparently idle time may have been busy
    time = covered_time(work)
    steps = steps_with_counted_flags(trace)
    windows = recorded_time_windows_of_steps(steps)
    shares = [
        _device_busy_share_between_ends(time, windows),
        _device_busy_share_in_steps(time, counted_step_spans(steps)),
    ]
    busy = min((share for share in shares if share is not None), default=None)
    # A stream is idle from the end of its previous slice.
    idle_from = pl.col("end").cum_max().shift(1).over("track")
    starved = work.select((idle_from <= pl.col("launched")).mean()).item()
    if work["launched"].is_null().all() or busy is None:
        return StepBounds(None, busy, starved)  # the launches are not in the trace
    return StepBounds(bound_by_of_shares(busy, starved), busy, starved)


def bound_by_of_shares(busy_share: float, starved_share: float | None) -> BoundBy | None:
    """Returns what bounds steps; None if unknown.

    Args:
        busy_share: Share of the steps in which the device works, 0 to 1.
        starved_share: Share of launches onto an idle stream, 0 to 1; None if unknown.
    """
    if busy_share >= MIN_BUSY_SHARE_WHEN_DEVICE_BOUND:
        return "device-bound"
    if starved_share is None:
        return None  # one launch per stream: whether the stream was idle before is unknown
    if busy_share < MAX_BUSY_SHARE_WHEN_LAUNCH_BOUND and starved_share > MIN_STARVED_LAUNCH_SHARE:
        return "launch-bound"
    return (
        "gap-bound"
        if busy_share < MIN_BUSY_SHARE_WITH_FEW_GAPS
        and starved_share < MAX_STARVED_LAUNCH_SHARE_OF_FAST_HOST
        else "mixed"
    )


def _device_busy_share_between_ends(busy_time: Intervals, windows: Intervals) -> float | None:
    """Returns the share (0 to 1) of the time from first to last device work that has work.

    Time outside the recorded windows is left out.
    """
    if not busy_time.starts.size:
        return None
    first, last = int(busy_time.starts[0]), int(busy_time.ends[-1])
    reach = clip(union(windows.starts[:1], windows.ends[-1:]), first, last)
    holes = subtract(reach, windows)
    whole = last - first - length(holes)
    return length(subtract(busy_time, holes)) / whole if whole else None


def _device_busy_share_in_steps(busy_time: Intervals, steps: pl.DataFrame) -> float | None:
    start, end = steps["begin"].to_numpy(), steps["done"].to_numpy()
    total = int((end - start).sum())
    busy = int(np.sum(covered_time_before(busy_time, end) - covered_time_before(busy_time, start)))
    return busy / total if total else None
