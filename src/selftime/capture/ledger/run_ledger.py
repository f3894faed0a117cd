"""Starts and stops everything that writes to a process's wall-time ledger.

That is the stack sampler, the GC timer and the compilation timer.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from types import FrameType
from typing import Any, Final

from selftime.capture.facts.notebook_cells import cell_facts, current_cell_count
from selftime.capture.ledger.compilations import CALLBACKS, CompilationClock
from selftime.capture.ledger.device_times import DeviceStepTimes
from selftime.capture.ledger.ledger import NO_END_FACTS, Ledger
from selftime.capture.ledger.stacks import StackReader
from selftime.capture.ledger.watcher import StackWatcher
from selftime.capture.program.after_import import after_import, cancel_after_import
from selftime.capture.program.early_log import EarlyTimes
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.results.kept_results import KeptResults
from selftime.capture.results.seeding import seed_generators

_WHOLE: Final = "ended"

MIN_NS_OF_COMPILATION: Final = 1_000_000
"""Least duration in ns of a segment in which something may have been compiled."""


class RunLedger:
    """A process's wall-time ledger, with its stack sampler, GC timer and compilation timer."""

    def __init__(
        self,
        folder: Path,
        user_packages: Callable[[], Sequence[str]] = tuple,
        command: Sequence[str] = (),
        command_start_ns: int | None = None,
        process_start: int | None = None,
    ) -> None:
        """Makes a ledger that is in memory, and has not begun.

        Args:
            folder: Where its file is written.
            user_packages: Returns folders whose code counts as the user's, too.
            command: What was run.
            command_start_ns: When selftime began to load, in ns of `time.perf_counter_ns`.
            process_start: When the run began; by default the start of this process.
        """
        self.ledger = Ledger(folder, tuple(command), command_start_ns, process_start)
        self._reader = StackReader(user_packages)
        self.ledger.kinds.is_user_file = self._reader.is_user_file
        self._watcher = StackWatcher(self.ledger, self._reader)
        self._compilations = CompilationClock(self.ledger)
        self._device_times = DeviceStepTimes(self.ledger)
        self.is_started = False
        self._process = os.getpid()
        self._first_cell = current_cell_count()

    @property
    def path(self) -> Path | None:
        """Returns the path of the ledger's file; None until a line was written."""
        return self.ledger.file.path

    def start(self) -> None:
        """Begins to sample stacks, and to time garbage collections and compilations."""
        if self.is_started:
            return
        self.is_started = True
        self.ledger.collections.attach()
        after_import(CALLBACKS, self._compilations.poll)
        self.ledger.on_segment_end = self._on_segment_end
        self.ledger.time_device = self._time_device
        self.ledger.pause_readings = self._pause_readings
        self.ledger.resume_readings = self._watcher.resume
        self._watcher.start()

    def keep_results(self, options: RunOptions) -> None:
        """Seeds the random generators, and keeps what the program computes first, if asked to."""
        if options.seed is not None:
            seed_generators(options.seed)
        if options.keeps_results:
            self.ledger.results = KeptResults(options.seed)

    def prepare(self) -> None:
        """Does in this thread what the first stack sample would do."""
        self._reader.prepare()

    def take_over(self, early: EarlyTimes) -> None:
        """Adds what is known of the process from before selftime was loaded."""
        ledger = self.ledger
        ledger.begin_earlier(early.began_ns)
        for place in early.places:
            where = place.file, place.line, place.function
            activity = self._reader.activity_at(where, place.imported, place.library)
            ledger.add_reading(ledger.segment, activity, place.duration)
        ledger.activities.count("garbage_collection", early.collected_ns)
        ledger.activities.count("recording", perf_counter_ns() - early.ended_ns)

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """Counts a `with` block as work of selftime."""
        self.ledger.activities.enter("recording")
        try:
            yield
        finally:
            self.ledger.activities.leave()

    def start_at_first_step(self) -> None:
        """Delays `start` and `write` until the first step: most processes never make a step."""
        self.ledger.on_segment_end = self._start_writing

    def pass_stacks_to(self, observe: Callable[[FrameType | None], bool]) -> None:
        """Passes each sampled stack to `observe` while the program's own code runs.

        It returns whether it needs to see the next stack soon.
        """
        self._watcher.on_program_stack = observe

    def pass_evaluation_stacks_to(self, observe: Callable[[FrameType | None], object]) -> None:
        """Passes each stack that is sampled while a model is in evaluation mode to `observe`."""
        self._watcher.on_evaluation_stack = observe

    def write_while_running(self) -> None:
        """Has the ledger written to its file from its next second on, or at its end."""
        self.ledger.is_written = True

    def write(self) -> None:
        """Begins to write the ledger to its file; until then, it is kept in memory."""
        self.ledger.is_written = True
        self.ledger.flush()

    def finish(self, reason: str | None, end_facts: Mapping[str, Any] = NO_END_FACTS) -> None:
        """Writes the end of the run.

        Args:
            reason: Why it ended early; None for a normal end.
            end_facts: What else was found out at its end, as JSON values.
        """
        if os.getpid() != self._process:
            return
        self._stop()
        self._device_times.finish()
        cells = cell_facts(self._reader.user_files(), self._first_cell)
        if cells is not None:
            self.ledger.add_line({"cells": cells})
        if self.ledger.results is not None:
            self.ledger.add_line({"results": self.ledger.results.facts()})
        self.ledger.finish(reason or _WHOLE, end_facts)

    def abandon(self) -> None:
        """In a forked child: the run is its parent's."""
        cancel_after_import(CALLBACKS)
        self.ledger.collections.detach()
        self._compilations.detach()
        self.ledger.abandon()

    def _on_segment_end(self) -> None:
        if self.ledger.segment - self.ledger.last_segment >= MIN_NS_OF_COMPILATION:
            self._compilations.poll()

    def _time_device(self) -> None:
        self._device_times.end_step()
        if self._device_times.is_off:
            self.ledger.time_device = None

    def _pause_readings(self) -> None:
        """Pauses stack samples; what a first one would do is in no recording, at a step's end.

        Nothing is written until they go on. The file says so, for who reads it meanwhile.
        """
        self._reader.prepare()
        self._watcher.pause()
        self.ledger.add_line({"pause": perf_counter_ns()})
        self.ledger.flush()

    def _start_writing(self) -> None:
        with self.own_work():
            self.start()
            self.write()

    def _stop(self) -> None:
        cancel_after_import(CALLBACKS)
        if self.is_started:
            self._watcher.stop()
            self.ledger.collections.detach()
            self._compilations.detach()
