"""One process of a timed program, from its import of torch to its end."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from selftime.capture.program.after_import import after_import
from selftime.capture.program.recorded_process import at_the_end
from selftime.capture.timing.order import StepTimes

if TYPE_CHECKING:
    from selftime.capture.steps import Source, Steps
    from selftime.capture.timing.clock import StepClock


class TimedProcess:
    """What times a process once it has imported torch; a fork makes it time the child too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._clock: StepClock | None = None
        self._steps: Steps | None = None
        self._prepared: int | None = None
        """The process that was prepared to end."""
        self._rank: int | None = None

    def watch(self) -> None:
        after_import("torch", self._attach)

    def _attach(self) -> None:
        from selftime.capture.recorder.other_profilers import watch_rivals  # noqa: PLC0415 - imports torch

        try:
            self._begin()
            watch_rivals(self._leave_to)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._begin_in_child)
        except Exception as error:  # noqa: BLE001 - the program's `import torch` goes on
            sys.stderr.write(f"selftime: this torch cannot be watched: {error}\n")

    def _begin(self) -> None:
        from selftime.capture.recorder.watching import follow  # noqa: PLC0415 - imports torch
        from selftime.capture.steps import Steps  # noqa: PLC0415 - likewise
        from selftime.capture.timing.clock import StepClock  # noqa: PLC0415 - likewise

        self._clock = StepClock()
        self._steps = Steps(self.boundary, _nothing, unlike=self._clock.note_unlike)
        self._steps.expect_no_recorder()
        self._steps.attach()
        follow(self)

    def _begin_in_child(self) -> None:
        """A forked child is a process of its own."""
        if self._steps is not None:
            self._steps.detach()
            self._begin()

    def boundary(self, source: "Source") -> None:
        """A step has ended and another begins."""
        from torch.utils.data import get_worker_info  # noqa: PLC0415 - torch is there by now

        if self._clock is None or self._steps is None:
            return
        if self._prepared != os.getpid():
            if get_worker_info() is not None:  # it prepares batches of steps made elsewhere
                self._steps.detach()
                return
            self._prepared, self._rank = os.getpid(), _rank()
            at_the_end(self._end)
        self._clock.boundary(source)
        if self._clock.past_modules:
            self._steps.stop_watching_modules()
        if self._clock.is_full:
            self._steps.detach()

    def _leave_to(self, profiler: str) -> None:
        if self._clock is not None:
            self._clock.leave_to(profiler)

    def _end(self) -> None:
        if self._prepared != os.getpid() or self._clock is None:  # a forked child inherits the call
            return
        found = self._clock.read()
        if found is None:
            return
        source, is_of_device, durations, unlike = found
        StepTimes(
            process=os.getpid(),
            rank=self._rank,
            source=source.label,
            is_of_device=is_of_device,
            profiler=self._clock.profiler,
            is_cut=self._clock.is_full,
            durations=durations,
            unlike=unlike,
        ).write(self.folder)


def _rank() -> int | None:
    from selftime.capture.facts.machine import rank_and_world  # noqa: PLC0415 - imports torch

    return rank_and_world()[0]


def _nothing() -> None:
    pass
