"""Records slow steps that come again, after the main recording, each in a file beside its trace.

The ledger of the run tells which steps are slow. Where three or more come at about equal distances,
the next one is recorded: the profiler starts in the step before it, and what it recorded is kept if
the step is slow again. Each run keeps at most `MAX_RECORDINGS` such recordings and throws away at
most `MAX_FAILURES`; no further one begins once they have held the program for as long as `--hold`.

A slow step that the ledger explains, as by an evaluation, is recorded if that is cheap: if it has
no more events than the recording of usual steps may have.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from selftime.capture.ledger.ledger import Ledger
from selftime.capture.recorder.ledger_steps import end_ledger_step
from selftime.capture.recorder.recorded_details import RecordedDetails
from selftime.capture.recorder.recording_cycle import RecordingCycle
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.slow_step_cycle import SlowStepCycle
from selftime.capture.recorder.slow_step_rhythm import ExpectedStep, SlowStep, SlowStepRhythm
from selftime.capture.recorder.times_recording import is_in_job
from selftime.capture.recorder.trace_writer import TraceWriter
from selftime.capture.steps import RecorderWork, StepSource
from selftime.errors import RecordingError
from selftime.ledger_format import SLOW_STEP_SUFFIX

MAX_RECORDINGS: Final = 2
"""Largest number of slow steps that are recorded in a run, each of another rhythm."""

MAX_FAILURES: Final = 2
"""Largest number of recordings in a run that are thrown away since no slow step came."""


EXPLAINED_PARTS: Final = ("evaluation", "checkpoint", "epoch_boundary")
"""Activities of the ledger that explain a slow step."""


class SlowStepRecordings:
    """The slow steps of a run: which are expected, and the recordings of some of them."""

    def __init__(
        self,
        options: RunOptions,
        writer: TraceWriter,
        recorder_work: RecorderWork,
        user_packages: Callable[[], tuple[str, ...]],
        on_limit: Callable[[], None],
    ) -> None:
        """Makes an object without any.

        Args:
            options: What is recorded, and within which limits.
            writer: Writes the trace files.
            recorder_work: Knows the times of the current step.
            user_packages: Returns folders of installed packages that count as the user's code.
            on_limit: Called in a recording when its cycle is over a limit.
        """
        self.cycle: SlowStepCycle | None = None
        """The recording that is being made; None if there is none."""
        self.on_failure: Callable[[str], None] = _ignore
        """Function called with a sentence if a slow step that was recorded cannot be written."""
        self._options = options
        self._writer = writer
        self._recorder_work = recorder_work
        self._user_packages = user_packages
        self._on_limit = on_limit
        self._is_on = options.records_slow_steps and options.trigger is None
        self._rhythm = SlowStepRhythm()
        self._main: tuple[Path, RecordedDetails] | None = None
        """The file and the details of the main recording; None until it is written."""
        self._usual_events: int | None = None
        """The number of events of a usual step; None if unknown."""
        self._counted: dict[str, int] = {}
        """What the ledger counted of the step that ended last, in ns, if that may be slow."""
        self._recorded = self._failures = self._own_ns = 0

    @property
    def recording(self) -> bool:
        """Returns whether a profiler records a slow step, or is warming up for that."""
        return self.cycle is not None and self.cycle.recording

    @property
    def are_expected(self) -> bool:
        """Returns whether a slow step is expected to come, or being recorded."""
        return self.cycle is not None or bool(self._rhythm.expected)

    def begin_after(self, main: Path, cycle: RecordingCycle) -> None:
        """Allows recordings beside the main one, which is written, if that has all its steps."""
        self._main = (main, cycle.details) if cycle.partial is None else None
        self._usual_events = cycle.events_of_step

    def end_ledger_step(
        self, ledger: Ledger, source: StepSource, is_unusual: bool, is_recorded: bool
    ) -> bool:
        """Ends a step in the ledger; returns whether it was slow."""
        began, ended = ledger.segment, self._recorder_work.start_ns
        if not self._is_on or ended - began < self._least_ns(ledger):  # most steps
            end_ledger_step(ledger, source, ended, is_unusual, is_recorded=is_recorded)
            return False
        _, _, self._counted = ledger.instant(ended)
        end_ledger_step(ledger, source, ended, is_unusual, is_recorded=is_recorded)
        return self._note_slow_step(ledger, is_recorded=is_recorded)

    def _least_ns(self, ledger: Ledger) -> int:
        """Returns how long a slow step takes at least, in ns."""
        least = ledger.kinds.slow_step_limit.read_after_ns
        if not least:
            return sys.maxsize
        if self._rhythm.observed_from is None:
            self._rhythm.observed_from = ledger.steps  # the number of the step that ends now
        return least

    def _note_slow_step(self, ledger: Ledger, *, is_recorded: bool) -> bool:
        """Takes note of a step if it was slow without our work; returns whether it was."""
        duration, limit = self._recorder_work.step_ns, ledger.kinds.slow_step_limit
        if duration < limit.read_after_ns:
            return False
        if self.cycle is not None or not is_recorded:
            excess = duration - (limit.median_ns or 0)
            explained = sum(self._counted.get(part, 0) for part in EXPLAINED_PARTS)
            self._rhythm.add(SlowStep(ledger.steps - 1, excess, explained))
        return True

    def step_after_recording(
        self, ledger: Ledger, source: StepSource, is_unusual: bool
    ) -> Callable[[], None] | None:
        """Ends a step after the main recording.

        Returns the work to do now: to begin, continue or end the recording of a slow step. None if
        there is none.
        """
        if not self._is_on:
            end_ledger_step(ledger, source, self._recorder_work.start_ns, is_unusual)
            return None
        began, cycle = ledger.segment, self.cycle
        is_recorded = cycle is not None
        is_slow = self.end_ledger_step(ledger, source, is_unusual, is_recorded)
        self._recorder_work.ends_step = True
        if cycle is not None:
            step = began, self._recorder_work.step_ns, is_slow
            return partial(self._advance_cycle, cycle, ledger, *step)
        if not self._rhythm.expected or source is StepSource.LOOP:  # its steps end inexactly by now
            return None
        expected = self._step_due(ledger.steps + 1, ledger)
        return None if expected is None else partial(self._begin_cycle, expected, ledger, source)

    def _step_due(self, number: int, ledger: Ledger) -> ExpectedStep | None:
        """Returns the slow step that may come first at a number; None if it is not recorded."""
        due = next((one for one in self._rhythm.expected if one.first == number), None)
        if due is None or self._main is None or not self._writer.is_idle or is_in_job():
            return None
        is_long = due.previous.excess_ns > 1e9 * self._options.seconds
        is_held = self._own_ns > 1e9 * self._options.hold
        if is_long or is_held:
            return None
        if not self._is_worth_it(due.previous, ledger):
            self._rhythm.ignore(due)
            return None
        return due

    def _is_worth_it(self, slow: SlowStep, ledger: Ledger) -> bool:
        """Returns whether to record a slow step like one before."""
        if not slow.is_explained or self._main is None:
            return True
        median_ns = ledger.slow_step_limit.median_ns
        if self._usual_events is None or not median_ns:
            return False
        events = self._usual_events * (1 + slow.excess_ns / median_ns)
        _, details = self._main
        return events <= details.events_in_hold(self._options)

    def _begin_cycle(self, expected: ExpectedStep, ledger: Ledger, source: StepSource) -> None:
        assert self._main is not None  # noqa: S101 - as `_step_due` has found
        _, details = self._main
        self._writer.wait()  # its thread would be recorded
        cycle = SlowStepCycle(
            self._options, source, expected, details, self._recorder_work, self._on_limit
        )
        self.cycle = cycle  # before the readings are paused
        if not cycle.start(self._user_packages(), ledger.pause_readings):
            self.cycle = None

    def _advance_cycle(
        self, cycle: SlowStepCycle, ledger: Ledger, began: int, duration_ns: int, is_slow: bool
    ) -> None:
        """Passes the step that has ended on to the recording; `began` is when it began, in ns."""
        cycle.end_step(ledger.steps - 1, duration_ns, is_slow=is_slow)
        if cycle.done:
            self._end_cycle(cycle, ledger, began)

    def _end_cycle(self, cycle: SlowStepCycle, ledger: Ledger, began: int) -> None:
        """Writes a recording that has ended with the step that began at `began` (ns), if any."""
        self.cycle = None
        self._own_ns += cycle.own_ns
        profile = cycle.profile
        if profile is None or self._main is None:
            self._note_failure()
        else:
            self._recorded += 1
            self._rhythm.ignore(cycle.expected)
            begin_s = (began - (ledger.process_began or ledger.began)) / 1e9
            profile.slow_step = {"index": ledger.steps - 1, "begin_s": begin_s}
            main, _ = self._main
            name = main.name.partition(".pt.trace.json")[0] + SLOW_STEP_SUFFIX
            self._writer.write_in_background(
                profile,
                ledger.collections.begin_own_thread,
                partial(self._on_written, ledger, began),
                name,
            )
            if self._recorded >= MAX_RECORDINGS:
                self._stop()

    def _note_failure(self) -> None:
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            self._stop()

    def _stop(self) -> None:
        self._is_on, self._rhythm = False, SlowStepRhythm()

    def _on_written(self, ledger: Ledger, began: int, result: Path | RecordingError) -> None:
        if isinstance(result, RecordingError):
            self.on_failure(f"a slow step was recorded and could not be kept: {result}")
            return
        told: dict[str, Any] = {"start": began, "file": result.name}
        ledger.add_line({"recorded_slow_step": told})

    def end(self) -> None:
        """Records no slow step any more; deletes a recording that is being made."""
        self.discard()
        self._stop()

    def discard(self) -> None:
        """Ends a recording that is being made, and deletes its data."""
        cycle, self.cycle = self.cycle, None
        if cycle is not None:
            cycle.discard()
            self._note_failure()


def _ignore(_sentence: str) -> None:
    pass
