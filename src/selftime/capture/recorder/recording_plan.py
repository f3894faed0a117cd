"""Decides from the first steps when to record, how many steps, and what of them.

The events of a recording cost memory, and hold the program when it ends. So the plan keeps both
within limits. What is given up first: steps down to three, then allocations, steps down to one,
shapes, Python frames, and at last the end of that step. Three steps have a median, but the ledger
has the times of all. A fifth of the rules need shapes, and most need lines: one step with them
says more than five without.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from selftime.capture.recorder.recorded_details import RecordedDetails, requested_details
from selftime.capture.recorder.run_options import RunOptions
from selftime.units import bytes_text, seconds_text

TRACE_BYTES_PER_EVENT: Final = 450
"""Estimated size of one profiler event in the JSON trace, in bytes: measured 440 for operators
with shapes, 383 on average with Python frames."""

WINDOW_NS: Final = 1_000_000_000
"""How long a program without steps is recorded, in ns."""

ENOUGH_STEPS: Final = 3
"""How many recorded steps say as much as five: allocations are worth more than further ones."""

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
    max_frames: int | None = None
    """How many Python frames it may have; None if it has none."""


def limit_of_unknown_step(
    options: RunOptions, free_bytes: int | None, details: RecordedDetails | None = None
) -> EventLimit:
    """Returns the limit for recording a step of unknown size, by default with every detail."""
    details = details or requested_details(options)
    in_memory = details.events_in_memory(free_bytes)
    in_hold = details.events_in_hold(options)
    frames = frame_limit(options, free_bytes) if details.frames else None
    return EventLimit(max(1, min(in_hold, in_memory)), in_memory, max_frames=frames)


def limit_of_window(options: RunOptions, free_bytes: int | None) -> EventLimit:
    """Returns the limit for recording a part of a program without steps, with every detail."""
    return replace(limit_of_unknown_step(options, free_bytes), window_ns=WINDOW_NS)


def limit_of_block(options: RunOptions, free_bytes: int | None) -> EventLimit:
    """Returns the limit for recording a block of code, for which the user waits: the memory's."""
    limit = limit_of_unknown_step(options, free_bytes)
    return replace(limit, max_events=max(1, limit.events_in_memory))


def frame_limit(options: RunOptions, free_bytes: int | None) -> int:
    """Returns how many Python frames a recording may have: they have no shapes."""
    frames = RecordedDetails(frames=True, shapes=False, memory=False)
    return max(1, min(frames.events_in_hold(options), frames.events_in_memory(free_bytes)))


@dataclass(frozen=True, slots=True)
class StepEvents:
    """The number of events of one step that is recorded with every requested detail."""

    all: int
    frames: int = 0
    """How many of them are Python frames."""
    allocations: int = 0
    """How many of them are allocations and releases of memory."""

    def with_details(self, details: RecordedDetails) -> int:
        """Returns how many events the step has with fewer details."""
        without = 0 if details.frames else self.frames
        return max(1, self.all - without - (0 if details.memory else self.allocations))


@dataclass(frozen=True, slots=True)
class MeasuredHold:
    """How long the recordings of this run have held the program so far."""

    held_ns: int = 0
    """Time in ns for which the ends of earlier recordings have held it."""
    pause_ratio: float = 1.0
    """How many times as long as assumed the last of them held it for each event."""


class RecordingBudget:
    """How many steps to record, with which details, and why less than requested.

    Args:
        options: What the user asked for.
        events: The number of events of one step.
        free_bytes: Free memory in bytes; None if unknown.
        hold: What earlier recordings of this run have shown.
        least_steps: How many steps are worth more than details, if as many are asked for.
    """

    def __init__(
        self,
        options: RunOptions,
        events: StepEvents,
        free_bytes: int | None = None,
        hold: MeasuredHold = MeasuredHold(),
        least_steps: int = 1,
    ) -> None:
        self._options, self._free_bytes, self._step = options, free_bytes, events
        self._least_steps = min(least_steps, options.active)
        self._hold = hold
        self._requested = requested_details(options)
        self._drops_frames_for_size = (
            options.with_stack and events.all * TRACE_BYTES_PER_EVENT > options.max_bytes
        )
        self.details = self._chosen_details()
        self.events_of_step = events.with_details(self.details)
        """The number of events of one step with the chosen details."""
        self.is_window = not self._is_step_affordable(self.details)
        """Whether only the beginning of a step is recorded."""
        self.pause_ns = self._pause_of_step_ns(self.details)
        """Pause of the program at the end of a recording of one step."""
        self.steps = max(1, self._steps_that_fit(self.details))

    def _chosen_details(self) -> RecordedDetails:
        """Returns the most details with which a step fits, and without allocations if more do."""
        most = self._requested
        if self._drops_frames_for_size:
            most = replace(most, frames=False)
        without_memory = replace(most, memory=False)
        best = max(most, without_memory, key=self._useful_steps)
        plain = replace(without_memory, shapes=False)
        least = replace(plain, frames=False)
        fewer = (best, plain, replace(without_memory, frames=False))
        enough = (each for each in fewer if self._steps_that_fit(each) >= self._least_steps)
        return next(enough, next(filter(self._is_step_affordable, fewer), least))

    def _useful_steps(self, details: RecordedDetails) -> int:
        return min(self._steps_that_fit(details), ENOUGH_STEPS)

    def _steps_that_fit(self, details: RecordedDetails) -> int:
        """Returns how many of the steps asked for fit; 0 if not even one does."""
        if not self._is_step_affordable(details):
            return 0
        return min(self._options.active, *self._limits_of_steps(details))

    def _limits_of_steps(self, details: RecordedDetails) -> tuple[int, int, int]:
        """Returns how many steps the trace's size, the hold and the memory allow, at least 1."""
        events = self._step.with_details(details)
        by_size = self._options.max_bytes // (events * TRACE_BYTES_PER_EVENT)
        left_ns = max(0, int(self._options.hold * 1e9) - self._hold.held_ns)
        by_hold = left_ns // self._pause_of_step_ns(details)
        by_memory = details.events_in_memory(self._free_bytes) // events
        return max(1, by_size), max(1, by_hold), max(1, by_memory)

    def _is_step_affordable(self, details: RecordedDetails) -> bool:
        """Returns whether one step with some details stays within memory and hold."""
        in_hold = MAX_HOLD_EXCESS * self._events_in_hold(details)
        events = self._step.with_details(details)
        return events <= min(in_hold, details.events_in_memory(self._free_bytes))

    def _pause_of_step_ns(self, details: RecordedDetails) -> int:
        """Returns how long the end of a recording of one step holds the program, in ns."""
        events = self._step.with_details(details)
        return max(1, int(events * details.pause_ns_per_event * self._hold.pause_ratio))

    def _events_in_hold(self, details: RecordedDetails) -> int:
        """Returns the number of events whose pause is as long as `--hold`."""
        return max(1, int(details.events_in_hold(self._options) / self._hold.pause_ratio))

    @property
    def _max_events_in_memory(self) -> int:
        return self.details.events_in_memory(self._free_bytes)

    def event_limit(self, step_ns: float) -> EventLimit:
        """Returns what ends the recording; `step_ns` is how long a recorded step takes, in ns."""
        frames = None
        if self.details.frames:
            frames = max(self.max_events, frame_limit(self._options, self._free_bytes))
        expected_ns = int(self.steps * step_ns)
        limit = EventLimit(
            self.max_events, self._max_events_in_memory, expected_ns, max_frames=frames
        )
        if not self.is_window:
            return limit
        share = self.max_events / self.events_of_step
        return replace(limit, window_ns=max(1, int(share * step_ns)))

    @property
    def max_events(self) -> int:
        """Returns how many events may be recorded: more than planned, in case steps differ."""
        in_hold = self._events_in_hold(self.details)
        planned = self.steps * self.events_of_step
        most = in_hold if self.is_window else max(planned, min(2 * planned, 2 * in_hold))
        return max(1, min(most, self._max_events_in_memory))

    def limits_message(self) -> str | None:
        """Returns a sentence for the user on limits that reduce the recording; None if none do."""
        if self._drops_frames_for_size and self.details.shapes == self._requested.shapes:
            return (
                f"{self._step_size_text()}, more than {bytes_text(self._options.max_bytes)}: one "
                "is recorded without Python frames and source lines; allow more with --max-bytes"
            )
        if self.is_window:
            return self._window_message()
        if self.details != self._requested:
            return self._fewer_details_message()
        if self.steps == self._options.active:
            return None
        sentence = self._step_size_text()
        by_size, by_hold, by_memory = self._limits_of_steps(self.details)
        if by_memory < min(by_size, by_hold):
            return f"{sentence}, and {self._steps_recorded_text()}: more do not fit into memory"
        is_limited_by_size = by_size < by_hold
        if not is_limited_by_size:
            pause = seconds_text(self.pause_ns)
            sentence += f" and holds the program for about {pause} when the recording ends"
        option = "--max-bytes" if is_limited_by_size else "--hold"
        return f"{sentence}, so {self._steps_recorded_text()}; allow more with {option}"

    def left_out(self) -> dict[str, str | None]:
        """Returns the options of `selftime run` with which details that are left out would fit.

        Keys are `shapes` and `stacks`; the option is None where the memory does not suffice.
        """
        option = self._sufficient_option()
        return {
            name: option
            for name, was_on, is_on in (
                ("shapes", self._requested.shapes, self.details.shapes),
                ("stacks", self._requested.frames, self.details.frames),
            )
            if was_on and not is_on
        }

    def _sufficient_option(self) -> str | None:
        """Returns the option with which the steps are recorded with all details; None if none is.

        With `--hold`, for as many steps as size and memory allow.
        """
        by_size, _, by_memory = self._limits_of_steps(self._requested)
        if self._step.all > self._requested.events_in_memory(self._free_bytes):
            return None
        if self._drops_frames_for_size:
            return f"--max-bytes {self._step.all * TRACE_BYTES_PER_EVENT}"
        steps = min(self._options.active, by_size, by_memory)
        held_ns = self._hold.held_ns + steps * self._requested_pause_ns
        return f"--hold {math.ceil(held_ns / 1e9)}"

    def _step_size_text(self) -> str:
        return f"a step makes about {bytes_text(self._step.all * TRACE_BYTES_PER_EVENT)} of trace"

    def _steps_recorded_text(self) -> str:
        asked = self._options.active
        if self.steps == asked:
            return "it is recorded" if asked == 1 else f"{asked} steps are recorded"
        verb = "is" if self.steps == 1 else "are"
        return f"{self.steps} of {asked} steps {verb} recorded"

    def _without_text(self) -> str:
        """Returns text on the details that are left out, empty if none are."""
        dropped = [
            text
            for text, was_on, is_on in (
                ("allocations", self._requested.memory, self.details.memory),
                ("shapes", self._requested.shapes, self.details.shapes),
                ("Python frames and source lines", self._requested.frames, self.details.frames),
            )
            if was_on and not is_on
        ]
        return f" without {', '.join(dropped)}" if dropped else ""

    def _window_message(self) -> str:
        lacks_memory = self._step.all > self._requested.events_in_memory(self._free_bytes)
        why = (
            "more than fits into a fourth of the free memory"
            if lacks_memory
            else f"and would hold the program for about {seconds_text(self._requested_pause_ns)}"
        )
        what = f"so only its first {self.max_events:,} events are recorded{self._without_text()}"
        advice = "" if lacks_memory else "; allow more with --hold"
        return f"{self._step_size_text()}, {why}, {what}{advice}"

    def _fewer_details_message(self) -> str:
        asked = self._options.active
        by_size, by_hold, by_memory = self._limits_of_steps(self._requested)
        if self._step.all > self._requested.events_in_memory(self._free_bytes):
            by_memory = 0
        if by_memory < min(by_size, by_hold):
            why, advice = "not fit into a fourth of the free memory", ""
        elif by_size < by_hold:
            why = f"make more than {bytes_text(self._options.max_bytes)}"
            advice = "; allow more with --max-bytes"
        else:
            why = f"hold the program for about {seconds_text(asked * self._requested_pause_ns)}"
            advice = "; allow more with --hold"
        would = "would" if asked == 1 else f"{asked} steps would"
        recorded = f"{self._steps_recorded_text()}{self._without_text()}"
        return (
            f"{self._step_size_text()}, and {would} {why} with all details, so {recorded}{advice}"
        )

    @property
    def _requested_pause_ns(self) -> int:
        """Returns how long one step with every requested detail would hold the program, in ns."""
        return self._pause_of_step_ns(self._requested)


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
