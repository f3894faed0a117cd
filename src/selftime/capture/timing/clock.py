"""When each step of a process ended, by the host's clock and, where there is one, the device's.

Nothing here makes the host wait for the device. On a device an event is put into the queue at each
boundary, so the time from one to the next is that in which the device went through a step: what is
still in the queue at a boundary counts for the step that put it there.
"""

import time
from array import array
from collections import deque
from typing import Any, Final

import torch

from selftime.capture.steps import Source

MOST_STEPS: Final = 1_000_000
"""Steps that are kept, 9 bytes each; what comes after tells nothing new."""


class StepClock:
    """Takes the time at each boundary between steps; a better source of steps begins anew."""

    def __init__(self) -> None:
        self.source: Source | None = None
        self.profiler: str | None = None
        """What else records this process, once something does."""
        self.durations = array("q")
        self.unlike = bytearray()
        self._is_unlike = False
        self._last: int | None = None
        self._device: DeviceClock | None = None
        self._lesser: tuple[Source, array[int], bytearray] | None = None

    @property
    def past_modules(self) -> bool:
        """Whether module calls can tell nothing better."""
        return self.source is not None and self.source > Source.MODULE

    @property
    def is_full(self) -> bool:
        return len(self.durations) >= MOST_STEPS

    def boundary(self, source: Source) -> None:
        """A step has ended and another begins."""
        now = time.perf_counter_ns()
        if self.source is None or source > self.source:
            self._begin(source)
        if source == self.source and not self.is_full:
            if self._last is not None:
                self.durations.append(now - self._last)
                self.unlike.append(self._is_unlike)
            self._last = now
            if self._device is None and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch
                self._device = DeviceClock()
            if self._device is not None:
                self._device.mark()
        self._is_unlike = False

    def note_unlike(self) -> None:
        """In the step that is about to end something happened that happens in few."""
        self._is_unlike = True

    def leave_to(self, profiler: str) -> None:
        """Something else records from now on, and slows the steps."""
        self.profiler = self.profiler or profiler

    def read(self) -> "tuple[Source, bool, array[int], bytes] | None":
        """Source, whether the device's clock told, times and kinds of steps; None without steps."""
        if self.source is None:
            return None
        durations, unlike = self.durations, self.unlike
        if not durations and self._lesser is not None:
            source, durations, unlike = self._lesser
            return source, False, durations, bytes(unlike)
        of_device = None if self._device is None else self._device.read()
        if not of_device:
            return self.source, False, durations, bytes(unlike)
        return self.source, True, of_device, bytes(unlike[len(unlike) - len(of_device) :])

    def _begin(self, source: Source) -> None:
        if self.source is not None and self.durations:
            self._lesser = self.source, self.durations, self.unlike
        self.source, self._last, self._device = source, None, None
        self.durations, self.unlike = array("q"), bytearray()


class DeviceClock:
    """Events in the queue of the device that is current at the first boundary.

    They go into the stream that is current at each boundary. An event is read once the device has
    passed it, and then used again.
    """

    def __init__(self) -> None:
        self.index = torch.cuda.current_device()
        self.durations: array[int] | None = array("q")
        """In nanoseconds, of the steps that the device has ended; None where it cannot tell."""
        self._pending: deque[Any] = deque()
        self._free: list[Any] = []

    def mark(self) -> None:
        """A boundary; none can be marked while a graph is captured."""
        if self.durations is None:
            return
        if torch.cuda.is_current_stream_capturing():
            self.durations = None
            return
        event = self._free.pop() if self._free else _new_event()
        event.record(torch.cuda.current_stream(self.index))
        self._pending.append(event)
        while len(self._pending) > 1 and self._pending[1].query():
            self._take()

    def read(self) -> "array[int] | None":
        """The times of all steps, once the device has ended the last one."""
        while self.durations is not None and len(self._pending) > 1:
            self._pending[1].synchronize()
            self._take()
        return self.durations

    def _take(self) -> None:
        began = self._pending.popleft()
        if self.durations is not None:
            self.durations.append(round(began.elapsed_time(self._pending[0]) * 1e6))
        self._free.append(began)


def _new_event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch
