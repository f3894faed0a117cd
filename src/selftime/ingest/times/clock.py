"""All times of a file on one clock, before anything is ordered or nested by them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.columns import NO_END
from selftime.ingest.events.event import NO_INT
from selftime.ingest.times.lost import forget_lost
from selftime.ingest.times.restarts import part_windows
from selftime.ingest.times.unit import settle_unit
from selftime.schema import NO_TIME

_EARLIEST: Final = -(1 << 61)
_LATEST: Final = (1 << 62) - 1
_LONGEST: Final = (1 << 61) - 1
"""Times in ns, 73 and 146 years, beyond which a number is no time; sums of them fit 63 bits."""


def settle_times(columns: FileColumns, metadata: Mapping[str, Any]) -> None:
    """Settle the unit of a file's times, forget those that were lost, part windows that overlap."""
    if not columns.slices["start"].size:
        return
    settle_unit(columns, metadata)
    _bound(columns)
    forget_lost(columns)
    part_windows(columns)


def _bound(columns: FileColumns) -> None:
    """Forget what is no time; sound times are looked at once."""
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
