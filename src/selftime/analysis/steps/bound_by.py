"""What bounds a step: the device, the launching of its work, or gaps between its work.

Two numbers tell: how busy the device is, and how often a kernel was launched onto a stream that had
nothing left to do. The window decides: a device may be busy from its first to its last kernel and
idle for half of the step, so the smaller of both shares counts.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.device.work import device_work, is_unseen
from selftime.analysis.health.recording import is_mostly_lost
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.steps.steady_steps import assessed_steps, counted_spans, recorded_windows
from selftime.intervals import Intervals, before, clip, length, subtract, union
from selftime.trace import Trace

Regime: TypeAlias = Literal["device-bound", "launch-bound", "gap-bound", "mixed", "host-only"]

PHRASE: Final[dict[Regime, str]] = {
    "device-bound": "device work",
    "launch-bound": "kernel launches",
    "gap-bound": "gaps between device work",
    "mixed": "kernel launches and gaps between device work",
    "host-only": "host work alone",
}
"""What a step of each regime is bound by, as words that follow "bound by"."""
MEANING: Final[dict[Regime, str]] = {
    "device-bound": "the device has work nearly all the time: only less or faster device work "
    "shortens the step",
    "launch-bound": "the device waits for the next launch most of the time: fewer or faster "
    "launches shorten the step",
    "gap-bound": "the device is fed well but for a few long gaps: what fills those gaps on the "
    "host shortens the step",
    "mixed": "the device waits at times, for launches as well as in long gaps",
    "host-only": "no device work was recorded: the step is what the host does",
}
"""What each regime says, as a sentence goes on."""
DEVICE_BOUND: Final = 0.95
"""From here on the device is the limit: what the host saves is not seen."""
FEW_GAPS: Final = 0.9
"""Below this the gaps are worth a cause."""
MANY_GAPS: Final = 0.8
"""Below this the device waits for a fifth of the time."""
STARVED: Final = 0.5
"""Launches onto an idle stream beyond this share: the host does not keep up."""
FED: Final = 0.25
"""Below this share the host keeps up, and gaps are few and large."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The regime and the two numbers that tell it; None where the trace does not."""

    regime: Regime | None = None
    busy: float | None = None
    """Share of time in which any device works, in the steps that count or between its ends."""
    idle_launches: float | None = None
    """Share of launched work whose stream had nothing left to do when it was launched."""


def regime(trace: Trace) -> Regime | None:
    """What bounds the steps of this trace; None where there is nothing to tell it by."""
    return bounds(trace).regime


def bounds(trace: Trace) -> Bounds:
    """The regime of this trace's steps, with the numbers that tell it."""
    work = device_work(trace)
    if not work.height:
        is_untold = trace.device_args.height or not trace.slices.height or is_unseen(trace)
        return Bounds(None if is_untold else "host-only")
    if is_mostly_lost(trace):
        return Bounds()  # what looks idle may have been busy
    time = covered_time(work)
    steps = assessed_steps(trace)
    windows = recorded_windows(steps)
    shares = [_busy_between_ends(time, windows), _busy_in_steps(time, counted_spans(steps))]
    busy = min((share for share in shares if share is not None), default=None)
    # Of slices on one stream each is idle from the end of the last one before it.
    idle_from = pl.col("end").cum_max().shift(1).over("track")
    starved = work.select((idle_from <= pl.col("launched")).mean()).item()
    if work["launched"].is_null().all() or busy is None:
        return Bounds(None, busy, starved)  # how it was fed is not in the trace
    return Bounds(_told_by(busy, starved), busy, starved)


def _told_by(busy: float, starved: float | None) -> Regime | None:
    if busy >= DEVICE_BOUND:
        return "device-bound"
    if starved is None:
        return None  # one launch a stream: nobody knows whether the stream was idle before
    if busy < MANY_GAPS and starved > STARVED:
        return "launch-bound"
    return "gap-bound" if busy < FEW_GAPS and starved < FED else "mixed"


def _busy_between_ends(time: Intervals, windows: Intervals) -> float | None:
    """From the first work to the last, without holes in which nothing was recorded."""
    if not time.starts.size:
        return None
    first, last = int(time.starts[0]), int(time.ends[-1])
    reach = clip(union(windows.starts[:1], windows.ends[-1:]), first, last)
    holes = subtract(reach, windows)
    whole = last - first - length(holes)
    return length(subtract(time, holes)) / whole if whole else None


def _busy_in_steps(time: Intervals, steps: pl.DataFrame) -> float | None:
    start, end = steps["begin"].to_numpy(), steps["done"].to_numpy()
    total = int((end - start).sum())
    busy = int(np.sum(before(time, end) - before(time, start)))
    return busy / total if total else None
