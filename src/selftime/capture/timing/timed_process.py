"""Times the steps of one process, from its import of torch to its end."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from selftime.capture.program.after_import import after_import
from selftime.capture.program.process_end import run_at_process_end
from selftime.capture.timing.step_times import StepTimes

if TYPE_CHECKING:
    from selftime.capture.steps import StepDetector, StepSource
    from selftime.capture.timing.step_clock import StepClock


class TimedProcess:
    """Times the steps of this process, and of its forked children, once torch is imported.

    `folder` receives a file of step times from each process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock: StepClock | None = None
        self._steps: StepDetector | None = None
        self._registered_process: int | None = None
        """Id of the process in which the exit handler that writes the times was registered; None
        before."""
        self._rank: int | None = None

    def watch(self) -> None:
        """Begins to time steps when the program imports torch."""
        after_import("torch", self._attach_to_torch)

    def _attach_to_torch(self) -> None:
        from selftime.capture.recorder.other_profilers import watch_other_profilers  # noqa: PLC0415 - imports torch

        try:
            self._begin_timing()
            watch_other_profilers(self._note_profiler)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._begin_timing_in_forked_child)
        except Exception as error:  # noqa: BLE001 - the program's `import torch` must not fail
            sys.stderr.write(f"selftime: this version of torch cannot be timed: {error}\n")

    def _begin_timing(self) -> None:
        from selftime.capture.recorder.step_watch import send_steps_to  # noqa: PLC0415 - imports torch
        from selftime.capture.steps import StepDetector  # noqa: PLC0415 - likewise
        from selftime.capture.timing.step_clock import StepClock  # noqa: PLC0415 - likewise

        self._clock = StepClock()
        self._steps = StepDetector(
            self.on_step_boundary, _do_nothing, on_unusual_step=self._clock.mark_step_unusual
        )
        self._steps.expect_no_profiler()
        self._steps.attach()
        send_steps_to(self)

    def _begin_timing_in_forked_child(self) -> None:
        """Starts a new timing in a forked child, without the parent's steps."""
        if self._steps is not None:
            self._steps.detach()
            self._begin_timing()

    def on_step_boundary(self, source: "StepSource") -> None:
        """Tells the clock that a step has ended; stops the timing if the clock is full."""
        from torch.utils.data import get_worker_info  # noqa: PLC0415 - torch is there by now

        if self._clock is None or self._steps is None:
            return
        if self._registered_process != os.getpid():
            if get_worker_info() is not None:  # a DataLoader worker runs no steps
                self._steps.detach()
                return
            self._registered_process, self._rank = os.getpid(), _distributed_rank()
            run_at_process_end(self._end_timing)
        self._clock.on_step_boundary(source)
        if self._clock.ignores_modules:
            self._steps.unwrap_modules()
        if self._clock.is_full:
            self._steps.detach()

    def _note_profiler(self, profiler: str) -> None:
        if self._clock is not None:
            self._clock.note_other_profiler(profiler)

    def _end_timing(self) -> None:
        if (
            self._registered_process != os.getpid() or self._clock is None
        ):  # registered by the parent
            return
        found = self._clock.read_step_durations()
        if found is None:
            return
        source, is_device_clock, durations, unusual = found
        StepTimes(
            process=os.getpid(),
            rank=self._rank,
            source=source.label,
            is_device_clock=is_device_clock,
            profiler=self._clock.profiler,
            is_truncated=self._clock.is_full,
            durations=durations,
            unusual=unusual,
        ).write_file(self.folder)


def _distributed_rank() -> int | None:
    from selftime.capture.facts.machine import rank_and_world  # noqa: PLC0415 - imports torch

    return rank_and_world()[0]


def _do_nothing() -> None:
    pass
