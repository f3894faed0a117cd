"""Bring all times of a file onto one clock, before slices are sorted or nested by time."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.arrays import Ints
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.columns import NO_END
from selftime.ingest.events.event import NO_INT
from selftime.ingest.times.restarts import separate_windows
from selftime.ingest.times.unit import normalize_unit
from selftime.schema import NO_TIME

_FAR: Final = 60 * 10**9
"""One minute in ns: no recording has such a gap after its first events."""

_EARLIEST: Final = -(1 << 61)
_LATEST: Final = (1 << 62) - 1
_LONGEST: Final = (1 << 61) - 1
"""Bounds of valid times and durations in ns, 73 to 146 years; their sums fit 63 bits."""


def erase_lost_times(columns: FileColumns) -> None:
    """Set lost times to null: zero-length device work at 0, and slices at 0 far from the rest."""
    start, duration = columns.slices["start"], columns.slices["duration"]
    zeros = start == 0
    if not zeros.any() or not (start > 0).any():
        return
    lost = zeros & (duration == 0) & _is_device_work(columns)
    left = zeros & ~lost
    if left.any() and _are_far_off(start, duration, left):
        lost |= left
    start[lost] = NO_INT
    duration[lost] = NO_INT
    columns.faults[NO_TIME] += int(lost.sum())


def _is_device_work(columns: FileColumns) -> NDArray[np.bool_]:
    codes = np.unique(columns.slices["category"])
    texts = columns.text(codes).cast(str).to_list()
    device = [
        code for code, text in zip(codes.tolist(), texts, strict=True) if text in names.DEVICE
    ]
    return np.isin(columns.slices["category"], device)


def _are_far_off(start: Ints, duration: Ints, zeros: NDArray[np.bool_]) -> bool:
    """Returns whether the gap after the slices at 0 is longer than a minute and all the rest."""
    others = start[(start != NO_INT) & ~zeros]
    gap = int(others.min()) - max(int(duration[zeros].max()), 0)
    return gap > _FAR and gap > int(others.max()) - int(others.min())


def normalize_times(columns: FileColumns, metadata: Mapping[str, Any]) -> None:
    """Convert times to ns, set lost times to null, and separate overlapping windows."""
    if not columns.slices["start"].size:
        return
    normalize_unit(columns, metadata)
    _erase_out_of_bounds(columns)
    erase_lost_times(columns)
    separate_windows(columns)


def _erase_out_of_bounds(columns: FileColumns) -> None:
    """Set times and durations to null that are out of bounds."""
    start, duration = columns.slices["start"], columns.slices["duration"]
    if not _EARLIEST <= start.min() <= start.max() <= _LATEST:
        timeless = (start < _EARLIEST) | (start > _LATEST)
        start[timeless] = duration[timeless] = NO_INT
        columns.faults[NO_TIME] += int(timeless.sum())
    if duration.max() > _LONGEST:
        endless = duration > _LONGEST
        duration[endless] = NO_INT
        columns.faults[NO_END] += int(endless.sum())
    for time in _marks(columns):
        time[(time < _EARLIEST) | (time > _LATEST)] = NO_INT


def _marks(columns: FileColumns) -> Iterator[NDArray[np.int64]]:
    for name in ("memory", "instants"):
        time = columns.groups.get(name, {}).get("time")
        if time is not None:
            yield time
