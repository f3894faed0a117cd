"""The steps that rules look at: how many they are, and what began in them."""

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.advice.gate import Gate
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import assessed_steps, counted_windows, is_within
from selftime.intervals import Intervals, before, union
from selftime.trace import Trace

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


def covered(operators: pl.DataFrame) -> Intervals:
    """The time in which any of the operators ran."""
    return union(operators["start"].to_numpy(), operators["end"].to_numpy())


def both(these: Intervals, those: Intervals) -> Intervals:
    """The time in either set."""
    starts = np.concatenate([these.starts, those.starts])
    return union(starts, np.concatenate([these.ends, those.ends]))


def regions_of(trace: Trace, *means: Callable[[str], bool]) -> Intervals:
    """When the host was in annotations, operators or frames of one of these meanings."""

    def is_meant(name: str) -> bool:
        return any(mean(name) for mean in means)

    host, python = (
        covered_time(filter_by_name(slices_on(trace, k), is_meant)) for k in ("host", "python")
    )
    return both(host, python)


def is_during(slices: pl.DataFrame, times: Intervals) -> pl.Series:
    """Whether each slice began in these times."""
    begin = slices["start"].to_numpy()
    window = pl.DataFrame({"start": times.starts, "end": times.ends})
    return pl.Series(is_within(begin, window), dtype=pl.Boolean)


def is_under(slices: pl.DataFrame, around: pl.DataFrame) -> NDArray[np.bool_]:
    """Which slices began while one of `around` was open on their track.

    Both have the columns track and start, `around` has end as well.
    """
    if not around.height or not slices.height:
        return np.zeros(slices.height, bool)
    last = max(int(around["end"].to_numpy().max()), int(slices["start"].to_numpy().max())) + 1
    track, asked = (t["track"].cast(pl.Int64).to_numpy() * last for t in (around, slices))
    open_ = union(track + around["start"].to_numpy(), track + around["end"].to_numpy())
    when = asked + slices["start"].to_numpy()
    at = np.searchsorted(open_.starts, when, side="right") - 1
    return np.asarray((at >= 0) & (when < open_.ends[at]))


def steps_counted(trace: Trace) -> int:
    """How many steps count; at least 1, to divide by."""
    return max(counted_windows(trace).height, 1)


def counted(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Those slices that began in a step that counts and whose end is known."""
    within = is_within(slices["start"].to_numpy(), counted_windows(trace))
    return slices.filter(pl.Series(within, dtype=pl.Boolean) & pl.col("duration").is_not_null())


def steps_recorded(trace: Trace) -> int:
    """How many steps `recorded_operators` are of."""
    return max(recorded_windows(trace).height, 1)


def recorded_windows(trace: Trace) -> pl.DataFrame:
    """Start and end of the steps that count; with a device of all, which its queue carries on."""
    if trace.device_args.height:
        return assessed_steps(trace).select("start", "end")
    return counted_windows(trace)
