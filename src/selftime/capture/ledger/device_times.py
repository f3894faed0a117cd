"""Times what a device needs for each step by events at the ends of steps, without waiting for it.

An event is put behind the work that the step gave to the current stream. When the device has
reached the events of two successive ends, the time between them is known: mostly some steps later.
CUDA is never initialised for it.
"""

import sys
from collections import deque
from typing import Any, Final

from selftime.capture.ledger.ledger import Ledger

MAX_STEPS_AHEAD: Final = 1024
"""Largest number of steps that the program may be ahead of the device; beyond it none is timed."""

STEPS_A_LINE: Final = 64
"""Number of steps whose times are added to the ledger at once."""


def torch_has_cuda() -> bool:
    """Returns whether the program's torch was built for CUDA or ROCm."""
    return bool(sys.modules["torch"].backends.cuda.is_built())


class DeviceStepTimes:
    """Adds to the ledger of a run how long the device needed for each step, once it is known."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last: tuple[int, int, Any] | None = None
        """Start of the current step in ns, the device, and its event; None if none was put."""
        self._pending: deque[tuple[int, Any, Any]] = deque()
        """For each step that the device has not been seen to end: its start in ns, and the events
        at its begin and end."""
        self._known: list[tuple[int, int]] = []
        """Start and device time in ns of steps that the ledger does not have yet."""
        self.is_off = False
        """Whether no step is timed any more: torch knows no device, or the device failed."""

    def end_step(self) -> None:
        """Puts an event behind the work of a step that ended, in the program's thread."""
        if self.is_off:
            return
        cuda: Any = sys.modules.get("torch.cuda")
        if cuda is None or not cuda.is_initialized():
            self.is_off = cuda is not None and not torch_has_cuda()
            return
        try:
            if not cuda.is_current_stream_capturing():
                self._end_step(cuda)
        except RuntimeError:  # the device failed, which the program will see in its own calls
            self.is_off = True
            self._pending.clear()

    def _end_step(self, cuda: Any) -> None:
        self._take_known()
        event, device = cuda.Event(enable_timing=True), cuda.current_device()
        event.record()
        ended = self._ledger.last_segment
        if self._last is not None and len(self._pending) < MAX_STEPS_AHEAD:
            began, begin_device, begin = self._last
            if (began, begin_device) == (ended, device):
                self._pending.append((began, begin, event))
        self._last = self._ledger.segment, device, event
        if len(self._known) >= STEPS_A_LINE:
            self._write()

    def _take_known(self) -> None:
        while self._pending and self._pending[0][2].query():
            start, begin, end = self._pending.popleft()
            self._known.append((start, round(1e6 * begin.elapsed_time(end))))

    def finish(self) -> None:
        """Adds what is known at the end of the run."""
        if not self.is_off:
            try:
                self._take_known()
            except RuntimeError:  # the device failed
                self.is_off = True
        self._write()

    def _write(self) -> None:
        known, self._known = self._known, []
        if known:
            starts, times = zip(*known, strict=True)
            self._ledger.add_line({"device": {"start": list(starts), "duration": list(times)}})
