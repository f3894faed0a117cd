"""Measures the durations of a process's steps with the host's and the device's clock.

While steps run, the host never waits for the device: a CUDA event is recorded into the stream at
each step boundary. The time between two events is the time that the device took for the step; work
still queued at a boundary counts for the step that enqueued it.
"""

import time
from array import array
from collections import deque
from typing import Any, Final

import torch

from selftime.capture.steps import StepSource

MAX_STORED_STEPS: Final = 1_000_000
"""Largest number of steps whose durations are stored; each takes 9 bytes."""


class StepClock:
    """Measures step durations, with steps from the most reliable kind of event that marks them."""

    def __init__(self) -> None:
        self.source: StepSource | None = None
        self.profiler: str | None = None
        """Name of the first other profiler that recorded this process; None if none did."""
        self.durations = array("q")
        """Duration of each step on the host's clock, in ns."""
        self.unusual = bytearray()
        """One byte per step: 1 if the step was marked as unusual, such as one with an
        evaluation, else 0."""
        self._is_unusual = False
        self._last: int | None = None
        self._device: DeviceStepClock | None = None
        self._previous: tuple[StepSource, array[int], bytearray] | None = None

    @property
    def ignores_modules(self) -> bool:
        """Returns whether a more reliable kind of event than module calls marks the steps."""
        return self.source is not None and self.source > StepSource.MODULE

    @property
    def is_full(self) -> bool:
        """Returns whether no more durations are stored because the maximum is reached."""
        return len(self.durations) >= MAX_STORED_STEPS

    def on_step_boundary(self, source: StepSource) -> None:
        """Stores the duration of the step that ends, and begins to time the next one."""
        now = time.perf_counter_ns()
        if self.source is None or source > self.source:
            self._start_over_with_step_source(source)
        if source == self.source and not self.is_full:
            if self._last is not None:
                self.durations.append(now - self._last)
                self.unusual.append(self._is_unusual)
            self._last = now
            if self._device is None and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch
                self._device = DeviceStepClock()
            if self._device is not None:
                self._device.record_boundary_event()
        self._is_unusual = False

    def mark_step_unusual(self) -> None:
        """Marks the running step as unusual, such as a step with an evaluation."""
        self._is_unusual = True

    def note_other_profiler(self, profiler: str) -> None:
        """Stores that another profiler records this process and thus slows its steps."""
        self.profiler = self.profiler or profiler

    def read_step_durations(self) -> "tuple[StepSource, bool, array[int], bytes] | None":
        """Returns (event that marks steps, is device clock, durations in ns, unusual flags).

        None if no step source has reported. Waits for the device.
        """
        if self.source is None:
            return None
        durations, unusual = self.durations, self.unusual
        if not durations and self._previous is not None:
            source, durations, unusual = self._previous
            return source, False, durations, bytes(unusual)
        device_durations = None if self._device is None else self._device.read_step_durations()
        if not device_durations:
            return self.source, False, durations, bytes(unusual)
        return (
            self.source,
            True,
            device_durations,
            bytes(unusual[len(unusual) - len(device_durations) :]),
        )

    def _start_over_with_step_source(self, source: StepSource) -> None:
        if self.source is not None and self.durations:
            self._previous = self.source, self.durations, self.unusual
        self.source, self._last, self._device = source, None, None
        self.durations, self.unusual = array("q"), bytearray()


class DeviceStepClock:
    """Measures step durations with CUDA events on the device that is current at the first step.

    At each boundary an event is recorded into the current stream. Events that the device has
    reached are read and reused.
    """

    def __init__(self) -> None:
        self.index = torch.cuda.current_device()
        self.durations: array[int] | None = array("q")
        """Durations in ns of the steps that the device has finished; None if a CUDA graph capture
        prevented the measurement.

        No event can be timed while a CUDA graph is captured.
        """
        self._queued_events: deque[Any] = deque()
        self._free_events: list[Any] = []

    def record_boundary_event(self) -> None:
        """Records a CUDA event between two steps."""
        if self.durations is None:
            return
        if torch.cuda.is_current_stream_capturing():
            self.durations = None
            return
        event = self._free_events.pop() if self._free_events else _new_cuda_timing_event()
        event.record(torch.cuda.current_stream(self.index))
        self._queued_events.append(event)
        while len(self._queued_events) > 1 and self._queued_events[1].query():
            self._read_duration_from_oldest_event()

    def read_step_durations(self) -> "array[int] | None":
        """Waits for the device; returns the durations of all steps in ns, None if unmeasured."""
        while self.durations is not None and len(self._queued_events) > 1:
            self._queued_events[1].synchronize()
            self._read_duration_from_oldest_event()
        return self.durations

    def _read_duration_from_oldest_event(self) -> None:
        start_event = self._queued_events.popleft()
        if self.durations is not None:
            self.durations.append(round(start_event.elapsed_time(self._queued_events[0]) * 1e6))
        self._free_events.append(start_event)


def _new_cuda_timing_event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch
