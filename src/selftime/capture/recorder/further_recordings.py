"""Recordings of the same steps after the main one: lines with marks, times without details."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from torch._C._autograd import _profiler_enabled

from selftime.capture.facts.step_overhead import StepOverhead
from selftime.capture.profiler.profile import Profile
from selftime.capture.recorder.marked_step import MarkedStep
from selftime.capture.recorder.recorded_details import RecordedDetails
from selftime.capture.recorder.recording_guard import RecordingGuard
from selftime.capture.recorder.recording_plan import EventLimit
from selftime.capture.recorder.times_recording import (
    NO_DETAILS,
    STEPS_BEFORE_TIMES,
    TimesRecording,
    is_in_job,
)
from selftime.capture.steps import RecorderWork

TIMED_STEPS_AFTER_RECORDING: Final = 5
"""Number of steps after a recording that are timed without a profiler, to measure its overhead."""

LINE_MARKS_SLOWDOWN_FACTOR: Final = 3
"""Assumed ratio of the duration of a step recorded with line marks to that of a recorded step."""

MIN_SLOWDOWN: Final = 1.03
"""How many times as long as an unrecorded step a step recorded in detail must take for the times to
be recorded once more."""


@dataclass(frozen=True, slots=True)
class MainRecording:
    """What is known of the main recording when the further ones begin."""

    details: RecordedDetails
    recorded_ns: list[int]
    """Durations of its steps, in ns."""
    unrecorded_ns: list[int]
    """Durations of steps around it, in ns."""
    pause_ns: int
    """How long the end of a recording of one step holds the program, in ns; 0 if unknown."""
    steps_ended: int
    """Number of steps of the run that have ended."""

    @classmethod
    def of(
        cls, details: RecordedDetails, times: StepOverhead, pause_ns: int, steps_ended: int
    ) -> "MainRecording":
        """Returns what the times of its steps, and of those around it, show."""
        return cls(details, times.profiled, times.unprofiled, pause_ns, steps_ended)

    @property
    def is_slow(self) -> bool:
        """Returns whether its details made its steps longer."""
        if self.details == NO_DETAILS or not self.recorded_ns or not self.unrecorded_ns:
            return False
        return min(self.recorded_ns) > MIN_SLOWDOWN * min(self.unrecorded_ns)


class FurtherRecordings:
    """Makes the further recordings one after the other; at least one step lies between any two."""

    def __init__(
        self,
        recorder_work: RecorderWork,
        user_packages: Callable[[], tuple[str, ...]],
        guard: RecordingGuard,
    ) -> None:
        self._recorder_work, self._guard = recorder_work, guard
        self._marked_step = MarkedStep(user_packages)
        self._times: TimesRecording | None = None
        self._has_begun_times = self._runs_times = False
        self._steps_to_time = TIMED_STEPS_AFTER_RECORDING
        self._steps = 0
        """Number of steps after the main recording that were timed without a profiler."""

    @property
    def are_over(self) -> bool:
        """Returns whether none is begun any more."""
        return self._steps >= self._steps_to_time

    def begin_after_step(
        self,
        main: MainRecording,
        hold_ns: int,
        limit: EventLimit | None,
        before_recording: Callable[[], None],
    ) -> bool:
        """Begins to mark lines after the first step, to record times after the last one.

        Args:
            main: The main recording, and the times of steps around it.
            hold_ns: How long the program may be held, in ns.
            limit: How many events a recording may have; None if that was not planned.
            before_recording: Called right before a profiler starts.

        Returns:
            Whether a profiler runs.
        """
        self._steps += 1
        if self._steps == 1:
            has_begun = self._begin_line_marks(main, hold_ns, limit, before_recording)
            if is_in_job() and not has_begun:  # ranks that mark lines need a step more
                self._steps_to_time += 1
            return has_begun
        return self.are_over and self._begin_times(main, limit, before_recording)

    def _begin_line_marks(
        self,
        main: MainRecording,
        hold_ns: int,
        limit: EventLimit | None,
        before_recording: Callable[[], None],
    ) -> bool:
        """Begins to mark the lines of a step, unless that holds the program longer than `hold_ns`.

        `limit` is how many events it may have, None if that was not planned: the step may be much
        longer than those before. `before_recording` is called right before a profiler starts.
        Returns whether one runs.
        """
        slowest = max(main.recorded_ns) * LINE_MARKS_SLOWDOWN_FACTOR + main.pause_ns
        if not main.details.frames or slowest > hold_ns:
            return False
        before_recording()
        if limit is not None:
            self._guard.prepare(limit)
        if not self._marked_step.begin():
            return False
        self._guard.begin()
        return True

    def _begin_times(
        self, main: MainRecording, limit: EventLimit | None, before_recording: Callable[[], None]
    ) -> bool:
        """Begins to record the times of as many steps, once, if details slowed the main recording.

        In a job of several ranks all do so, since their steps are compared. `limit` is how many
        events it may have, None if that was not planned. Returns whether a profiler runs.
        """
        is_wanted = main.is_slow or (is_in_job() and main.details != NO_DETAILS)
        if self._has_begun_times or not is_wanted or _profiler_enabled():
            return False
        self._has_begun_times = True
        times = TimesRecording(
            len(main.recorded_ns),
            has_frames=main.details.frames,
            first_step=main.steps_ended + STEPS_BEFORE_TIMES + 1,
        )
        before_recording()
        if limit is not None:
            self._guard.prepare(replace(limit, max_frames=None))
        if not times.start(self._recorder_work):
            return False
        self._times, self._runs_times = times, True
        self._guard.begin()
        return True

    def end_step(self) -> bool:
        """Takes the end of a step into account; returns whether the recording is to end."""
        if not self._runs_times or self._times is None:
            return True
        self._times.end_step()
        return self._times.is_whole

    def end(self) -> None:
        """Ends the running recording; times of fewer steps than the main one has are forgotten."""
        self._guard.end()
        if not self._runs_times or self._times is None:
            self._marked_step.end()
            return
        self._runs_times = False
        if not self._times.stop() or not self._times.is_whole:
            self.forget()

    def forget(self) -> None:
        """Deletes the recorded times."""
        if self._times is not None:
            self._times.forget()
        self._times = None

    def attach_to(self, profile: Profile) -> None:
        """Adds the source lines and the times of these recordings to the main one."""
        self._marked_step.attach_to(profile)
        profile.recorded_times, self._times = self._times, None
