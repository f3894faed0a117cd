"""Records a few steps of a program once the durations of its steps are steady.

With a trigger it makes one for each request. When a better source of steps appears, it restarts.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftime.capture.facts.allocator import page_fault_count
from selftime.capture.profiler.open_ranges import open_ranges
from selftime.capture.recorder.fallback_recording import FallbackRecording
from selftime.capture.recorder.ledger_steps import ledger_name, recording_time
from selftime.capture.recorder.left_out_rank import LeftOutRank
from selftime.capture.recorder.no_recording import LIGHT, NOT_ASKED, no_recording_reason
from selftime.capture.recorder.own_work import OwnWork
from selftime.capture.recorder.recorded_program import RecordedProgram, do_nothing
from selftime.capture.recorder.recording_cycle import RecordingCycle
from selftime.capture.recorder.recording_plan import recorded_text
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.running_profiler import end_in_forked_child
from selftime.capture.recorder.slow_step_recordings import SlowStepRecordings
from selftime.capture.recorder.trace_writer import TraceWriter
from selftime.capture.recorder.user_messages import UserMessages
from selftime.capture.steps import RecorderWork, StepSource
from selftime.capture.trace_file.trace_files import check_trace_folder
from selftime.capture.workers.record import WorkerRecord
from selftime.errors import RecordingError

if TYPE_CHECKING:
    from selftime.capture.ledger.ledger import Ledger


class Recorder:
    """Records a program's steps, one recording at a time, and writes each recording to a file.

    Nothing is recorded while a trace is being written, since its Python frames would be included.
    """

    def __init__(
        self, options: RunOptions, user_packages: Callable[[], tuple[str, ...]] = tuple
    ) -> None:
        self.options = options
        self._user_packages = user_packages
        self.source: StepSource | None = None
        self.steps_seen = 0  # that have ended since the current or last recording was set up
        self._steps_of_source = 0  # that have ended, recorded or not
        self.steps_recorded = 0  # complete ones, in the last written trace
        self.traces: list[Path] = []
        self.is_adopted = False  # whether a profiler of the program itself recorded the trace
        self.partial: str | None = None  # why the last trace has fewer steps than requested
        self.reason: str | None = None  # why no trace was written, if none was or will be
        self.abandoned = False  # whether this process was forked while the parent recorded
        self._cycle: RecordingCycle | None = None
        self._writer = TraceWriter(options.folder)
        self._replaceable_traces: list[Path] = []  # to delete once better steps are written
        self._fallback = FallbackRecording()
        self._last_written: tuple[StepSource, int, int, str | None] | None = None
        self._is_closed = self._is_unusual_step = False
        self._has_ended, self._has_called_on_done = options.is_light, False
        self.recorder_work = RecorderWork(self.fail)  # keeps failures from the program
        self.own_work = OwnWork(self.recorder_work, self._resume_readings)
        self._slow_steps = SlowStepRecordings(
            options, self._writer, self.recorder_work, user_packages, self.check_limits
        )
        self._slow_steps.on_failure = self._notify_user
        self._step_faults: int | None = None
        self._process = os.getpid()
        self._workers = WorkerRecord(user_packages)
        if options.workers:
            self._workers.start()
        self.on_recording_start: Callable[[], None] = do_nothing  # called as a recording starts
        self.on_done: Callable[[], None] = do_nothing  # called once all traces are written
        self.ledger: Ledger | None = None  # to which each step of the run is added
        self.program = RecordedProgram()
        self.messages = UserMessages(options.notify)
        self.left_out = LeftOutRank(options.ranks, self.messages.add)
        self.wants_recording: Callable[[], bool] | None = None
        """Function that returns, after a step, whether to record now; None to record once."""

    @property
    def recording(self) -> bool:
        return self._slow_steps.recording or (self._cycle is not None and self._cycle.recording)

    @property
    def has_ended(self) -> bool:
        """Returns whether no more steps will be recorded; a trace may still be being written."""
        return self._has_ended

    @property
    def source_label(self) -> str | None:
        """Returns what the steps were found from; None if no step was found."""
        if self.is_adopted:
            return "the program's own profiler"
        return None if self.source is None else self.source.label

    @property
    def needs_no_modules(self) -> bool:
        """Returns whether a more reliable kind of event than module calls marks the steps."""
        return self.source is not None and self.source > StepSource.MODULE

    def on_step_boundary(self, source: StepSource) -> None:
        """Starts, continues or ends a recording when a step has ended and the next begins."""
        with self.recorder_work:
            if os.getpid() != self._process:
                return
            ledger = self.ledger
            if ledger is None or self.own_work.is_going_on or source < (self.source or source):
                self._handle_boundary(source)
                return
            if self._has_called_on_done and source == self.source:
                self.step_after_recording(source, self._is_unusual_step)
                return
            self._slow_steps.end_ledger_step(ledger, source, self._is_unusual_step, self.recording)
            with recording_time(ledger):
                self._handle_boundary(source)

    def step_after_recording(self, source: StepSource, is_unusual: bool) -> bool:
        """Adds a step to the ledger after the recording; returns whether usual ones are settled."""
        is_other = self.source is StepSource.TOLD and source is not self.source  # counted as told
        if self.ledger is None or os.getpid() != self._process or is_other:
            return False
        work = self._slow_steps.step_after_recording(self.ledger, source, is_unusual)
        if work is not None and not self.program.is_profiling_itself:
            with self.own_work.range(), recording_time(self.ledger):
                work()
        return not self._slow_steps.are_expected

    def _handle_boundary(self, source: StepSource) -> None:
        if self.own_work.is_going_on or self._is_closed:
            return
        with self.own_work.range():
            if self.source is None or source > self.source:
                self._switch_to_source(source)
            if source == self.source:
                self._advance_cycle(self.recorder_work.end_step())
                self._step_faults = page_fault_count()
        self._is_unusual_step = False

    def fail(self, error: Exception) -> None:
        """Ends recording for good after a failure of selftime's own code; the program goes on."""
        cycle, self._cycle = self._cycle or self._slow_steps.cycle, None
        self._is_closed = self._has_ended = True
        self.reason = f"selftime failed: {type(error).__name__}: {error}; please report it"
        self._notify_user(f"the recording ended, and the program went on: {self.reason}")
        with suppress(Exception):  # what failed may fail again
            if cycle is not None:
                cycle.abort()
        with suppress(Exception):
            self.program.on_failure()

    def note_unusual_step(self) -> None:
        """Marks the current step as unusual, such as one with an evaluation."""
        self._is_unusual_step = True

    def abandon_in_forked_child(self) -> None:
        """Stops the parent's recording in a forked child, and its profiler hooks."""
        self.abandoned = self.recording or not self._writer.is_idle
        if self.recording:
            end_in_forked_child()

    def check_limits(self) -> None:
        """Ends a recording in the middle of a step if it has reached a limit of time or events."""
        cycle = self._cycle or self._slow_steps.cycle
        if self.own_work.is_going_on or cycle is None or os.getpid() != self._process:
            return
        if not cycle.is_over_limit or not self.program.may_interrupt():
            return
        with self.own_work.range(), recording_time(self.ledger):
            cycle.interrupt()
            if self._cycle is not None and self._cycle.done:
                self._write_recording(self._cycle, at_once=False)

    def _resume_readings(self) -> None:
        if self.ledger is not None and not self.recording:
            self.ledger.resume_readings()

    def record_part_without_steps(self) -> None:
        """Begins to record a section of a program in which no step was found, as one step."""
        is_needed = self.source is None and self._cycle is None and self.wants_recording is None
        is_off = self.own_work.is_going_on or self._is_closed or self._has_ended
        if not is_needed or is_off or os.getpid() != self._process or self._is_left_out():
            return
        if self.program.is_profiling_itself or not self.program.may_interrupt():
            return
        with self.own_work.range():
            self.source = StepSource.WINDOW
            self._cycle = cycle = self._create_cycle(0)
            cycle.begin_window()
            if cycle.recording:
                self.on_recording_start()

    def pause_for_profiler(self, _profiler: str) -> bool:
        """Ends a recording before what cannot go beside one; False if that is selftime's own.

        Another one begins at a later step, unless all steps were recorded by then.
        """
        if self.own_work.is_going_on or os.getpid() != self._process:
            return False
        with self.own_work.range():
            self._writer.wait()
            self._slow_steps.discard()
            cycle, self._cycle = self._cycle, None
            if cycle is not None and cycle.has_all_steps:
                cycle.finish(None)
                self._write_recording(cycle, at_once=True)
            elif cycle is not None:
                cycle.discard()
        return True

    def yield_to_profiler(self, profiler: str) -> bool:
        """Ends recording before another profiler starts; returns False for selftime's own."""
        if self.own_work.is_going_on or os.getpid() != self._process:
            return False
        self.finish(f"{profiler} began to record")
        self._is_closed = True
        if not self.traces:
            self.reason = f"{profiler} began to record, and only one recorder can run at a time"
        return True

    def finish(self, reason: str | None) -> None:
        """Ends the recording and writes its trace; `reason` says why early, None if at the end."""
        if self.own_work.is_going_on or os.getpid() != self._process:
            return
        with self.own_work.range(), recording_time(self.ledger):
            self._writer.wait()
            self._slow_steps.end()
            if self._cycle is not None:
                self._cycle.finish(reason)
                self._write_recording(self._cycle, at_once=True)
            if not self.traces and not self._is_left_out():
                self._adopt_results_of_program()
            if not self._has_ended and self.wants_recording is None:
                self._give_up_recording(self._no_recording_reason(reason))
            elif not self.traces and self.reason is None:
                self.reason = LIGHT if self.options.is_light else NOT_ASKED
            self._call_on_done_once()
            self._workers.stop()

    def _adopt_results_of_program(self) -> None:
        path, message = self.program.keep_own_results(self.options.folder, ledger_name(self.ledger))
        if message is not None:
            self._notify_user(message)
        if path is not None:
            self._has_ended = self.is_adopted = True
            self.traces.append(path)

    def state_as_json(self) -> dict[str, Any]:
        """Returns the recorder's state as JSON values, for the HTTP trigger."""
        return self._writer.state_as_json(self.source, self.traces, is_on=self._cycle is not None)

    def _switch_to_source(self, source: StepSource) -> None:
        """Restarts recording with steps from a more reliable kind of event."""
        self._writer.wait()  # rare: the worse source has just finished
        self._slow_steps.discard()
        cycle, self.source, self._steps_of_source = self._cycle, source, 0
        self.messages.clear()  # on what the better recording replaces
        self._fallback.finish_and_keep(cycle)  # the better source may not yield a recording
        self._cycle = None
        self._has_ended = self.options.is_light
        self._has_called_on_done = False

    def begin_other_work(self, source: StepSource) -> bool:
        """Begins to record steps of other work; returns False if steps are recorded already."""
        cycle = self._cycle
        has_steps = self.traces or self._has_ended or (cycle is not None and cycle.has_all_steps)
        is_on_request = self.wants_recording is not None and cycle is None
        if self.own_work.is_going_on or self._is_closed or (has_steps and not is_on_request):
            return False
        with self.own_work.range():
            self._fallback.finish_and_keep(cycle)
            self._cycle, self.source, self._steps_of_source = None, source, 0
        return True

    def _advance_cycle(self, elapsed_ns: int) -> None:
        """Advances the recording by a step that took `elapsed_ns`, or starts a recording."""
        before, self._steps_of_source = self._steps_of_source, self._steps_of_source + 1
        if self._has_ended and self._writer.is_idle:
            self._call_on_done_once()
        if self._has_ended or self.program.is_profiling_itself:
            return
        is_free = self._cycle is None and self._writer.is_idle
        if is_free and self._is_left_out():
            return
        if is_free and (self.wants_recording is None or self.wants_recording()):
            try:
                check_trace_folder(self.options.folder)
            except RecordingError as error:  # no step is disturbed in vain
                self._give_up_recording(str(error))
                return
            self._cycle = self._create_cycle(before)
        cycle = self._cycle
        if cycle is None or open_ranges.outlive_recording:  # no recording may begin or go on
            return
        was_recording = cycle.recording
        cycle.advance_step(elapsed_ns, self._step_faults, is_usual=not self._is_unusual_step)
        self.steps_seen = cycle.steps_seen
        if cycle.recording and not was_recording:
            self.on_recording_start()
        while cycle.messages:
            self._notify_user(cycle.messages.pop(0))
        if cycle.done:
            self._write_recording(cycle, at_once=False)

    def _is_left_out(self) -> bool:
        """Ends the recording of a rank that is not to be recorded; returns whether this is one."""
        reason = self.left_out.reason()
        if reason is not None:
            self._has_ended, self.reason = True, reason
        return reason is not None

    def _create_cycle(self, steps_before: int) -> RecordingCycle:
        assert self.source is not None  # noqa: S101 - set by `boundary`
        cycle = RecordingCycle(
            self.options, self.source, self.recorder_work, self._user_packages, self.check_limits
        )
        cycle.steps_before = steps_before
        if self.ledger is not None:
            cycle.before_recording = self.ledger.pause_readings
        if self.wants_recording is None:  # each request may hold the program for as long
            cycle.continue_after(self.own_work.held)
        return cycle

    def _write_recording(self, cycle: RecordingCycle, *, at_once: bool) -> None:
        """Writes a finished recording, in a background thread unless `at_once`."""
        self._cycle = None
        self.steps_seen = cycle.steps_seen
        if cycle.profile is None:
            self._give_up_recording(cycle.reason or self._no_recording_reason())
            return
        cycle.profile.ledger_name = ledger_name(self.ledger)
        self._has_ended = self.wants_recording is None
        if at_once:
            self._write_now(cycle)
        else:
            self._writer.write_in_background(
                cycle.profile,
                lambda: self._prepare_in_background(cycle),
                lambda result: self._on_trace_written(cycle, result),
            )

    def _write_now(self, cycle: RecordingCycle) -> None:
        if cycle.profile is not None:
            written = self._writer.write_now(cycle.profile, cycle.attach_line_marks)
            self._on_trace_written(cycle, written)

    def _prepare_in_background(self, cycle: RecordingCycle) -> None:
        if self.ledger is not None:
            self.ledger.collections.begin_own_thread()
        cycle.attach_line_marks()

    def _on_trace_written(self, cycle: RecordingCycle, result: Path | RecordingError) -> None:
        if isinstance(result, RecordingError):
            self._give_up_recording(str(result))
            return
        self._fallback.keep(None)
        self.program.forget_own_results()
        for replaceable in self._replaceable_traces:
            replaceable.unlink(missing_ok=True)
            self.traces.remove(replaceable)
        self._replaceable_traces = [result] if self.wants_recording is None else []
        self.traces.append(result)
        self._slow_steps.begin_after(result, cycle)
        self._notify_user(f"recorded {recorded_text(cycle.steps_recorded)} in {result}")
        self._last_written = cycle.source, cycle.steps_seen, cycle.steps_recorded, cycle.partial
        self.steps_recorded, self.partial = cycle.steps_recorded, cycle.partial

    def _give_up_recording(self, reason: str) -> None:
        if self.wants_recording is not None:  # requested, and may be requested again
            self._notify_user(f"nothing was recorded: {reason}")
            self.reason = reason
            return
        self._has_ended, fallback = True, self._fallback.take()
        if fallback is not None:
            self.source, self.steps_seen = fallback.source, fallback.steps_seen
            self._write_now(fallback)
        elif self._last_written is not None:  # from a worse source of steps
            self.source, self.steps_seen, self.steps_recorded, self.partial = self._last_written
        else:
            self.reason = reason

    def _no_recording_reason(self, end_reason: str | None = None) -> str:
        """Returns why there is no recording; `end_reason` says why the program ended, if early."""
        has_torch_worked = self.program.has_torch_worked()
        return no_recording_reason(self.source, self.steps_seen, end_reason, has_torch_worked)

    def _call_on_done_once(self) -> None:
        if not self._has_called_on_done:
            self._has_called_on_done = True
            self.on_done()
            is_final = self._is_closed or (self.source is not None and self.source.is_best_detected)
            if is_final and self.wants_recording is None:
                self._workers.stop()

    def _notify_user(self, sentence: str) -> None:
        self.messages.add(sentence)
        if self.wants_recording is not None:  # the user asked for it right now
            self.messages.show()
