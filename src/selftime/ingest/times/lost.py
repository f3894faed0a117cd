"""Times that were lost and written as 0, which would be the begin of everything.

A recorder that has no time for an event writes 0. Kineto's times count from the epoch or from a
zero of some months, the machine's own from its start: a recording at their zero is hardly met.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from selftime import names
from selftime.arrays import Ints
from selftime.ingest.events.assemble import FileColumns
from selftime.ingest.events.event import NO_INT
from selftime.schema import NO_TIME

_FAR: Final = 60 * 10**9
"""A minute: no recording begins so long before all but its first events."""


def forget_lost(columns: FileColumns) -> None:
    """Device work of no length at 0, and whatever lies at 0 far before all else, has no time."""
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
    """Whether all else begins long after these ended, and lasts less than that."""
    others = start[(start != NO_INT) & ~zeros]
    gap = int(others.min()) - max(int(duration[zeros].max()), 0)
    return gap > _FAR and gap > int(others.max()) - int(others.min())
