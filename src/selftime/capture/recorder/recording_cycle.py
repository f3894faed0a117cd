"""Makes one recording: waits for steady steps, records a few, then times some unrecorded ones.

By default, the steps of a training loop are used so:
- Step 1 sets the program up and is ignored.
- Step 2 is recorded in case the program ends soon; it shows how large steps are, and is kept where
  `--hold` has no room for another.
- Steps from 3 on are timed without the profiler, until they are steady.
- Then 1 step warms the profiler up and 5 are recorded, with shapes and Python frames.
- Then 5 are timed without it. If steps are short, 1 between them is recorded with line marks.
- If recording made its steps longer, 5 more are recorded without shapes and frames after 1 of
  warm-up: the events get the times of these.

If the program ends earlier, the trace contains what was recorded last, and is marked as partial.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from torch.profiler import ProfilerAction, schedule

from selftime.capture.facts.allocator import page_fault_count_since
from selftime.capture.facts.free_memory import free_memory_bytes
from selftime.capture.facts.step_overhead import StepOverhead
from selftime.capture.profiler.profile import Profile
from selftime.capture.recorder.cycle_states import (
    RECORDING_STATES,
    STATES_WITH_ALL_STEPS,
    CycleState,
)
from selftime.capture.recorder.first_recording import FirstRecording
from selftime.capture.recorder.further_recordings import FurtherRecordings, MainRecording
from selftime.capture.recorder.held_time import HeldTime
from selftime.capture.recorder.no_recording import cut_reason, ended_early_reason
from selftime.capture.recorder.recorded_details import requested_details
from selftime.capture.recorder.recorded_program import do_nothing
from selftime.capture.recorder.recording_guard import RecordingGuard
from selftime.capture.recorder.recording_plan import (
    EventLimit,
    limit_of_unknown_step,
    limit_of_window,
)
from selftime.capture.recorder.recording_start import RecordingStart
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.running_profiler import RunningProfiler, discard_after_failure
from selftime.capture.steps import RecorderWork, StepSource
from selftime.errors import RecordingError


class RecordingCycle:
    """State machine that makes one recording of a few steady steps; each step's end advances it."""

    def __init__(
        self,
        options: RunOptions,
        source: StepSource,
        recorder_work: RecorderWork,
        user_packages: Callable[[], tuple[str, ...]] = tuple,
        on_limit: Callable[[], None] | None = None,
    ) -> None:
        """Makes a cycle; `on_limit` is called in a recording when `is_over_limit`."""
        self.options = options
        self.source = source
        self.steps_seen = 0
        """Number of steps that have ended so far, recorded or not."""
        self.steps_recorded = 0
        """Number of complete steps in the recording."""
        self.partial: str | None = None
        """Why the recording has fewer steps than requested; None if it has all."""
        self.reason: str | None = None
        """Why there is no recording; None if there is one."""
        self.messages: list[str] = []
        """Messages for the user that the caller has not shown yet."""
        self.before_recording: Callable[[], None] = do_nothing
        """Function called right before a profiler starts."""
        self._recorder_work = recorder_work
        self._user_packages = user_packages
        self._state = CycleState.WAITING
        self._times = StepOverhead(source.label)
        self._first: FirstRecording | None = None
        self._main: RunningProfiler | None = None  # with the recording to be written when done
        self._skips_next_duration = False  # of a step that was recorded in part
        self._guard = RecordingGuard(on_limit or do_nothing, recorder_work.fail)
        self._further = FurtherRecordings(recorder_work, user_packages, self._guard)
        self.details = requested_details(options)  # of each operator
        self.events_of_step: int | None = None  # a usual one, with these details; None if unknown
        self._limit: EventLimit | None = None  # of the main recording, once it is planned
        self._pause_ns = 0  # of the program at the end of a recording of one step, estimated
        self._steps_to_record = options.active
        self._recording_start_ns = 0
        self.steps_before = 0  # that had ended before those that this cycle sees
        self._start: RecordingStart | None = None

    @property
    def profile(self) -> Profile | None:
        """Returns the profiler with the recording to write when done; None without a recording."""
        return None if self._main is None else self._main.profile

    @property
    def _first_profiler(self) -> RunningProfiler | None:
        return None if self._first is None else self._first.profiler

    @property
    def done(self) -> bool:
        return self._state is CycleState.DONE

    @property
    def has_all_steps(self) -> bool:
        """Returns whether all requested steps are recorded; further measurements may follow."""
        return self._state in STATES_WITH_ALL_STEPS

    @property
    def recording(self) -> bool:
        return self._state in RECORDING_STATES

    @property
    def is_over_limit(self) -> bool:
        """Returns whether the recording has reached a limit of time or events."""
        return self._guard.is_reached or self._is_over_time_limit

    @property
    def _recorded_ns(self) -> int:
        return time.monotonic_ns() - self._recording_start_ns

    @property
    def _is_over_time_limit(self) -> bool:
        return self.recording and self._recorded_ns > 1e9 * self.options.seconds

    @property
    def _is_amid_steps(self) -> bool:
        return self.source is not StepSource.WINDOW and not self.has_all_steps

    def interrupt(self) -> None:
        """Ends what is recorded within a step, since it has reached a limit."""
        if self._is_over_time_limit and not self.has_all_steps:
            self.finish(f"the limit of {self.options.seconds:g} s was reached within a step")
        elif self._guard.has_seen_imports and self._is_amid_steps:
            self._begin_again()
        elif self._state is CycleState.FIRST_RECORDING:
            self._end_first_recording(self._recorded_ns, is_cut=True)
            self._skips_next_duration = True
        elif self._state is CycleState.RECORDING:
            self.finish(cut_reason(self.source, self.steps_recorded, self._guard.excess))
        elif self._state is CycleState.FURTHER_RECORDING:
            self._end_further_recording()

    def _begin_again(self) -> None:
        """Deletes what is recorded in this state, and records a later step in its place."""
        if self._state is CycleState.FIRST_RECORDING:
            profiler, self._first = self._first_profiler, None
            self._state = CycleState.WAITING
        else:
            profiler, self._main = self._main, None
            self._state, self.steps_recorded = CycleState.TIMING_BEFORE, 0
            self._times.profiled = []
        self._guard.discard(profiler)
        self._skips_next_duration = True

    def continue_after(self, held: HeldTime) -> None:
        """Lets count for how long earlier recordings have held the program; adds to it."""
        self._guard.held = held

    def begin_window(self) -> None:
        """Begins to record a part of a program in which no step was found."""
        self._guard.prepare(limit_of_window(self.options, free_memory_bytes()))
        self._main = self._start_profile(lambda _: ProfilerAction.RECORD)
        if self._main is not None:
            self._state = CycleState.RECORDING
            self._guard.begin()

    def advance_step(
        self, elapsed_ns: int, page_faults_before: int | None, *, is_usual: bool = True
    ) -> None:
        """Starts, continues or stops the profiler at the end of a step.

        Args:
            elapsed_ns: The step's duration in nanoseconds.
            page_faults_before: The page faults of the process before the step.
            is_usual: False for a step that differs from most, such as one with an evaluation: its
                duration is not used.
        """
        self.steps_seen += 1
        is_usual, self._skips_next_duration = is_usual and not self._skips_next_duration, False
        if self._state is CycleState.WAITING and self.options.warmup != 1:
            self._start_first_recording()
        elif self._state is CycleState.FIRST_RECORDING:
            self._end_first_recording(elapsed_ns, is_usual=is_usual)
        elif self._state is CycleState.TIMING_BEFORE:
            if is_usual:
                self._times.add_unprofiled(elapsed_ns, page_fault_count_since(page_faults_before))
        elif self._state is CycleState.WARMING_UP:
            self._begin_recording()
        elif self._state is CycleState.RECORDING:
            self._on_recorded_step(elapsed_ns)
        elif self._state is CycleState.FURTHER_RECORDING:
            self._on_step_of_further_recording()
        elif self._state is CycleState.TIMING_AFTER:
            self._on_step_after_recording(elapsed_ns if is_usual else None, page_faults_before)
        if self._state in (CycleState.WAITING, CycleState.TIMING_BEFORE):
            self._start_warm_up_if_due()

    def finish(self, reason: str | None) -> None:
        """Ends the recording and keeps its data; `reason` says why early, None if at the end."""
        if self.done:
            return
        self._end_further_recording()
        state = self._state
        if not self._stop_profiles():
            self._discard_with_reason(
                "the program ended while the profiler ran in another thread, and only that thread "
                "can stop it; make more steps, or make them on the main thread"
            )
            return
        # If boundaries begin steps, the last step ends with the program.
        is_step_complete = not self.source.ends_steps and reason is None
        if state is CycleState.TIMING_AFTER:
            self._end_cycle(None)
        elif state is CycleState.RECORDING and (self.steps_recorded or reason or is_step_complete):
            self._end_cycle(reason, is_early=True)
        elif self._first is not None and (
            state is not CycleState.FIRST_RECORDING or reason or is_step_complete
        ):
            self._end_with_first_recording(self._first, reason, is_step_complete=is_step_complete)
        else:
            self.discard()

    def _end_with_first_recording(
        self, first: FirstRecording, reason: str | None, *, is_step_complete: bool
    ) -> None:
        if not first.has_ended:
            self.steps_recorded = int(is_step_complete)
        elif first.is_cut:
            reason = cut_reason(self.source, 0, self._guard.excess)
        else:
            self.steps_recorded, self._times.profiled = 1, [first.duration_ns]
        self._main = first.profiler
        self._end_cycle(reason, is_early=True)

    def discard(self) -> None:
        """Ends the recording and deletes its data."""
        self._end_further_recording()
        self._guard.discard(self._first_profiler)
        self._guard.discard(self._main)
        self._further.forget()
        self._first = self._main = None
        self._state = CycleState.DONE

    def abort(self) -> None:
        """Discards the recording after a failure; what failed may fail again."""
        discard_after_failure(self.discard, was_recording=self.recording)

    def _end_cycle(self, partial: str | None, *, is_early: bool = False) -> None:
        if is_early and partial is None:
            partial = ended_early_reason(self.source, self.steps_seen, self._steps_to_record)
        self._discard_first_recording()
        self._state = CycleState.DONE
        self.partial = partial
        if partial is not None and not self.steps_recorded:
            self._times = self._times.of_window()
        if self.profile is not None:
            self.profile.partial = partial
            self.profile.step_times = self._times

    def _discard_first_recording(self) -> None:
        if self._first is not None and self._first.profiler is not self._main:
            self._first.profiler.forget()
        self._first = None

    def _start_warm_up_if_due(self) -> None:
        if self._start is None:
            self._start = RecordingStart(self.options, self.source.label, self.steps_before)
        if self._start.is_due(self.steps_seen, self._times.unprofiled, self._plan_recording):
            self._steps_to_record = self._start.steps(self._plan_recording)
            if not self.has_all_steps:
                self._start_warm_up()

    def _start_first_recording(self) -> None:
        if self.steps_seen == 1 and self._guard.held.ns > 1e9 * self.options.hold:
            return  # steps of other sources used up the time, and a better one may be to come
        self._guard.prepare(limit_of_unknown_step(self.options, free_memory_bytes()))
        profiler = self._start_profile(lambda _: ProfilerAction.RECORD)
        if profiler is not None:
            self._first = FirstRecording(profiler, self.options, self._guard)
            self._times.first_step = self.steps_before + self.steps_seen + 1
            self._state = CycleState.FIRST_RECORDING
            self._guard.begin()

    def _end_first_recording(
        self, elapsed_ns: int, *, is_cut: bool = False, is_usual: bool = True
    ) -> None:
        assert self._first is not None  # noqa: S101 - guaranteed by the state
        self._first.end(elapsed_ns, is_cut=is_cut, is_usual=is_usual)
        self._state = CycleState.TIMING_BEFORE

    def _plan_recording(self) -> int:
        """Decides how many steps to record, from the first recording; returns that."""
        self._guard.program_memory.end_growth()
        if self._first is None:
            return self._steps_to_record
        timed_ns = self._times.unprofiled
        plan = self._first.plan(timed_ns, free_memory_bytes(), has_frames=self.details.frames)
        self._steps_to_record, self._pause_ns, self._limit = plan.steps, plan.pause_ns, plan.limit
        self.events_of_step, self.details = plan.events_of_step, plan.details
        self._times.left_out = plan.left_out
        if plan.message is not None:
            self.messages.append(plan.message)
        if plan.keeps_first:
            self._main, self._state = self._first.profiler, CycleState.TIMING_AFTER
            self.steps_recorded, self._times.profiled = 1, [self._first.duration_ns]
            self._first = None
        return self._steps_to_record

    def _start_warm_up(self) -> None:
        self._main = self._start_profile(
            schedule(wait=0, warmup=1, active=self._steps_to_record, repeat=1)
        )
        if self._main is not None:
            self._state = CycleState.WARMING_UP

    def _start_profile(
        self, schedule_of_cycle: Callable[[int], ProfilerAction]
    ) -> RunningProfiler | None:
        self._recording_start_ns = time.monotonic_ns()
        try:
            profiler = RunningProfiler(
                schedule_of_cycle,
                self.details,
                self._recorder_work,
                packages=self._user_packages(),
                before_start=self.before_recording,
            )
        except RecordingError as error:
            self._discard_with_reason(str(error))
            return None
        if profiler.profile.skipped_frames is not None:
            self.details = replace(self.details, frames=False)
            self.messages.append(profiler.profile.skipped_frames)
        return profiler

    def _discard_with_reason(self, reason: str) -> None:
        self.discard()
        self.reason = reason

    def _begin_recording(self) -> None:
        self._state, self._recording_start_ns = CycleState.RECORDING, time.monotonic_ns()
        self._times.first_step = self.steps_before + self.steps_seen + 1
        if self._limit is not None:
            self._guard.prepare(self._limit)
        self._guard.end_step(self._main)
        self._guard.begin()

    def _on_recorded_step(self, elapsed_ns: int) -> None:
        self._times.profiled.append(elapsed_ns)
        self.steps_recorded += 1
        if self.steps_recorded >= self._steps_to_record:
            self._guard.end()  # it is to end nothing while torch stops
            self._guard.end_step(self._main)
        elif not self._is_over_time_limit:
            self._guard.end_step(self._main)
            return
        self._guard.stop(self._main)
        self._discard_first_recording()  # slow, so not between recorded steps
        self._steps_to_record = self.steps_recorded
        self._state = CycleState.TIMING_AFTER

    def _on_step_after_recording(
        self, elapsed_ns: int | None, page_faults_before: int | None
    ) -> None:
        if elapsed_ns is not None:
            self._times.add_unprofiled(elapsed_ns, page_fault_count_since(page_faults_before))
        ended = self.steps_before + self.steps_seen
        main = MainRecording.of(self.details, self._times, self._pause_ns, ended)
        hold_ns = int(1e9 * self.options.hold)
        if self._further.begin_after_step(main, hold_ns, self._limit, self.before_recording):
            self._state = CycleState.FURTHER_RECORDING
            self._recording_start_ns = time.monotonic_ns()
        elif self._further.are_over:
            self._end_cycle(None)

    def _on_step_of_further_recording(self) -> None:
        if self._further.end_step():
            self._end_further_recording()
            if self._further.are_over:
                self._end_cycle(None)

    def _end_further_recording(self) -> None:
        if self._state is CycleState.FURTHER_RECORDING:
            self._further.end()
            self._state = CycleState.TIMING_AFTER

    def attach_line_marks(self) -> None:
        """Adds to the recording what further recordings of the same steps show."""
        if self.profile is not None:
            self._further.attach_to(self.profile)

    def _stop_profiles(self) -> bool:
        """Stops the profilers of the first and main recordings; returns whether both stopped."""
        return all([self._guard.stop(self._first_profiler), self._guard.stop(self._main)])
