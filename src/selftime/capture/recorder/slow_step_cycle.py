"""Records one step that is expected to be slow, with the details of the main recording."""

import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from torch.profiler import schedule

from selftime.capture.facts.free_memory import free_memory_bytes
from selftime.capture.facts.step_overhead import StepOverhead
from selftime.capture.profiler.profile import Profile
from selftime.capture.recorder.no_recording import cut_reason
from selftime.capture.recorder.recorded_details import RecordedDetails
from selftime.capture.recorder.recording_guard import RecordingGuard
from selftime.capture.recorder.recording_plan import limit_of_unknown_step
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.running_profiler import RunningProfiler, discard_after_failure
from selftime.capture.recorder.slow_step_rhythm import ExpectedStep
from selftime.capture.steps import RecorderWork, StepSource
from selftime.errors import RecordingError


class _State(Enum):
    WARMING_UP = auto()
    RECORDING = auto()
    CUT = auto()
    """A limit was reached within a step, and the step goes on."""
    DONE = auto()


_RECORDING_STATES: Final = (_State.WARMING_UP, _State.RECORDING)


class SlowStepCycle:
    """State machine that records one slow step; each step's end advances it.

    It has the methods of `RecordingCycle` that end a recording. Where the slow step does not come,
    nothing is kept.
    """

    def __init__(
        self,
        options: RunOptions,
        source: StepSource,
        expected: ExpectedStep,
        details: RecordedDetails,
        recorder_work: RecorderWork,
        on_limit: Callable[[], None],
    ) -> None:
        """Makes a cycle; `on_limit` is called in a recording when `is_over_limit`."""
        self.source = source
        self.expected = expected
        self.own_ns = 0
        """Time in ns for which starting and stopping the profiler held the program."""
        self._profiler: RunningProfiler | None = None
        self._options = options
        self._details = details
        self._recorder_work = recorder_work
        self._guard = RecordingGuard(on_limit, recorder_work.fail)
        self._times = StepOverhead(source.label)
        self._state = _State.WARMING_UP
        self._began_s = time.monotonic()
        self._cut_reason: str | None = None

    @property
    def profile(self) -> Profile | None:
        """Returns the profiler with the recording; None if there is none to keep."""
        return None if self._profiler is None else self._profiler.profile

    @property
    def done(self) -> bool:
        return self._state is _State.DONE

    @property
    def recording(self) -> bool:
        return self._state in _RECORDING_STATES

    @property
    def is_over_limit(self) -> bool:
        """Returns whether the recording has reached a limit of time or events."""
        return self.recording and (self._guard.is_reached or self._is_over_time_limit)

    @property
    def _is_over_time_limit(self) -> bool:
        return time.monotonic() - self._began_s > self._options.seconds

    def start(self, packages: tuple[str, ...], before_recording: Callable[[], None]) -> bool:
        """Starts the profiler in the step before the slow one; returns False if it cannot run.

        `packages` are folders of installed packages that count as the user's code, and
        `before_recording` is called right before the profiler starts.
        """
        began = time.perf_counter_ns()
        steps = self.expected.last - self.expected.first + 1
        try:
            self._profiler = RunningProfiler(
                schedule(wait=0, warmup=1, active=steps, repeat=1),
                self._details,
                self._recorder_work,
                packages=packages,
                before_start=before_recording,
            )
        except RecordingError:  # another profiler runs
            return False
        self.own_ns += time.perf_counter_ns() - began
        return True

    def end_step(self, number: int, duration_ns: int, *, is_slow: bool) -> None:
        """Takes the end of a step into account: its number, its duration in ns."""
        began = time.perf_counter_ns()
        if self._state is _State.WARMING_UP:
            self._begin_recording()
        elif self._state is _State.RECORDING:
            self._times.profiled.append(duration_ns)
            self._end_recorded_step(number, is_slow=is_slow)
        elif self._state is _State.CUT:
            self._end(is_slow=is_slow)
        self.own_ns += time.perf_counter_ns() - began

    def _begin_recording(self) -> None:
        self._state, self._began_s = _State.RECORDING, time.monotonic()
        limit = limit_of_unknown_step(self._options, free_memory_bytes(), self._details)
        self._guard.prepare(limit)
        self._advance_profiler()
        self._guard.begin()

    def _end_recorded_step(self, number: int, *, is_slow: bool) -> None:
        if is_slow or number >= self.expected.last:
            self._guard.end()  # it is to end nothing while torch stops
            self._advance_profiler()
            self._end(is_slow=is_slow)
        else:
            self._advance_profiler()

    def _advance_profiler(self) -> None:
        if self._profiler is not None:
            self._profiler.end_step()

    def _end(self, *, is_slow: bool) -> None:
        """Ends the recording, and keeps it if the step was slow."""
        if not self._stop_profiler() or not is_slow or self.profile is None:
            self.discard()
            return
        self._state = _State.DONE
        if self._cut_reason is not None:
            self._times = StepOverhead(self.source.label, is_window=True)
        self.profile.partial, self.profile.step_times = self._cut_reason, self._times

    def interrupt(self) -> None:
        """Ends what is recorded within a step, since it has reached a limit."""
        if self._is_over_time_limit:
            excess = f"the limit of {self._options.seconds:g} s was reached"
        else:
            excess = self._guard.excess
        self._cut_reason = cut_reason(self.source, 0, excess)
        if self._state is _State.RECORDING and self._stop_profiler():
            self._state = _State.CUT
        else:
            self.discard()

    def finish(self, _reason: str | None) -> None:
        """Ends the recording at the end of the program, before the slow step has ended."""
        if not self.done:
            self.discard()

    def discard(self) -> None:
        """Ends the recording and deletes its data."""
        self._stop_profiler()
        if self._profiler is not None:
            self._profiler.forget()
        self._profiler, self._state = None, _State.DONE

    def abort(self) -> None:
        """Discards the recording after a failure; what failed may fail again."""
        discard_after_failure(self.discard, was_recording=self.recording)

    def _stop_profiler(self) -> bool:
        """Stops the profiler if it runs; returns False if another thread would have to stop it."""
        self._guard.end()
        return self._profiler is None or self._profiler.stop()
