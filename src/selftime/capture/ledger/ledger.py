"""Records how long each step of a program takes and what else its main thread spends time on.

A segment is a step, or what lies before the first one or after the last. Within it time is counted
where something of ours is called anyway: around waits for data, garbage collections and our own
work. What else a segment is made of is told by the stacks that `watcher.py` reads.

All instants are in ns of `time.perf_counter_ns`.
"""

import sys
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from time import perf_counter_ns
from types import MappingProxyType
from typing import Any, Final

from selftime.capture.ledger.activities import ActivityClock
from selftime.capture.ledger.collection_clock import CollectionClock
from selftime.capture.ledger.file import LedgerFile, header_of_ledger
from selftime.capture.ledger.instants import Instant, counted_between
from selftime.capture.ledger.iterators import IteratorLines
from selftime.capture.ledger.kinds import StepKinds
from selftime.capture.ledger.process_start import process_start_ns
from selftime.capture.ledger.stacks import Activity, StackReadings
from selftime.capture.ledger.step_samples import StepSamples
from selftime.capture.ledger.steps import SegmentColumns, SlowStepLimit
from selftime.capture.results.kept_results import KeptResults
from selftime.ledger_format import (
    AFTER_LAST_STEP,
    BEFORE_FIRST_STEP,
    UNCOUNTED_STEPS_NAME,
)

MIN_STEPS_BETWEEN_TRAININGS: Final = 3
"""Time since the last step, in usual steps, after which work between two trainings is none of the
next step."""

OPEN_SEGMENT_MIN_NS: Final = 1_000_000_000
"""Age in ns from which the segment in progress is written as far as it is known."""

NO_END_FACTS: Final[Mapping[str, Any]] = MappingProxyType({})
"""What was found out at a program's end, where that is nothing."""


class Ledger:
    """Records the wall time of one process, segment by segment: setup, each step, and the end."""

    def __init__(
        self,
        folder: Path,
        command: tuple[str, ...] = (),
        command_start_ns: int | None = None,
        process_start: int | None = None,
    ) -> None:
        self.file = LedgerFile(folder)
        self.began = perf_counter_ns()
        self.process_began = process_start_ns() if process_start is None else process_start
        self.thread = threading.get_ident()
        """Id of the thread that runs the program's steps."""
        self.segment = self.began
        """Start of the current segment (setup or a step) in ns of `time.perf_counter_ns`."""
        self.last_segment = self.began
        """Start of the segment that ended last, likewise."""
        self.steps = 0
        self.has_begun = False
        """Whether the first step has begun, of the run or after a loop of steps has ended."""
        self.collections = CollectionClock()
        self.activities = ActivityClock(self.began, self.collections)
        self._command = command
        self._own_start = 0 if command_start_ns is None else self.began - command_start_ns
        """Time in ns that selftime took to load before the program began."""
        self.last_reading_ns = self.began
        """When the stack was sampled last, in ns."""
        self._saved_in_evaluation_ns = 0
        """Time in ns of the segment's evaluation in which stack samples saw a checkpoint."""
        self._columns = SegmentColumns()
        self.kinds = StepKinds(self.add_line)
        self.take_phases: Callable[[int, dict[str, int]], None] = _nothing
        """Function that adds a segment's phases, until its end in ns, to what was counted in it."""
        self._readings = StackReadings()
        self.samples = StepSamples(self.began)
        self.iterators = IteratorLines(self.add_line)
        self._lines: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._closed = False
        self._next_kind: int | None = None
        """Kind of the current segment if known before its end, else None."""
        self.is_written = False
        """Whether lines are written to the file; while False, they are kept in memory."""
        self.results: KeptResults | None = None  # of the program's first rounds, if it is asked for
        self.on_segment_end: Callable[[], None] = _nothing
        """Function that the program's thread calls at the end of each step but settled ones."""
        self.time_device: Callable[[], None] | None = None
        """Function that it calls at the end of each step to time a device's work; None without."""
        self.pause_readings: Callable[[], None] = _nothing
        self.resume_readings: Callable[[], None] = _nothing
        """Restarts stack sampling after a profiler recording; `pause_readings` stops it."""

    @property
    def slow_step_limit(self) -> SlowStepLimit:
        """Returns the limit of the steps that are being made."""
        return self.kinds.slow_step_limit

    @property
    def step_loop_line(self) -> tuple[str, int] | None:
        """Returns file and line of the loop whose iterations are the steps; None if unknown."""
        return self.kinds.step_loop_line

    @step_loop_line.setter
    def step_loop_line(self, line: tuple[str, int] | None) -> None:
        self.kinds.step_loop_line = line

    # In the program's thread.

    @property
    def is_evaluating(self) -> bool:
        """Returns whether time is counted as evaluation while no other activity is in progress."""
        return self.activities.base is not None

    def set_evaluating(self, is_evaluating: bool) -> None:
        """Begins or ends counting time as evaluation while no other activity is in progress."""
        if threading.get_ident() != self.thread or not self.steps:
            return
        self.activities.account()
        self.activities.base = "evaluation" if is_evaluating else None

    def begin_evaluation_at(self, instant: Instant) -> None:
        """Counts time as evaluation from an earlier instant of the current segment on."""
        segment, at, counted = instant
        if segment != self.segment or self.is_evaluating:
            return
        self.set_evaluating(True)
        other = sum(self.activities.counted.values()) - sum(counted.values())
        self.activities.count("evaluation", max(0, self.activities.mark - at - other))

    def forget_evaluation(self) -> None:
        """Ends an evaluation of the current segment, whose time turned out to be none."""
        self.activities.account()
        self.activities.base = None
        self.activities.counted.pop("evaluation", None)

    def begin_first_step(self, at: int) -> None:
        """Begins the first step at time `at` (ns); the time before it is the program's setup."""
        if not self.has_begun and not self._closed and threading.get_ident() == self.thread:
            self.has_begun = True
            with self._lock:
                readings = self._readings.take_before(at)
            uncounted, self._next_kind = self._next_kind, None
            kind = BEFORE_FIRST_STEP if uncounted is None else uncounted
            self._finish_segment(at, kind, is_recorded=False, readings=readings)

    def end_segment(
        self, ended: int, kind: Hashable, *, is_usual: bool, is_recorded: bool = False
    ) -> None:
        """Ends a step of the given kind at time `ended` (ns), and begins the next segment.

        The duration of one that is not usual, or recorded, is not taken as what others take.
        """
        if self._closed:
            return
        self.has_begun = True
        uncounted, self._next_kind = self._next_kind, None
        kinds = self.kinds
        number = kinds.numbers.get(kind) if uncounted is None else uncounted
        if number is None:
            number = kinds.number(kind)
        self.activities.end_segment(ended)
        self._append_segment(ended, number, is_recorded=is_recorded)
        self.activities.base = None
        if is_usual and uncounted is None and number not in kinds.located:
            kinds.find_loop_line(kind, number, sys._getframe())  # noqa: SLF001 - the only way
        self.steps += 1
        self.thread = threading.get_ident()
        self.on_segment_end()
        if self.time_device is not None:
            self.time_device()
        limit = (
            kinds.slow_step_limit if number == kinds.last_number else kinds.limit_of(number, kind)
        )
        limit.end_step(ended - self.last_segment if is_usual and not is_recorded else None)

    def end_settled_step(self, ended: int) -> bool:
        """Ends a usual step of the last one's kind at time `ended` (ns), in little time.

        Returns whether it did. It does nothing if `end_segment` has more to do: if the step was
        slow, or if anything but waits for data and phases was timed or sampled in it.
        """
        kinds, activities, start = self.kinds, self.activities, self.segment
        number, duration = kinds.last_number, ended - start
        if (
            duration >= kinds.slow_step_limit.read_after_ns  # 0 if it is not known
            or number not in kinds.located
            or activities.running
            or activities.base is not None
            or "compile" in activities.counted
            or self.collections.has_any()
            or self._readings.summed
            or self._next_kind is not None
            or self._closed
        ):
            return False
        kinds.ns_by_number[number] += duration
        activities.end_quiet_segment(ended)
        counted = activities.counted
        self.take_phases(ended, counted)
        with self._lock:
            self._columns.append(start, duration, number, counted)
            self.last_segment, self.segment = start, ended
        if counted:
            activities.counted = {}
        self.steps += 1
        if self.time_device is not None:
            self.time_device()
        kinds.slow_step_limit.end_step(duration)
        return True

    def begin_first_step_in_this_thread(self, at: int) -> None:
        """Begins the first step at an earlier time `at` (ns), when this thread first used torch.

        Until then the main thread was taken for the one that makes steps.
        """
        if self._closed or self.steps or self.thread == threading.get_ident():
            return
        self.thread = threading.get_ident()
        at = max(at, self.activities.mark, self.segment)
        with self._lock:
            readings = None if self.has_begun else self._readings.take_before(at)
        self.has_begun = True
        self._finish_segment(at, BEFORE_FIRST_STEP, is_recorded=False, readings=readings)

    def end_work_between_trainings(self, at: int) -> None:
        """Ends a segment that holds no step, as a program makes an optimizer for more steps.

        Does nothing unless much more time has passed since the last step than steps take.
        """
        if self._closed or not self.steps or threading.get_ident() != self.thread:
            return
        median = self.slow_step_limit.median_ns
        if median is not None and at - self.segment >= MIN_STEPS_BETWEEN_TRAININGS * median:
            self._finish_segment(at, AFTER_LAST_STEP, is_recorded=False)
            self.activities.base = None

    def instant(self, at: int) -> Instant:
        """Returns an instant at which the current segment may be ended later."""
        self.activities.account(at)
        return self.segment, at, dict(self.activities.counted)

    def end_segments_at(self, instants: Sequence[Instant], kinds: Sequence[Hashable]) -> None:
        """Ends segments of the given kinds at earlier instants of the current segment.

        None stands for the kind of the last step; a negative number for a segment without steps.
        """
        if self._closed or any(instant[0] != self.segment for instant in instants):
            return
        *counted, left = counted_between(instants, self.activities.counted)
        for (_, at, _), kind, self.activities.counted in zip(instants, kinds, counted, strict=True):
            self._append_segment(at, self.kinds.number_of_segment(kind), is_recorded=False)
        self.activities.counted = left

    def end_phase(self, ended: int, kind: str, line: tuple[str, int] | None) -> None:
        """Ends a phase between steps at time `ended` (ns), with the line of its loop if known."""
        if not self._closed:
            number = self.kinds.number(kind)
            self.kinds.set_loop_line(kind, number, line)
            self._finish_segment(ended, number, is_recorded=False)

    def begin_earlier(self, began: int) -> None:
        """Has the program begun at an earlier instant, in ns, before anything was recorded."""
        self.began = self.segment = self.activities.mark = began

    def begin_uncounted_steps(self, kind: Hashable = UNCOUNTED_STEPS_NAME) -> None:
        """Marks the current segment as steps of a kind whose number is unknown; None: as none."""
        self._next_kind = None if kind is None else self.kinds.number(kind, UNCOUNTED_STEPS_NAME)

    # In the watching thread.

    def add_reading(self, segment: int, activity: Activity, duration: int) -> None:
        """Adds a stack sample that represents `duration` ns to the current segment."""
        self.last_reading_ns = perf_counter_ns()
        with self._lock:
            if segment != self.segment:
                return
            line = self._readings.add(activity, duration, is_before_first_step=not self.has_begun)
            if line is not None:
                self._lines.append(line)
            if activity.part == "checkpoint" and self.is_evaluating:
                self._saved_in_evaluation_ns += duration

    def add_sample(self, activity: Activity) -> None:
        """Adds what the program was doing at this instant of a usual step."""
        with self._lock:
            self._lines += self.samples.add(self._readings, activity)

    def flush(self) -> None:
        """Appends to the file what was recorded since the last call."""
        self.collections.compact()
        if self.is_written:
            with self.file.lock:
                self._flush()

    def _flush(self) -> None:
        with self._lock:
            columns, self._columns = self._columns, SegmentColumns()
            lines, self._lines = self._lines, []
            lines += [*self._lines_of_open_segment(), *self.samples.take()]
        if not self.file.has_begun and self.file.failure is None:
            told = (self._command, self.process_began, self.began, self._own_start)
            self.file.append(header_of_ledger(*told))
        for line in lines:
            self.file.append(line)
        if len(columns):
            self.file.append({"segments": columns.as_json()})

    def _lines_of_open_segment(self) -> list[dict[str, Any]]:
        """Returns a line with what a long segment holds so far, since a kill may end the run."""
        now = perf_counter_ns()
        if self._closed or now - self.segment < OPEN_SEGMENT_MIN_NS:
            return []
        counted = self.activities.counted_until(now)
        kind = AFTER_LAST_STEP if self.has_begun else BEFORE_FIRST_STEP
        kind = kind if self._next_kind is None else self._next_kind
        line = {"open": self.segment, "until": now, "kind": kind}
        return [line | {"counted": counted, "readings": self._readings.take_new(self.segment)}]

    # At the end.

    def finish(self, status: str, end_facts: Mapping[str, Any] = NO_END_FACTS) -> None:
        """Ends the last segment at the program's end.

        Args:
            status: How the program ended.
            end_facts: What else was found out at its end, as JSON values.
        """
        if self._closed:
            return
        now = perf_counter_ns()
        while self.activities.running:
            self.activities.leave()
        kind = AFTER_LAST_STEP if self.has_begun or self.steps else BEFORE_FIRST_STEP
        kind = kind if self._next_kind is None else self._next_kind
        self._finish_segment(now, kind, is_recorded=False)
        self._closed = True
        self.flush()
        if self.is_written:
            self.file.append({"end": now, "status": status, **end_facts})
        self.file.close()

    def abandon(self) -> None:
        """Stops the ledger in a forked child process, since the ledger belongs to the parent."""
        self._closed = True
        self.file.close_in_child()

    def fail(self, error: Exception) -> None:
        """Ends the account after a failure of selftime's own code; the program goes on."""
        self._closed = True
        self.file.failure = f"selftime failed: {type(error).__name__}: {error}; please report it"
        self.file.close()

    def add_line(self, line: dict[str, Any]) -> None:
        """Adds a further line of JSON to the ledger, such as one about a compilation."""
        with self._lock:
            self._lines.append(line)

    def _finish_segment(
        self, ended: int, kind: int, *, is_recorded: bool, readings: list[list[int]] | None = None
    ) -> None:
        self.activities.end_segment(ended)
        self._append_segment(ended, kind, is_recorded=is_recorded, readings=readings)

    def _append_segment(
        self, ended: int, kind: int, *, is_recorded: bool, readings: list[list[int]] | None = None
    ) -> None:
        if kind >= 0:
            self.kinds.add_step(kind, self.segment, ended - self.segment)
        counted = self.activities.counted
        self.take_phases(ended, counted if kind >= 0 else {})
        with self._lock:
            if is_recorded:
                counted["recorded"] = 1
            if self._saved_in_evaluation_ns:
                self._take_saving_off_evaluation(counted)
            self._columns.append(self.segment, ended - self.segment, kind, counted)
            if readings is None and self._readings.summed:
                readings = self._readings.take()
            if readings:
                self._lines.append({"segment": self.segment, "readings": readings})
            self.last_segment, self.segment = self.segment, ended
        if counted:
            self.activities.counted = {}

    def _take_saving_off_evaluation(self, counted: dict[str, int]) -> None:
        saved, self._saved_in_evaluation_ns = self._saved_in_evaluation_ns, 0
        if saved and "evaluation" in counted:
            counted["evaluation"] = max(0, counted["evaluation"] - saved)


def _nothing(*_arguments: object) -> None:
    pass
