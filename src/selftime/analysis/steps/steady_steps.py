"""Finds which steps are typical and count for medians, and why the other steps do not.

The first step, a partial one, and one far longer than the others are left out of medians.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.array_types import Ints
from selftime.intervals import Intervals, union
from selftime.trace import Trace

_HOST_WORK_CATEGORIES: Final = (*names.OPERATOR_CATEGORIES, *names.RUNTIME_CALL_CATEGORIES)
MIN_STEADY_STEPS: Final = 3
"""Smallest number of steps at which medians leave out the first step; with more steps, also
outliers.
"""
OUTLIER_NOTE: Final = "an outlier: far longer than the others"
"""Why a step that is far longer than the others does not count for medians."""
_MIN_DEVIATIONS_OF_OUTLIER_STEP: Final = 5
"""Smallest distance of an outlier step from the median, in median absolute deviations."""
_MIN_TIME_FACTOR_OF_OUTLIER_STEP: Final = 1.1
"""Smallest duration of an outlier step, as a multiple of the median step duration."""
_MAX_SHARE_OF_OUTLIER_STEPS: Final = 0.2
"""Largest share (0 to 1) of steps that can be outliers; if more are long, they are another kind of
step.
"""
_MIN_WORK_SHARE_OF_COMPLETE_LAST_STEP: Final = 0.8
"""Smallest work of a complete last step, as a share (0 to 1) of the least work of any earlier step.
"""
_MAX_GAP_SHARE_BETWEEN_STEPS: Final = 0.5
"""Largest gap between adjacent steps, as a share (0 to 1) of a step; in a longer gap the profiler
was off.
"""


@cached_per_trace
def steps_with_counted_flags(trace: Trace) -> pl.DataFrame:
    """Returns all steps with times in ns, whether each counts for medians, and if not, why.

    Columns: those of `find_steps`; host_time, device_time, lag, device_slices, note, counted; begin
    and done, in ns, between which its time is counted: from the instant at which the previous step
    was done, or its begin on the host if that is later, until its end on the host and that of the
    device work that it launched. These intervals are sorted and disjoint too.
    """
    found = find_steps(trace)
    work = _work_launched_in_steps(trace, found["start"].to_numpy(), found["end"].to_numpy())
    timed = found.with_columns(
        host_time=pl.col("end") - pl.col("start"),
        **_device_columns_of_steps(found, work),
        **_begin_and_done_of_steps(found, work),
    )
    return _steps_with_counted_flags(timed, trace)


def counted_step_spans(steps: pl.DataFrame) -> pl.DataFrame:
    """Returns when each step that counts for medians begins and is done (ns); all if none does."""
    counted = steps.filter("counted")
    return (counted if counted.height else steps).select("begin", "done")


def recorded_time_windows_of_steps(steps: pl.DataFrame) -> Intervals:
    """Returns the time in which steps were recorded, as intervals (ns); adjacent steps merge.

    Between non-adjacent steps of the profiler nothing was recorded.
    """
    begin, done = steps["begin"].to_numpy(), steps["done"].to_numpy()
    if not begin.size:
        return union([], [])
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    marked = steps["source"].to_numpy()[1:] == "profiler"
    apart = marked & (
        start[1:] - np.maximum(end, done)[:-1] > _MAX_GAP_SHARE_BETWEEN_STEPS * (end - start)[1:]
    )
    firsts = np.append(0, np.flatnonzero(apart) + 1)
    lasts = np.append(firsts[1:] - 1, begin.size - 1)
    return union(begin[firsts], done[lasts])


def counted_step_windows(trace: Trace) -> pl.DataFrame:
    """Returns host begin and end (ns) of steps that count for medians; all steps if none does."""
    steps = steps_with_counted_flags(trace)
    counted = steps.filter("counted")
    return (counted if counted.height else steps).select("start", "end")


def is_instant_in_windows(instants: Ints, windows: pl.DataFrame) -> NDArray[np.bool_]:
    """Flags instants (ns) inside any of the windows, which must be sorted and disjoint."""
    if not windows.height:
        return np.zeros(instants.size, bool)
    begin, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    at = np.searchsorted(begin, instants, side="right") - 1
    return np.asarray((at >= 0) & (instants < end[at]))


@dataclass(frozen=True, slots=True)
class _WorkLaunchedInSteps:
    """Device work by the step that launched it, and work that no step launched; times in ns."""

    count: Ints
    first: Ints
    """When the first device slice that each step launched began, in ns."""
    last: Ints
    """When the last device slice that each step launched ended, in ns; -1 if the step launched
    none.
    """
    others: Ints
    """When each device slice that no step launched ended, in ns."""


def _work_launched_in_steps(trace: Trace, start: Ints, end: Ints) -> _WorkLaunchedInSteps:
    """Returns the device work that was launched in each step, on any thread."""
    work = device_work(trace)
    begin, done = work["start"].to_numpy(), work["end"].to_numpy()
    launched = work["launched"].fill_null(-1).to_numpy()
    step = np.searchsorted(start, launched, side="right") - 1
    inside = (step >= 0) & (launched < end[step]) if end.size else np.zeros(step.size, bool)
    last = np.full(start.size, -1, np.int64)
    np.maximum.at(last, step[inside], done[inside])
    first = np.full(start.size, np.iinfo(np.int64).max)
    np.minimum.at(first, step[inside], begin[inside])
    count = np.bincount(step[inside], minlength=start.size).astype(np.int64)
    return _WorkLaunchedInSteps(count, first, last, done[~inside])


def _device_columns_of_steps(steps: pl.DataFrame, work: _WorkLaunchedInSteps) -> dict[str, Any]:
    """Returns each step's device time and lag in ns, and its number of device slices."""
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    known = work.last >= 0
    both = known.copy()
    both[1:] &= known[:-1] & (
        start[1:] - end[:-1] <= _MAX_GAP_SHARE_BETWEEN_STEPS * (end - start)[1:]
    )
    both[:1] = False
    between = np.diff(np.maximum.accumulate(work.last), prepend=0)
    return {
        "device_time": pl.Series(between, dtype=pl.Int64).set(pl.Series(~both), None),
        "lag": pl.Series(work.last - end, dtype=pl.Int64).set(pl.Series(~known), None),
        "device_slices": work.count,
    }


def _begin_and_done_of_steps(steps: pl.DataFrame, work: _WorkLaunchedInSteps) -> dict[str, Ints]:
    """Returns when each step begins and is done (ns), by the rules of TensorBoard's plugin.

    Work that was launched before the first step and ends before the step's own begins is excluded.
    """
    done = np.maximum.accumulate(np.maximum(steps["end"].to_numpy(), work.last))
    earlier = np.full(done.size, -1, np.int64)
    earlier[1:] = done[:-1]
    if done.size and work.last[0] >= 0:
        earlier[0] = work.others[work.others <= work.first[0]].max(initial=-1)
    begin = np.maximum(steps["start"].to_numpy(), earlier)
    return {"begin": begin, "done": np.maximum(begin, done)}


def _host_slice_counts_of_steps(trace: Trace, steps: pl.DataFrame) -> list[int]:
    """Returns the number of operators and calls that began in each step, on any thread."""
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    host = slices_on(trace, "host").filter(pl.col("category").is_in(_HOST_WORK_CATEGORIES))
    begins = np.sort(host["start"].to_numpy())
    count: list[int] = (np.searchsorted(begins, end) - np.searchsorted(begins, start)).tolist()
    return count


def _steps_with_counted_flags(steps: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Returns the steps with columns that say whether each counts for medians, and if not, why."""
    count = steps.height
    notes: list[str | None] = [None] * count
    work = steps["device_slices"].to_list()
    kind = "device work" if any(work) else "work on the host"
    amounts = work if any(work) else _host_slice_counts_of_steps(trace, steps)
    if _is_last_step_cut_off(amounts):
        notes[-1] = f"partial: its {kind} was cut off"
    if count and trace.facts.get("partial") and not _are_all_steps_complete(trace, count):
        is_window = count == 1 and _is_recording_a_window(trace)
        notes[-1] = _WINDOW_NOTE if is_window else "partial: the recording ended within it"
    if count >= MIN_STEADY_STEPS and notes[0] is None:
        notes[0] = "the first: the profiler had just begun"
    notes = [f"partial: {cut}" if cut else n for cut, n in zip(steps["cut"], notes, strict=True)]
    for time in ("device_time", "host_time"):
        _note_outlier_steps(steps[time].to_list(), notes)
    flagged = pl.Series("note", notes, dtype=pl.String)
    counted = flagged.is_null()
    if not counted.any():  # complete steps are all there are
        counted = ~flagged.str.starts_with("partial")
    return steps.with_columns(note=flagged, counted=counted)


_WINDOW_NOTE: Final = "a part of a step, which is all that was recorded"


def _is_recording_a_window(trace: Trace) -> bool:
    """Returns whether the recording is a section without steps, which is treated as one step."""
    steps = trace.facts.get("steps")
    return isinstance(steps, dict) and steps.get("window") is True


def _is_last_step_cut_off(work_per_step: list[int]) -> bool:
    """Returns whether the last step did clearly less work than every earlier step.

    It is compared with all of them because steps may alternate. The first step is ignored if there
    are others, because some of its work may be lost.
    """
    earlier = work_per_step[1:-1] or work_per_step[:-1]
    return bool(earlier) and work_per_step[-1] < _MIN_WORK_SHARE_OF_COMPLETE_LAST_STEP * min(
        earlier
    )


def _are_all_steps_complete(trace: Trace, step_count: int) -> bool:
    """Returns whether the trace has a recorded end for each of its steps."""
    steps = trace.facts.get("steps")
    ended = steps.get("profiled_ns") if isinstance(steps, dict) else None
    return isinstance(ended, list) and len(ended) == step_count


def _note_outlier_steps(times: list[int | None], notes: list[str | None]) -> None:
    typical = [t for t, note in zip(times, notes, strict=True) if t is not None and note is None]
    if len(typical) <= MIN_STEADY_STEPS:
        return
    middle = float(np.median(typical))
    spread = float(np.median(np.abs(np.array(typical) - middle)))
    limit = max(
        middle + _MIN_DEVIATIONS_OF_OUTLIER_STEP * spread, _MIN_TIME_FACTOR_OF_OUTLIER_STEP * middle
    )
    long = [at for at, time in enumerate(times) if time is not None and time > limit]
    long = [at for at in long if notes[at] is None]
    if len(long) > max(1.0, _MAX_SHARE_OF_OUTLIER_STEPS * len(typical)):
        return
    for at in long:
        notes[at] = OUTLIER_NOTE
