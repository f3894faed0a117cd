"""Ends a recording within a step before it has more events than memory or `--hold` allow.

It also ends one in which the program imports modules. That is a million Python frames within a
second, as for the first optimizer, which imports torch's compiler; and no usual step does it.

A plan can be wrong: the first recorded step is unknown, and a later one may hold an evaluation of
millions of operators. The profiler does not tell how many events it holds, so they are bounded from
above, by the time and the memory that each of them takes at the least. `program_memory.py` says how
much of the memory may be theirs. Python frames are too small for that: `call_count.py` counts them.
"""

import _thread
import sys
import threading
from collections.abc import Callable
from typing import Final

from selftime.capture.main_thread_calls import MainThreadCalls
from selftime.capture.recorder.call_count import CallCount, FrameBlocks
from selftime.capture.recorder.held_time import HeldTime
from selftime.capture.recorder.program_memory import (
    MemoryBefore,
    ProgramMemory,
    RunTime,
    UsedMemory,
    used_memory,
)
from selftime.capture.recorder.recorded_details import STOP_PAUSE_NS_PER_PLAIN_EVENT
from selftime.capture.recorder.recording_plan import EventLimit
from selftime.capture.recorder.running_profiler import RunningProfiler
from selftime.units import bytes_text, count_text, seconds_text

MIN_NS_PER_EVENT: Final = 1_000
"""Smallest time in ns by which recording one event slows the program; measured: 990 to 2,900."""

MIN_BYTES_PER_EVENT: Final = 500
"""Least memory that an operator takes while it is recorded, in bytes: measured 620 to 1,740."""

MIN_BYTES_PER_FRAME: Final = 20
"""Least memory that a Python frame takes while it is recorded, in bytes: measured 22 to 24.

Once the recording has stopped it takes 1,600, and stopping takes 5 us for each. So a recording that
is late may hold far too many frames though it has taken little memory, where they are not counted.
"""

LATE_FACTOR: Final = 3
"""How many times as long as expected a recording may last before it is late."""

RECORDER_BYTES: Final = 16 << 20
"""Memory that a recording may take however few events it has, in bytes."""

LATE_RECORDER_BYTES: Final = 10 << 20
"""The same for one that is late."""

UNKNOWN_MEMORY_FACTOR: Final = 10
"""How many times the least time of its events a recording may last if the memory that
the process uses is unknown."""

POLL_S: Final = 0.02
"""Time in seconds between two looks at the memory, once the events may be too many."""


MAX_TIMES_IMPORTS_SEEN: Final = 3
"""How many recordings may end for imports: a program that imports in many steps is recorded so."""

MAX_IMPORTED_MODULES: Final = 40
"""Number of modules that a program may import during a recording: each makes some 1,000 frames."""

IMPORTS_POLL_S: Final = 0.05
"""Time in seconds between two looks at the imported modules."""


class RecordingGuard:
    """Watches a recording, in a thread of its own that starts after the profiler.

    The profiler sees nothing of such a thread.
    """

    def __init__(
        self,
        on_limit: Callable[[], None],
        on_failure: Callable[[Exception], None],
        *,
        max_times_imports_seen: int = MAX_TIMES_IMPORTS_SEEN,
    ) -> None:
        """Makes a guard; `on_failure` is given what `on_limit` raises.

        `max_times_imports_seen` is how many recordings may end since the program imports modules.
        """
        self.held = HeldTime()
        """For how long the ends of recordings have held the program."""
        self.is_reached = False
        """Whether the recording has to end."""
        self.excess = ""
        """What of the recording was more than planned, in words; empty if nothing was, or if only
        a part of a step was to be recorded."""
        self.has_seen_imports = False
        """Whether it has to end since the program imports modules."""
        self._times_imports_seen, self._max_times_imports_seen = 0, max_times_imports_seen
        self._on_limit = on_limit
        self._calls = MainThreadCalls(on_failure)
        self.program_memory = ProgramMemory()
        self._call_count = CallCount()
        self._end = threading.Event()
        self._arguments: tuple[EventLimit, MemoryBefore, int, threading.Event] | None = None
        """What the next watch needs; None if it is not prepared."""

    def prepare(self, limit: EventLimit) -> None:
        """Prepares the watch before the recording starts.

        Else the profiler would record the preparation.
        """
        self.is_reached, self.has_seen_imports, self.excess = False, False, ""
        self._end = threading.Event()
        before = self.program_memory.before_recording()
        self._arguments = limit, before, len(sys.modules), self._end

    def begin(self) -> None:
        """Begins to watch the recording that it was prepared for, once that has started."""
        arguments, self._arguments = self._arguments, None
        if arguments is None:
            return
        _thread.start_new_thread(self._watch, arguments)
        limit, *_ = arguments
        if limit.max_frames is not None:
            self._call_count.begin()

    def end(self) -> None:
        """Ends the watch."""
        self._call_count.end()
        self.is_reached = False
        self._end.set()

    def stop(self, profiler: RunningProfiler | None) -> bool:
        """Ends the watch and stops a profiler if it runs; False if another thread would have to."""
        self.end()
        if profiler is not None and profiler.is_running:
            if not self.held.measure(profiler.stop):
                return False
            self.program_memory.begin_growth()
        return True

    def discard(self, profiler: RunningProfiler | None) -> None:
        """Stops a profiler as `stop` does, and deletes what it has recorded."""
        self.stop(profiler)
        if profiler is not None:
            profiler.forget()

    def end_step(self, profiler: RunningProfiler | None) -> None:
        """Advances a profiler to what it does in the next step, which may be to stop."""
        if profiler is not None:
            self.held.measure(profiler.end_step)

    def _watch(
        self, limit: EventLimit, before: MemoryBefore, modules: int, end: threading.Event
    ) -> None:
        began = RunTime.now()
        pause_s = (limit.window_ns or limit.max_events * MIN_NS_PER_EVENT) / 1e9
        blocks = None if limit.max_frames is None else FrameBlocks()
        poll_s = IMPORTS_POLL_S if blocks is None else POLL_S
        while not end.wait(min(pause_s, poll_s)):
            ran, excess = began.ran_ns(), None
            if self._does_program_import(modules):
                self.has_seen_imports, excess = True, "the program imported modules"
            elif blocks is not None:
                excess = excess_of_frames(limit, max(blocks.count(), self._call_count.frames))
            if not excess and may_be_over_limit(limit, ran):  # else the memory need not be read
                excess = excess_over_limit(limit, ran, before, used_memory())
            if self.is_reached or excess or is_window_over(limit, began.elapsed_ns()):
                self.excess = self.excess or excess or ""
                self.is_reached = True
                self._calls.schedule(self._on_limit)  # again, if it came at a bad moment
            pause_s = POLL_S

    def _does_program_import(self, modules_before: int) -> bool:
        """Returns whether the recording has to end since the program imports modules."""
        if len(sys.modules) <= modules_before + MAX_IMPORTED_MODULES:
            return False
        if not self.has_seen_imports:
            self._times_imports_seen += 1
        return self._times_imports_seen <= self._max_times_imports_seen


def is_window_over(limit: EventLimit, elapsed_ns: int) -> bool:
    """Returns whether the part of a step that is to be recorded has been recorded."""
    return limit.window_ns is not None and elapsed_ns >= limit.window_ns


def may_be_over_limit(limit: EventLimit, ran_ns: int) -> bool:
    """Returns whether a recording has lasted for as long as its events take at the least.

    As many as planned may take as long as expected, and as much memory as they take.
    """
    return ran_ns >= max(limit.max_events * MIN_NS_PER_EVENT, limit.expected_ns)


def excess_of_frames(limit: EventLimit, frames: int) -> str | None:
    """Returns in words that a recording has more Python frames than its limit; None if not."""
    if limit.max_frames is None or frames <= limit.max_frames:
        return None
    held = seconds_text(frames * STOP_PAUSE_NS_PER_PLAIN_EVENT)
    return (
        f"the program made about {count_text(frames)} calls, whose frames hold it for {held} at "
        "the end"
    )


def excess_over_limit(
    limit: EventLimit, ran_ns: int, before: MemoryBefore, now: UsedMemory
) -> str | None:
    """Returns in words why a recording may have more events than its limit; None if it has not.

    Args:
        limit: The limit.
        ran_ns: How long the process has run since the recording began, in ns.
        before: What is known of the program's memory from before the recording.
        now: Memory of the process now. If its resident memory is unknown, time alone decides.
    """
    if not may_be_over_limit(limit, ran_ns):
        return None
    least_ns, late_ns = limit.max_events * MIN_NS_PER_EVENT, LATE_FACTOR * limit.expected_ns
    if now.resident is None:
        planned_ns = max(late_ns, UNKNOWN_MEMORY_FACTOR * least_ns)
        took = (
            f"it ran for {seconds_text(ran_ns)}, and at most {seconds_text(planned_ns)} was planned"
        )
        return took if ran_ns > planned_ns else None
    planned = RECORDER_BYTES + limit.max_events * MIN_BYTES_PER_EVENT
    beyond = before.beyond_program(now, ran_ns)
    if beyond > planned:
        took = f"{bytes_text(beyond)} more memory than the program had used before"
        return f"it took {took}, and at most {bytes_text(planned)} was planned"
    # Below the peak, events are hidden in memory that the program may use as well.
    is_late = ran_ns > max(late_ns, limit.events_in_memory * MIN_NS_PER_EVENT)
    taken = before.since_start(now)
    if is_late and taken > limit.events_in_memory * MIN_BYTES_PER_EVENT:
        took = f"it ran for {seconds_text(ran_ns)} and took {bytes_text(taken)} of memory"
        return f"{took}, which is more than planned"
    frames = LATE_RECORDER_BYTES + limit.max_events * MIN_BYTES_PER_FRAME
    if 0 < late_ns < ran_ns and beyond > frames:
        took = f"it ran for {seconds_text(ran_ns)} and took {bytes_text(beyond)} of memory"
        return f"{took}, which is more than planned"
    return None
