"""Decides from the first steps when to record, how many steps, and what of them.

The events of a recording cost memory, and hold the program when it ends. So the plan keeps both
within limits: fewer steps, then one step with fewer details, and at last only the beginning of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from selftime.capture.recorder.recorded_details import requested_details
from selftime.capture.recorder.run_options import RunOptions
from selftime.units import bytes_text, time_text

TRACE_BYTES_PER_EVENT: Final = 450
"""Estimated size of one profiler event in the JSON trace, in bytes: measured 440 for operators
with shapes, 383 on average with Python frames."""

MAX_HOLD_EXCESS: Final = 2.0
"""How many times as long as `--hold` a single step may hold the program before details are left
out: shapes and lines are worth that."""


@dataclass(frozen=True, slots=True)
class EventLimit:
    """How many events a recording may have."""

    max_events: int
    """More of them would hold the program for too long."""
    events_in_memory: int
    """More of them would not fit into memory."""
    expected_ns: int = 0
    """How long the recording is expected to last, in ns; 0 if unknown."""
    window_ns: int | None = None
    """How long the events take that are to be recorded of a step, in ns; None for a whole step."""


def limit_of_unknown_step(options: RunOptions, free_bytes: int | None) -> EventLimit:
    """Returns the event limit for recording a step of unknown size with every requested detail."""
    details = requested_details(options)
    in_memory = details.events_in_memory(free_bytes)
    return EventLimit(max(1, min(details.events_in_hold(options), in_memory)), in_memory)


class RecordingBudget:
    """How many steps to record, with which details, and why less than requested.

    Args:
        options: What the user asked for.
        events: The number of events of one step.
        frames: How many of them are Python frames.
        free_bytes: Free memory in bytes; None if unknown.
    """

    def __init__(
        self, options: RunOptions, events: int, frames: int = 0, free_bytes: int | None = None
    ) -> None:
        self._options, self._free_bytes = options, free_bytes
        self._requested = self.details = requested_details(options)
        self._step_bytes = max(1, events * TRACE_BYTES_PER_EVENT)
        self._requested_pause_ns = events * self.details.pause_ns_per_event
        self._events, self._frames = events, frames
        self._lacks_memory = events > self.details.events_in_memory(free_bytes)
        self._drops_frames_for_size = options.with_stack and self._step_bytes > options.max_bytes
        if self._drops_frames_for_size:
            self._drop_frames()
        if not self._is_step_affordable():
            self.details = replace(self.details, shapes=False, memory=False)
        if not self._is_step_affordable():
            self._drop_frames()
        self.is_window = not self._is_step_affordable()
        """Whether only the beginning of a step is recorded."""
        self.pause_ns = max(1, self._events * self.details.pause_ns_per_event)
        """Pause of the program at the end of a recording of one step."""
        steps_by_size = max(1, options.max_bytes // self._step_bytes)
        steps_by_pause = max(1, int(options.hold * 1e9) // self.pause_ns)
        steps_by_memory = max(1, self._max_events_in_memory // max(1, self._events))
        self.steps = min(options.active, steps_by_size, steps_by_pause, steps_by_memory)
        self._is_limited_by_size = steps_by_size < min(steps_by_pause, steps_by_memory)

    def _drop_frames(self) -> None:
        self.details = replace(self.details, frames=False)
        self._events, self._frames = self._events - self._frames, 0

    @property
    def _max_events_in_memory(self) -> int:
        return self.details.events_in_memory(self._free_bytes)

    def _is_step_affordable(self) -> bool:
        """Returns whether one step with the present details stays within memory and hold."""
        in_hold = MAX_HOLD_EXCESS * self.details.events_in_hold(self._options)
        return self._events <= min(in_hold, self._max_events_in_memory)

    def event_limit(self, step_ns: float) -> EventLimit:
        """Returns what ends the recording; `step_ns` is how long a recorded step takes, in ns."""
        limit = EventLimit(self.max_events, self._max_events_in_memory, int(self.steps * step_ns))
        if not self.is_window:
            return limit
        share = self.max_events / max(1, self._events)
        return replace(limit, window_ns=max(1, int(share * step_ns)))

    @property
    def max_events(self) -> int:
        """Returns how many events may be recorded: more than planned, in case steps differ."""
        in_hold = self.details.events_in_hold(self._options)
        planned = self.steps * self._events
        most = in_hold if self.is_window else max(planned, min(2 * planned, 2 * in_hold))
        return max(1, min(most, self._max_events_in_memory))

    def limits_message(self) -> str | None:
        """Returns a sentence for the user on limits that reduce the recording; None if none do."""
        if self._drops_frames_for_size and self.details.shapes == self._requested.shapes:
            return (
                f"{self._step_size_text()}, more than {bytes_text(self._options.max_bytes)}: one "
                "is recorded without Python frames and source lines; allow more with --max-bytes"
            )
        if self.details != self._requested or self.is_window:
            return self._fewer_details_message()
        if self.steps == self._options.active:
            return None
        sentence = self._step_size_text()
        if not self._is_limited_by_size:
            pause = time_text(self.pause_ns)
            sentence += f" and holds the program for about {pause} when the recording ends"
        verb = "is" if self.steps == 1 else "are"
        noun = "step" if self._options.active == 1 else "steps"
        option = "--max-bytes" if self._is_limited_by_size else "--hold"
        sentence += f", so {self.steps} of {self._options.active} {noun} {verb} recorded"
        return f"{sentence}; allow more with {option}"

    def _step_size_text(self) -> str:
        return f"a step makes about {bytes_text(self._step_bytes)} of trace"

    def _fewer_details_message(self) -> str:
        dropped = [
            text
            for text, was_on, is_on in (
                ("allocations", self._requested.memory, self.details.memory),
                ("shapes", self._requested.shapes, self.details.shapes),
                ("Python frames and source lines", self._requested.frames, self.details.frames),
            )
            if was_on and not is_on
        ]
        why = (
            "more than fits into a fourth of the free memory"
            if self._lacks_memory
            else f"and would hold the program for about {time_text(self._requested_pause_ns)}"
        )
        what = f"only its first {self.max_events:,} events are" if self.is_window else "it is"
        without = f" without {', '.join(dropped)}" if dropped else ""
        advice = "" if self._lacks_memory else "; allow more with --hold"
        return f"{self._step_size_text()}, {why}, so {what} recorded{without}{advice}"


def step_count_text(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def recorded_text(steps: int) -> str:
    """Returns text on what a recording with that many complete steps contains."""
    return step_count_text(steps) if steps else "a part of a step"


STILL_SPEEDING_UP_RATIO: Final = 0.8
"""Steps count as still getting faster while the newest takes less than this fraction of the
shortest earlier one.

Filling caches, choosing kernels and compiling code make a step many times longer than later ones;
noise makes a step hardly shorter than the shortest of several.
"""

OUTLIER_STEP_RATIO: Final = 1.5
"""A step counts as an outlier if it takes more than this multiple of the shortest earlier one,
as when it compiles for a new shape."""

MAX_STEPS_UNTIL_STEADY: Final = 20
"""Number of steps after which recording starts even if durations are not steady."""

MAX_SECONDS_UNTIL_STEADY: Final = 30.0
"""Time in seconds after which recording starts even if step durations are not steady."""


def are_steps_steady(durations: Sequence[int]) -> bool:
    """Returns whether step durations are steady, given the durations of all steps so far in ns.

    The newest is compared with the shortest before it. After `MAX_STEPS_UNTIL_STEADY` or
    `MAX_SECONDS_UNTIL_STEADY` the result is True.
    """
    if not durations:
        return False
    if len(durations) >= MAX_STEPS_UNTIL_STEADY or sum(durations) >= MAX_SECONDS_UNTIL_STEADY * 1e9:
        return True
    *previous, newest = durations
    if not previous:
        return False
    return STILL_SPEEDING_UP_RATIO * min(previous) <= newest <= OUTLIER_STEP_RATIO * min(previous)
