"""Corrects a file's times: converts the unit, nulls invalid times, removes clock jumps."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.array_types import Ints
from selftime.ingest.events.chunk_merging import FileEventColumns
from selftime.ingest.events.columns import NO_END_FAULT
from selftime.ingest.events.event_types import NO_INT
from selftime.ingest.times.clock_restarts import separate_clock_windows
from selftime.ingest.times.unit import normalize_time_unit
from selftime.schema import UNKNOWN_TIME_FAULT

_MAX_GAP_AFTER_TIME_ZERO_NS: Final = 60 * 10**9
"""Longest time, in ns, between slices at time 0 and all other slices. After a longer gap, the zeros
count as lost times.
"""

_MIN_VALID_TIME_NS: Final = -(1 << 61)
_MAX_VALID_TIME_NS: Final = (1 << 62) - 1
_MAX_VALID_DURATION_NS: Final = (1 << 61) - 1
"""Largest valid duration, in ns: 73 years. Sums of valid times and durations fit 63 bits."""


def erase_lost_times(columns: FileEventColumns) -> None:
    """Sets slice times to null that are 0 only because the recorder lost the real time."""
    start, duration = columns.slices["start"], columns.slices["duration"]
    zeros = start == 0
    if not zeros.any() or not (start > 0).any():
        return
    lost = zeros & (duration == 0) & _is_device_work_by_slice(columns)
    left = zeros & ~lost
    if left.any() and _is_gap_after_time_zero_too_long(start, duration, left):
        lost |= left
    start[lost] = NO_INT
    duration[lost] = NO_INT
    columns.fault_counts[UNKNOWN_TIME_FAULT] += int(lost.sum())


def _is_device_work_by_slice(columns: FileEventColumns) -> NDArray[np.bool_]:
    codes = np.unique(columns.slices["category"])
    texts = columns.decode_strings(codes).cast(str).to_list()
    device = [
        code
        for code, text in zip(codes.tolist(), texts, strict=True)
        if text in names.DEVICE_WORK_CATEGORIES
    ]
    return np.isin(columns.slices["category"], device)


def _is_gap_after_time_zero_too_long(
    start: Ints, duration: Ints, is_zero: NDArray[np.bool_]
) -> bool:
    """Returns whether the gap after time 0 exceeds a minute and the span of all other slices."""
    others = start[(start != NO_INT) & ~is_zero]
    gap = int(others.min()) - max(int(duration[is_zero].max()), 0)
    return gap > _MAX_GAP_AFTER_TIME_ZERO_NS and gap > int(others.max()) - int(others.min())


def normalize_times(columns: FileEventColumns, metadata: Mapping[str, Any]) -> None:
    """Converts all times to ns on one clock, in place; sets lost and invalid times to null."""
    if not columns.slices["start"].size:
        return
    normalize_time_unit(columns, metadata)
    _set_out_of_bounds_times_to_null(columns)
    erase_lost_times(columns)
    separate_clock_windows(columns)


def _set_out_of_bounds_times_to_null(columns: FileEventColumns) -> None:
    """Sets times and durations that are too large or too small to be valid to null."""
    start, duration = columns.slices["start"], columns.slices["duration"]
    if not _MIN_VALID_TIME_NS <= start.min() <= start.max() <= _MAX_VALID_TIME_NS:
        timeless = (start < _MIN_VALID_TIME_NS) | (start > _MAX_VALID_TIME_NS)
        start[timeless] = duration[timeless] = NO_INT
        columns.fault_counts[UNKNOWN_TIME_FAULT] += int(timeless.sum())
    if duration.max() > _MAX_VALID_DURATION_NS:
        endless = duration > _MAX_VALID_DURATION_NS
        duration[endless] = NO_INT
        columns.fault_counts[NO_END_FAULT] += int(endless.sum())
    for time in _memory_and_instant_times(columns):
        time[(time < _MIN_VALID_TIME_NS) | (time > _MAX_VALID_TIME_NS)] = NO_INT


def _memory_and_instant_times(columns: FileEventColumns) -> Iterator[NDArray[np.int64]]:
    for name in ("memory", "instants"):
        time = columns.columns_by_group.get(name, {}).get("time")
        if time is not None:
            yield time
