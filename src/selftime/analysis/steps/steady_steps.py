"""Which steps are typical: their times on host and device, and what speaks against each.

A first step, a partial one, and one far longer than the others stand in no median.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.arrays import Ints
from selftime.intervals import Intervals, union
from selftime.trace import Trace

_WORK: Final = (*names.OPERATORS, *names.CALLS)
_LEAST_STEADY: Final = 3
"""Of fewer steps none is left out: there is no telling which is typical."""
_DEVIATIONS: Final = 5
"""A step is an outlier beyond this many median absolute deviations of the median."""
_OUTLIER: Final = 1.1
"""And only if it takes this much of the median: steps that hardly vary have no outliers."""
_COMMON: Final = 0.2
"""Beyond this share of all steps, long ones are no outliers but another kind of step."""
_CUT_OFF: Final = 0.8
"""A last step with less than this share of the work of every step before it was cut off."""
_APART: Final = 0.5
"""Steps with this share of a step between them are no neighbours: other things ran in between."""


@cached_per_trace
def assessed_steps(trace: Trace) -> pl.DataFrame:
    """Steps in order of time, each with its times in ns, and whether and why not it counts.

    Columns: those of `find_steps`; host_time, device_time, lag, device_slices, note, counted; begin
    and done, in ns, between which its time is counted: from the instant at which the step before
    was done, or its begin on the host if that is later, until its end on the host and that of the
    device work that it launched. These too are in order and apart.
    """
    found = find_steps(trace)
    work = _launched(trace, found["start"].to_numpy(), found["end"].to_numpy())
    timed = found.with_columns(
        host_time=pl.col("end") - pl.col("start"),
        **_device_columns(found, work),
        **_spans(found, work),
    )
    return _judged(timed, trace)


def counted_spans(steps: pl.DataFrame) -> pl.DataFrame:
    """Begin and done of those of the judged steps that count; of all if none does."""
    counted = steps.filter("counted")
    return (counted if counted.height else steps).select("begin", "done")


def recorded_windows(steps: pl.DataFrame) -> Intervals:
    """The time in which steps were recorded: of neighbours from the first until the last is done.

    Between steps that the profiler marked and that are no neighbours it did not record.
    """
    begin, done = steps["begin"].to_numpy(), steps["done"].to_numpy()
    if not begin.size:
        return union([], [])
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    marked = steps["source"].to_numpy()[1:] == "profiler"
    apart = marked & (start[1:] - np.maximum(end, done)[:-1] > _APART * (end - start)[1:])
    firsts = np.append(0, np.flatnonzero(apart) + 1)
    lasts = np.append(firsts[1:] - 1, begin.size - 1)
    return union(begin[firsts], done[lasts])


def counted_windows(trace: Trace) -> pl.DataFrame:
    """Start and end of the steps that count; of all steps if none does."""
    steps = assessed_steps(trace)
    counted = steps.filter("counted")
    return (counted if counted.height else steps).select("start", "end")


def is_within(starts: Ints, windows: pl.DataFrame) -> NDArray[np.bool_]:
    """Which instants lie in one of the windows, which are in order and apart."""
    if not windows.height:
        return np.zeros(starts.size, bool)
    begin, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    at = np.searchsorted(begin, starts, side="right") - 1
    return np.asarray((at >= 0) & (starts < end[at]))


@dataclass(frozen=True, slots=True)
class _Launched:
    """The device work that each step launched, and that none did; instants in ns."""

    count: Ints
    first: Ints
    """When its first slice began."""
    last: Ints
    """When its last slice ended; -1 if it launched none."""
    others: Ints
    """When what no step launched ended, one of each slice."""


def _launched(trace: Trace, start: Ints, end: Ints) -> _Launched:
    """Work belongs to the step in which it was launched, on whatever thread."""
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
    return _Launched(count, first, last, done[~inside])


def _device_columns(steps: pl.DataFrame, work: _Launched) -> dict[str, Any]:
    """Device time, lag, and the count of device slices."""
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    known = work.last >= 0
    both = known.copy()
    both[1:] &= known[:-1] & (start[1:] - end[:-1] <= _APART * (end - start)[1:])
    both[:1] = False
    between = np.diff(np.maximum.accumulate(work.last), prepend=0)
    return {
        "device_time": pl.Series(between, dtype=pl.Int64).set(pl.Series(~both), None),
        "lag": pl.Series(work.last - end, dtype=pl.Int64).set(pl.Series(~known), None),
        "device_slices": work.count,
    }


def _spans(steps: pl.DataFrame, work: _Launched) -> dict[str, Ints]:
    """Begin and done of each step, as PyTorch's TensorBoard plugin has them.

    What was launched before the first step and ends before its work begins is not its own.
    """
    done = np.maximum.accumulate(np.maximum(steps["end"].to_numpy(), work.last))
    earlier = np.full(done.size, -1, np.int64)
    earlier[1:] = done[:-1]
    if done.size and work.last[0] >= 0:
        earlier[0] = work.others[work.others <= work.first[0]].max(initial=-1)
    begin = np.maximum(steps["start"].to_numpy(), earlier)
    return {"begin": begin, "done": np.maximum(begin, done)}


def _host_work(trace: Trace, steps: pl.DataFrame) -> list[int]:
    """How many operators and calls began in each step, on any thread."""
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    host = slices_on(trace, "host").filter(pl.col("category").is_in(_WORK))
    begins = np.sort(host["start"].to_numpy())
    count: list[int] = (np.searchsorted(begins, end) - np.searchsorted(begins, start)).tolist()
    return count


def _judged(table: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Say which steps are typical, and of the others why not."""
    count = table.height
    notes: list[str | None] = [None] * count
    work = table["device_slices"].to_list()
    kind = "device work" if any(work) else "work on the host"
    amounts = work if any(work) else _host_work(trace, table)
    if _is_cut_off(amounts):
        notes[-1] = f"partial: its {kind} was cut off"
    if count and trace.facts.get("partial") and not _is_whole(trace, count):
        notes[-1] = "partial: the recording ended within it"
    if count >= _LEAST_STEADY and notes[0] is None:
        notes[0] = "the first: the profiler had just begun"
    notes = [f"partial: {cut}" if cut else n for cut, n in zip(table["cut"], notes, strict=True)]
    for time in ("device_time", "host_time"):
        _note_outliers(table[time].to_list(), notes)
    flagged = pl.Series("note", notes, dtype=pl.String)
    counted = flagged.is_null()
    if not counted.any():  # what is whole is all there is
        counted = ~flagged.str.starts_with("partial")
    return table.with_columns(note=flagged, counted=counted)


def _is_cut_off(work: list[int]) -> bool:
    """Whether the last step did less than any before it: steps may alternate, so all are asked.

    But the first, if there are others: some of its work may be lost.
    """
    earlier = work[1:-1] or work[:-1]
    return bool(earlier) and work[-1] < _CUT_OFF * min(earlier)


def _is_whole(trace: Trace, count: int) -> bool:
    """Whether the recorder saw the end of as many steps as there are."""
    steps = trace.facts.get("steps")
    ended = steps.get("profiled_ns") if isinstance(steps, dict) else None
    return isinstance(ended, list) and len(ended) == count


def _note_outliers(times: list[int | None], notes: list[str | None]) -> None:
    typical = [t for t, note in zip(times, notes, strict=True) if t is not None and note is None]
    if len(typical) <= _LEAST_STEADY:
        return
    middle = float(np.median(typical))
    spread = float(np.median(np.abs(np.array(typical) - middle)))
    limit = max(middle + _DEVIATIONS * spread, _OUTLIER * middle)
    long = [at for at, time in enumerate(times) if time is not None and time > limit]
    long = [at for at in long if notes[at] is None]
    if len(long) > max(1.0, _COMMON * len(typical)):
        return
    for at in long:
        notes[at] = "an outlier: far longer than the others"
