"""Selects the steps that rules measure (without warm-up), and the slices that began in them."""

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.advice.step_statistics import StepStatistics
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import (
    counted_step_windows,
    is_instant_in_windows,
    steps_with_counted_flags,
)
from selftime.intervals import Intervals, covered_time_before, union
from selftime.trace import Trace

MIN_STEPS_TO_ESTIMATE_VARIATION: Final = 3
"""Smallest number of measured steps from which the variation of a time between steps is
estimated."""


def significance_limits_for_cause(
    trace: Trace, limits: StepStatistics, host_times: Intervals
) -> StepStatistics:
    """Returns `limits` with noise lowered to how much `host_times` vary from step to step.

    The noise is by how much the cause varies between steps: that steps vary for other reasons, as
    on a busy machine, is no argument against it. It is at most the noise of the steps.
    """
    windows = counted_step_windows(trace)
    if windows.height < MIN_STEPS_TO_ESTIMATE_VARIATION or not host_times.starts.size:
        return limits
    start, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    taken = (covered_time_before(host_times, end) - covered_time_before(host_times, start)) / 1e6
    own = float(np.median(np.abs(taken - np.median(taken))))
    return limits.with_noise(min(own, limits.noise_ms))


def operator_intervals(operators: pl.DataFrame) -> Intervals:
    """Returns the intervals in which any of the operators ran."""
    return union(operators["start"].to_numpy(), operators["end"].to_numpy())


def union_of_interval_sets(first: Intervals, second: Intervals) -> Intervals:
    """Returns the union of two sets of intervals."""
    starts = np.concatenate([first.starts, second.starts])
    return union(starts, np.concatenate([first.ends, second.ends]))


def times_of_slices_named(trace: Trace, *predicates: Callable[[str], bool]) -> Intervals:
    """Returns the intervals of host slices and Python frames whose name fulfils a predicate."""

    def matches_any_predicate(name: str) -> bool:
        return any(predicate(name) for predicate in predicates)

    host, python = (
        covered_time(filter_by_name(slices_on(trace, track_kind), matches_any_predicate))
        for track_kind in ("host", "python")
    )
    return union_of_interval_sets(host, python)


def begins_during_intervals(slices: pl.DataFrame, intervals: Intervals) -> pl.Series:
    """Returns for each slice whether it began within one of the intervals."""
    begin = slices["start"].to_numpy()
    window = pl.DataFrame({"start": intervals.starts, "end": intervals.ends})
    return pl.Series(is_instant_in_windows(begin, window), dtype=pl.Boolean)


def begins_within_enclosing(slices: pl.DataFrame, enclosing: pl.DataFrame) -> NDArray[np.bool_]:
    """Returns for each slice whether it began within a slice of `enclosing` on its own track.

    Both tables have the columns track and start; `enclosing` has end as well.
    """
    if not enclosing.height or not slices.height:
        return np.zeros(slices.height, bool)
    last = max(int(enclosing["end"].to_numpy().max()), int(slices["start"].to_numpy().max())) + 1
    track, asked = (t["track"].cast(pl.Int64).to_numpy() * last for t in (enclosing, slices))
    open_ = union(track + enclosing["start"].to_numpy(), track + enclosing["end"].to_numpy())
    if not open_.starts.size:  # no slice of `enclosing` takes any time
        return np.zeros(slices.height, bool)
    when = asked + slices["start"].to_numpy()
    at = np.searchsorted(open_.starts, when, side="right") - 1
    return np.asarray((at >= 0) & (when < open_.ends[at]))


def counted_step_count(trace: Trace) -> int:
    """Returns the number of measured steps; at least 1, so that it can be a divisor."""
    return max(counted_step_windows(trace).height, 1)


def slices_in_counted_steps(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Returns the slices that began in a measured step and whose end is known."""
    within = is_instant_in_windows(slices["start"].to_numpy(), counted_step_windows(trace))
    return slices.filter(pl.Series(within, dtype=pl.Boolean) & pl.col("duration").is_not_null())


def recorded_step_count(trace: Trace) -> int:
    """Returns the number of steps of `recorded_step_windows`; at least 1, to divide by."""
    return max(recorded_step_windows(trace).height, 1)


def recorded_step_windows(trace: Trace) -> pl.DataFrame:
    """Returns start and end in ns of all steps; of only the measured ones if no device worked.

    The queue of a device spans steps.
    """
    if trace.device_args.height:
        return steps_with_counted_flags(trace).select("start", "end")
    return counted_step_windows(trace)
