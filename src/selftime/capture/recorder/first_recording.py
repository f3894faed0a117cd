"""The recording of the program's second step: how large steps are, and what its end costs.

Where its end held the program for so long that `--hold` has no room for another, it is the one to
keep: it has every requested detail, and its end is paid for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from selftime.capture.recorder.recorded_details import (
    STOP_PAUSE_NS_PER_PLAIN_EVENT,
    RecordedDetails,
    requested_details,
)
from selftime.capture.recorder.recording_guard import RecordingGuard
from selftime.capture.recorder.recording_plan import TRACE_BYTES_PER_EVENT, EventLimit, MeasuredHold
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.recorder.running_profiler import RunningProfiler
from selftime.capture.recorder.step_sample import StepSample, usual_recorded_ns
from selftime.capture.recorder.times_recording import NO_DETAILS, is_in_job
from selftime.units import seconds_text

STEPS_TO_COMPARE_RANKS: Final = 4
"""Number of steps with which the ranks of a job can be compared; of fewer, chance decides."""
MIN_PAUSE_RATIO: Final = 0.5
MAX_PAUSE_RATIO: Final = 3.0
"""Bounds of how many times as long as assumed the end of a recording holds the program for each
event. Of a short recording most of it is not for events."""


@dataclass(frozen=True, slots=True)
class PlannedRecording:
    """What is recorded after the first recording."""

    steps: int
    details: RecordedDetails
    pause_ns: int
    """How long the end of a recording of one step holds the program, in ns."""
    limit: EventLimit
    """How many events a recording may have."""
    events_of_step: int | None
    """The number of events of a usual step with these details; None if unknown."""
    left_out: dict[str, str | None]
    """The options of `selftime run` with which details that are left out would fit."""
    message: str | None
    """A sentence for the user on limits that reduce the recording; None if none do."""
    keeps_first: bool = False
    """Whether the first recording is the one to keep, and no other is made but of times."""


class FirstRecording:
    """A recording of one step, or of its beginning, with every requested detail."""

    def __init__(
        self, profiler: RunningProfiler, options: RunOptions, guard: RecordingGuard
    ) -> None:
        self.profiler = profiler
        self.has_ended = False
        self.is_cut = False
        """Whether the step went on when the recording ended."""
        self.duration_ns = 0
        self._options, self._guard = options, guard
        self._is_usual = True
        self._pause_ns = self._held_before_ns = 0

    def end(self, elapsed_ns: int, *, is_cut: bool, is_usual: bool) -> None:
        """Ends it after `elapsed_ns`.

        `is_cut` says whether the step goes on, and `is_usual` whether it is like most: not one with
        an evaluation.
        """
        self._held_before_ns = self._guard.held.ns
        self._guard.stop(self.profiler)
        self._pause_ns = self._guard.held.ns - self._held_before_ns
        self.has_ended, self.duration_ns = True, elapsed_ns
        self.is_cut, self._is_usual = is_cut, is_usual

    def plan(
        self, timed_ns: Sequence[int], free_bytes: int | None, *, has_frames: bool
    ) -> PlannedRecording:
        """Returns what to record next.

        Args:
            timed_ns: Durations of steps that were not recorded, in ns.
            free_bytes: Free memory in bytes; None if unknown.
            has_frames: Whether Python frames can be recorded.
        """
        if self._is_to_be_kept(timed_ns, free_bytes):
            return self._kept(timed_ns, free_bytes, has_frames=has_frames)
        sample = self._guard.held.measure(self._count_events)
        hold = self._measured_hold(sample, timed_ns)
        least = STEPS_TO_COMPARE_RANKS if is_in_job() else 1
        budget = sample.recording_budget(self._options, timed_ns, free_bytes, hold, least)
        return PlannedRecording(
            budget.steps,
            replace(budget.details, frames=has_frames and budget.details.frames),
            budget.pause_ns,
            budget.event_limit(sample.usual_duration_ns(timed_ns)),
            budget.events_of_step,
            budget.left_out(),
            budget.limits_message(),
        )

    def _is_to_be_kept(self, timed_ns: Sequence[int], free_bytes: int | None) -> bool:
        """Returns whether it is the recording to keep, since `--hold` has no room for another.

        It needs a whole step that is like others, and must fit into the limits of memory and size.
        Ranks of a job must all record the same steps.
        """
        if self.is_cut or not self._is_like_others(timed_ns) or is_in_job():
            return False
        has_room = self._guard.held.ns + self._pause_ns <= 1e9 * self._options.hold
        if has_room or self._options.warmup is not None:
            return False
        in_memory = requested_details(self._options).events_in_memory(free_bytes)
        in_size = self._options.max_bytes // TRACE_BYTES_PER_EVENT
        return self._most_events <= min(in_memory, in_size)

    def _is_like_others(self, timed_ns: Sequence[int]) -> bool:
        """Returns whether its step was usual, and no longer than a recording makes usual ones."""
        longest_ns = usual_recorded_ns(timed_ns, self.duration_ns)
        return self._is_usual and self.duration_ns <= longest_ns

    @property
    def _most_events(self) -> int:
        """Returns how many events it has at most; to count them takes as long as its end."""
        return max(1, self._pause_ns // STOP_PAUSE_NS_PER_PLAIN_EVENT)

    def _kept(
        self, timed_ns: Sequence[int], free_bytes: int | None, *, has_frames: bool
    ) -> PlannedRecording:
        in_memory = NO_DETAILS.events_in_memory(free_bytes)
        expected_ns = int(usual_recorded_ns(timed_ns, self.duration_ns))
        details, steps = requested_details(self._options), self._options.active
        held = seconds_text(self._pause_ns)
        message = (
            f"the end of the recording of one step held the program for {held}, so "
            f"1 of {steps} steps is recorded; allow more with --hold"
        )
        return PlannedRecording(
            steps=1,
            details=replace(details, frames=has_frames and details.frames),
            pause_ns=self._pause_ns,
            limit=EventLimit(min(self._most_events, in_memory), in_memory, expected_ns),
            events_of_step=None,
            left_out={},
            message=message if steps > 1 else None,
            keeps_first=True,
        )

    def _count_events(self) -> StepSample:
        events = self.profiler.profile.recorded_events()
        return StepSample.of_events(events, self.duration_ns, is_cut=self.is_cut)

    def _measured_hold(self, sample: StepSample, timed_ns: Sequence[int]) -> MeasuredHold:
        """Returns what it shows of how long recordings hold the program.

        A step with an evaluation may hold for long, while usual ones are small: it does not count.
        """
        if is_in_job():  # its ranks must make the same plan
            return MeasuredHold()
        details = requested_details(self._options)
        assumed_ns = max(1, sample.events.all) * details.pause_ns_per_event
        ratio = min(MAX_PAUSE_RATIO, max(MIN_PAUSE_RATIO, self._pause_ns / assumed_ns))
        counts = self._is_like_others(timed_ns)
        return MeasuredHold(self._guard.held.ns if counts else self._held_before_ns, ratio)
