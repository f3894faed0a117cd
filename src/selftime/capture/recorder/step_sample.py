"""Estimates the events of a step from the first one that was recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from torch._C._autograd import _KinetoEvent

from selftime.capture.in_memory.events import event_counts
from selftime.capture.recorder.recording_plan import MeasuredHold, RecordingBudget, StepEvents
from selftime.capture.recorder.run_options import RunOptions

FIRST_RECORDING_SLOWDOWN_FACTOR: Final = 4
"""Assumed duration of the first recorded step, relative to one that is not recorded."""


@dataclass(frozen=True, slots=True)
class StepSample:
    """What the first recording contains: one step, or the beginning of a step with many events."""

    events: StepEvents
    duration_ns: int
    is_cut: bool
    """Whether the step went on when the recording ended."""

    @classmethod
    def of_events(
        cls, events: Sequence[_KinetoEvent], duration_ns: int, *, is_cut: bool
    ) -> "StepSample":
        """Returns the sample, given the events of the first recording and its duration in ns."""
        return cls(StepEvents(*event_counts(events)), duration_ns, is_cut)

    def usual_duration_ns(self, timed_ns: Sequence[int]) -> float:
        """Returns how long a step takes while it is recorded, in ns.

        `timed_ns` are the durations of steps that were not recorded, in ns.
        """
        return usual_recorded_ns(timed_ns, self.duration_ns)

    def recording_budget(
        self,
        options: RunOptions,
        timed_ns: Sequence[int],
        free_bytes: int | None,
        hold: MeasuredHold = MeasuredHold(),  # noqa: B008 - it is immutable
        least_steps: int = 1,
    ) -> RecordingBudget:
        """Returns how many steps to record, and what of them.

        The step may have held an evaluation or more that most have not: it then took much longer
        than those that were timed since, even for one that was recorded. If it was cut, a whole one
        has the more events the longer it takes.
        """
        share = self.usual_duration_ns(timed_ns) / max(self.duration_ns, 1)
        if not self.is_cut:
            share = min(1.0, share)
        counts = self.events.all, self.events.frames, self.events.allocations
        events = StepEvents(*(int(count * share) for count in counts))
        return RecordingBudget(options, events, free_bytes, hold, least_steps)


def usual_recorded_ns(timed_ns: Sequence[int], first_ns: int) -> float:
    """Returns how long a step takes at most while it is recorded, in ns.

    `timed_ns` are the durations of steps that were not recorded, `first_ns` that of the first one
    that was, in ns.
    """
    return FIRST_RECORDING_SLOWDOWN_FACTOR * median(timed_ns) if timed_ns else first_ns
