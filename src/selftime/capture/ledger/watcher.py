"""Samples the Python stack of the thread that runs steps, often in slow steps and between steps.

It reads in a thread of its own, which takes Python's lock for some 20 us a reading. While steps
take what they usually do it reads at a few random instants a second, which tell the lines of a
usual step. While a profiler runs there is no such thread, since the profiler would record it.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns, sleep
from types import FrameType
from typing import Final

from selftime.capture.ledger.ledger import Ledger
from selftime.capture.ledger.stacks import StackReader
from selftime.capture.thread_frames import frames_of_threads
from selftime.capture.unlisted_thread import UnlistedThread
from selftime.ledger_format import LONGEST_READING_PAUSE_NS

FIRST_PAUSE_S: Final = 0.01
"""Seconds between the first two stack samples of a segment; the pause grows with the segment's
age."""

LAST_PAUSE_S: Final = LONGEST_READING_PAUSE_NS / 1e9
"""Longest time between two stack samples of a segment, in seconds."""

WAKE_S: Final = 0.25
"""Longest time in seconds that the sampling thread sleeps while steps are not slow."""

FLUSH_NS: Final = 1_000_000_000
"""Time between two writes of the ledger to its file, in ns."""

QUICK_SWITCH_S: Final = 1e-4
"""Time in s after which the program's thread gives up Python's lock for a sample of a usual step.

After Python's usual 5 ms it would be at another line. The time is set for `QUICK_SWITCH_NEEDED_S`
at most, and then as it was.
"""

QUICK_SWITCH_NEEDED_S: Final = 0.005
"""Longest time in s between setting that time and the sample; it is random, for when the time is
set the program has just given up the lock."""

_MAX_JOIN_S: Final = 0.5
"""Longest time in seconds to wait for the sampling thread to end: a profiler would record it."""


class StackWatcher:
    """Samples the stacks of slow steps into a ledger, in a thread that runs until `stop`."""

    def __init__(self, ledger: Ledger, reader: StackReader) -> None:
        self._ledger = ledger
        self._reader = reader
        self.on_program_stack: Callable[[FrameType | None], bool] = _never
        """Function called with each sampled stack in which the program's own code runs; returns
        whether the next sample should follow soon."""
        self.on_evaluation_stack: Callable[[FrameType | None], object] = _never
        """Function called with each sampled stack while a model is in evaluation mode."""
        self._reads_often = False
        """Whether to sample every `FIRST_PAUSE_S` seconds, while the step detector searches for
        a loop."""
        self._thread: UnlistedThread | None = None
        self._end = threading.Event()
        """Event that tells the current sampling thread to end."""
        self._is_paused = False

    def start(self) -> None:
        """Starts the thread that samples stacks."""
        self._end = threading.Event()
        self._thread = UnlistedThread(self._run, self._end)

    def pause(self) -> None:
        """Ends the sampling thread until `resume` starts a new one."""
        if not self._is_paused and self._thread is not None:
            self._is_paused = True
            self.stop()

    def resume(self) -> None:
        """Starts the sampling thread again after `pause`; does nothing if it is not paused."""
        if self._is_paused:
            self._is_paused = False
            self.start()

    def stop(self) -> None:
        """Ends the sampling thread."""
        thread, self._thread = self._thread, None
        self._end.set()
        if thread is not None:
            thread.join(_MAX_JOIN_S)

    def _run(self, end: threading.Event) -> None:
        try:
            self._read_until(end)
        except Exception as error:  # noqa: BLE001 - a traceback would be in the program's output
            self._ledger.fail(error)

    def _read_until(self, end: threading.Event) -> None:
        flushed = last = perf_counter_ns()
        segment, collections = self._ledger.segment, self._ledger.collections
        last_collected = collections.total_ns()
        while True:
            ledger, now = self._ledger, perf_counter_ns()
            if ledger.segment != segment:
                segment = last = ledger.segment
                last_collected = collections.total_ns()
            early = segment + ledger.slow_step_limit.read_after_ns - now
            if early > 0:
                pause_s = min(WAKE_S, early / 1e9, self._sample_usual_step(now))
            else:
                # Collections are counted apart, and hold up this thread as well.
                collected = collections.total_ns()
                self._read(segment, now - last - (collected - last_collected))
                last, last_collected = now, collected
                longest_s = FIRST_PAUSE_S if self._reads_often else LAST_PAUSE_S
                pause_s = min(longest_s, max(FIRST_PAUSE_S, (now - segment) / 1e11))
            if now - flushed > FLUSH_NS:
                ledger.flush()
                flushed = now
            if end.wait(max(pause_s, 0.001)):
                return

    def _sample_usual_step(self, now: int) -> float:
        """Takes a sample of a usual step if one is due; returns the time in s to the next one."""
        ledger, samples = self._ledger, self._ledger.samples
        if now >= samples.next_at:
            if ledger.steps and "recording" not in ledger.activities.running:
                with _quick_switch():
                    sleep(samples.random.uniform(0, QUICK_SWITCH_NEEDED_S))
                    frame = frames_of_threads().get(ledger.thread)
                    activity = self._reader.read(frame)
                    if ledger.is_evaluating:
                        self.on_evaluation_stack(frame)
                    del frame  # it would keep the program's objects alive
                ledger.add_sample(activity)
            samples.plan_next(now)
        return max(0, samples.next_at - now) / 1e9

    def _read(self, segment: int, duration: int) -> None:
        ledger = self._ledger
        if ledger.activities.running or duration <= 0:
            return
        frame = frames_of_threads().get(ledger.thread)
        activity = self._reader.read(frame)
        if activity.part == "program":
            self._reads_often = self.on_program_stack(frame)
        if ledger.is_evaluating:
            self.on_evaluation_stack(frame)
        del frame  # it would keep the program's objects alive
        ledger.add_reading(segment, activity, duration)


@contextmanager
def _quick_switch() -> Iterator[None]:
    """Has a thread that runs Python give up the lock soon to a thread that waits for it."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(QUICK_SWITCH_S)
    quick = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == quick:  # the program has not set it meanwhile
            sys.setswitchinterval(usual)


def _never(_frame: FrameType | None) -> bool:
    return False
