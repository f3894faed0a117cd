"""Which steps are typical: their times on host and device, and what speaks against each.

A first step, a partial one, and one far longer than the others stand in no median.
"""

from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.trace import Trace
from selftime.views.accounts.named import of_kind
from selftime.views.accounts.stepping import find_steps

__all__ = ["counted_windows", "is_within", "judged_steps"]

Ints = NDArray[np.int64]

_LEAST_STEADY: Final = 3
"""Of fewer steps none is left out: there is no telling which is typical."""
_DEVIATIONS: Final = 5
"""A step is an outlier beyond this many median absolute deviations of the median."""
_OUTLIER: Final = 1.1
"""And only if it takes this much of the median: steps that hardly vary have no outliers."""
_CUT_OFF: Final = 0.8
"""A last step with less than this share of the device work before it was cut off."""


def judged_steps(trace: Trace) -> pl.DataFrame:
    """Steps in order of time, each with its times in ns, and whether and why not it counts.

    Columns: those of `find_steps`, host_time, device_time, lag, device_slices, note, counted.
    """
    found = find_steps(trace)
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    timed = found.with_columns(host_time=end - start, **_device_columns(trace, start, end))
    return _judged(timed, trace)


def counted_windows(trace: Trace) -> pl.DataFrame:
    """Start and end of the steps that count; of all steps if none does."""
    steps = judged_steps(trace)
    counted = steps.filter("counted")
    return (counted if counted.height else steps).select("start", "end")


def is_within(starts: Ints, windows: pl.DataFrame) -> NDArray[np.bool_]:
    """Which instants lie in one of the windows, which are in order and apart."""
    if not windows.height:
        return np.zeros(starts.size, bool)
    begin, end = windows["start"].to_numpy(), windows["end"].to_numpy()
    at = np.searchsorted(begin, starts, side="right") - 1
    return np.asarray((at >= 0) & (starts < end[at]))


def _device_columns(trace: Trace, start: Ints, end: Ints) -> dict[str, Any]:
    """Device time, lag, and the count of device slices, of the work that each step launched."""
    work = of_kind(trace, "device").filter(
        pl.col("launch").is_not_null() & pl.col("duration").is_not_null()
    )
    launched = trace.slices["start"].gather(work["launch"]).to_numpy()
    step = np.searchsorted(start, launched, side="right") - 1
    inside = (step >= 0) & (launched < end[step]) if end.size else np.zeros(step.size, bool)
    done = (work["start"] + work["duration"]).to_numpy()
    last = np.full(start.size, -1, np.int64)
    np.maximum.at(last, step[inside], done[inside])
    count = np.bincount(step[inside], minlength=start.size).astype(np.int64)
    known = last >= 0
    both = known.copy()
    both[1:] &= known[:-1]
    both[:1] = False
    between = np.diff(last, prepend=0)
    return {
        "device_time": pl.Series(between, dtype=pl.Int64).set(pl.Series(~both), None),
        "lag": pl.Series(last - end, dtype=pl.Int64).set(pl.Series(~known), None),
        "device_slices": count,
    }


def _judged(table: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Say which steps are typical, and of the others why not."""
    count = table.height
    notes: list[str | None] = [None] * count
    work = table["device_slices"].to_list()
    if count > 1 and work[-2] and work[-1] < _CUT_OFF * work[-2]:
        notes[-1] = "partial: its device work was cut off"
    if count and trace.facts.get("partial") and not _is_whole(trace, count):
        notes[-1] = "partial: the recording ended within it"
    if count >= _LEAST_STEADY and notes[0] is None:
        notes[0] = "the first: the profiler had just begun"
    notes = [
        "partial: it began before" if p else n for p, n in zip(table["partial"], notes, strict=True)
    ]
    for time in ("device_time", "host_time"):
        _note_outliers(table[time].to_list(), notes)
    flagged = pl.Series("note", notes, dtype=pl.String)
    counted = flagged.is_null()
    if not counted.any():  # what is whole is all there is
        counted = ~flagged.str.starts_with("partial")
    return table.with_columns(note=flagged, counted=counted)


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
    for at, time in enumerate(times):
        if time is not None and notes[at] is None and time > limit:
            notes[at] = "an outlier: far longer than the others"
