"""Keeps the latest steps of a growing ledger as columns of numbers."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from selftime.array_types import Flags, Ints
from selftime.rank_progress import RecentSteps

_KEPT_STEPS: Final = 2048
"""Number of the latest steps whose ends are kept: those of some seconds, of short steps, too."""
_RECENT_STEPS: Final = 64
"""Number of the latest steps by which ranks are compared."""
_NAMES: Final = ("start", "duration", "kind", "data_wait", "forward", "backward", "passes")
_START, _DURATION, _KIND, _DATA_WAIT, _FORWARD, _BACKWARD, _PASSES, _UNUSUAL = range(8)
_UNUSUAL_NAMES: Final = ("recorded", "evaluation", "compile")
"""Columns that are not 0 in a step that is not as usual ones are."""
_MAX_RECORDING_SHARE: Final = 0.05
"""Share of a step that the recorder's own work may take in one that is as usual."""
_LARGEST: Final = 1 << 62


class StepColumns:
    """The number of steps, and of the latest when they ended and what their time was spent on."""

    def __init__(self) -> None:
        self.count = 0
        self.end = 0
        """The end of the last segment in ns, on the clock of the ledger."""
        self._rows = np.empty((8, 0), np.int64)

    def add(self, told: Mapping[str, Any]) -> None:
        """Adds the columns of segments that a line tells; malformed ones are left out."""
        size = len(told["start"]) if isinstance(told.get("start"), list) else 0
        columns = [_column(told.get(name), size) for name in _NAMES]
        if not size or any(column is None for column in columns[:3]):
            return
        unusual = [_column(told.get(name), size) for name in _UNUSUAL_NAMES]
        zeros = np.zeros(size, np.int64)
        rows = [zeros if column is None else column for column in columns]
        known = [column != 0 for column in unusual if column is not None]
        recording = _column(told.get("recording"), size)
        if recording is not None:
            known.append(recording > _MAX_RECORDING_SHARE * rows[_DURATION])
        rows.append(np.logical_or.reduce(known).astype(np.int64) if known else zeros)
        table = np.stack(rows)
        self.end = max(self.end, int((table[_START] + table[_DURATION]).max()))
        steps = table[:, table[_KIND] >= 0]
        self.count += steps.shape[1]
        self._rows = np.concatenate([self._rows, steps], axis=1)[:, -_KEPT_STEPS:]

    def remove_superseded(self, told: Mapping[str, Any]) -> None:
        """Removes steps that the program's later steps show to be none, as the ledger tells."""
        is_none = told.get("is_phase") or told.get("is_evaluation") or told.get("is_preparation")
        begin, end = told.get("start"), told.get("end")
        if is_none is True and type(begin) is int and type(end) is int:
            is_superseded: Flags = (self._rows[_START] >= begin) & (self._rows[_START] < end)
            self.count -= int(is_superseded.sum())
            self._rows = self._rows[:, ~is_superseded]

    def ends(self) -> Ints:
        """Returns when each of the latest steps ended, in ns on the clock of the ledger."""
        ends: Ints = self._rows[_START] + self._rows[_DURATION]
        return ends

    def recent(self) -> RecentSteps:
        """Returns the latest steps that are as usual, and of the kind of most of them."""
        rows = self._rows[:, -2 * _RECENT_STEPS :]
        rows = rows[:, rows[_UNUSUAL] == 0]
        if rows.shape[1]:
            rows = rows[:, rows[_KIND] == np.bincount(rows[_KIND]).argmax()]
        rows = rows[:, -_RECENT_STEPS:]
        has_backward = rows[_BACKWARD] > 0
        before = np.where(has_backward, rows[_FORWARD] + rows[_DATA_WAIT], 0)
        return RecentSteps(rows[_DURATION], before, rows[_BACKWARD], rows[_PASSES])


def _column(told: object, size: int) -> Ints | None:
    """Returns a column of numbers; None if it is malformed, or not there."""
    if not isinstance(told, list) or len(told) != size:
        return None
    try:
        column = np.array(told)
    except (ValueError, OverflowError):  # lists of different lengths, or numbers too large
        return None
    if column.dtype != np.int64 or column.ndim != 1 or (abs(column) >= _LARGEST).any():
        return None
    return column
