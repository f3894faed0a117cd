"""Samples the source line that a DataLoader worker runs, about 20 times a second.

Each sample counts for the time since the one before: a call that holds the interpreter lock for
long delays the thread, and counts for that time; its line is still the current one then. The thread
also writes the measurements, twice a second.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from torch.utils.data._utils import fetch, worker

from selftime.capture.lines.sources import SourceFiles
from selftime.capture.thread_frames import frames_of_threads
from selftime.capture.workers import phases
from selftime.capture.workers.phases import PhaseTimer
from selftime.capture.workers.worker_times import WorkerLine, WorkerPhase, WorkerTimes

SAMPLING_PERIOD_S: Final = 0.045
"""Seconds between two stack samples (longer if sampling costs too much), plus a random delay."""

MAX_SAMPLING_PERIOD_S: Final = 0.25

MAX_RANDOM_DELAY_S: Final = 0.005
"""Longest random delay of a stack sample in seconds; equal to Python's thread switch interval."""

MAX_SAMPLING_COST_SHARE: Final = 0.01
"""Largest fraction of the main thread's time that sampling may cost; above it, samples become
rarer."""

SAMPLES_PER_ADJUSTMENT: Final = 20
"""Number of stack samples after which the sampling period is adapted to their cost."""

SHORT_THREAD_SWITCH_INTERVAL_S: Final = 1e-4
"""Python's thread switch interval in seconds while a stack sample is due."""

EXPECTED_WORKER_THREADS: Final = 3
"""Usual number of threads of a worker; with more, the thread switch interval stays unchanged."""

MEASUREMENT_WRITE_INTERVAL_NS: Final = 500_000_000

MAX_CACHED_SOURCE_LINES: Final = 10_000
"""Largest number of source lines that are cached."""

_SOURCE_FILES_OF_DATALOADER: Final = frozenset({fetch.__file__, worker.__file__, phases.__file__})
"""Source files of PyTorch's DataLoader and of selftime's wrappers, whose frames call the user's
code."""

_SAMPLED_PHASES: Final = (WorkerPhase.SAMPLES, WorkerPhase.COLLATE)
"""Phases of a worker in which the user's code may run."""

_NAMES_OF_BATCH_SENDING_FUNCTIONS: Final = frozenset(
    {"dumps", "_send", "_send_bytes", "send_bytes"}
)
"""Functions of multiprocessing that the output queue's thread runs while it sends a batch."""


class AdaptiveSamplingRate:
    """Adapts the sampling period so that samples cost at most 1 % of the main thread's time."""

    def __init__(self) -> None:
        self.period = SAMPLING_PERIOD_S
        self._count = self._cost_ns = 0
        self._counted_since: int | None = None
        self._random = random.Random()  # noqa: S311 - not for security

    def random_delay_s(self) -> float:
        """Returns a random time in seconds to wait before the next stack sample.

        A thread wakes when another releases the interpreter lock, so without a delay it would see
        the same lines.
        """
        return self._random.uniform(0.0, MAX_RANDOM_DELAY_S)

    def add_sample_cost(self, due_ns: int, done_ns: int, running_share: float) -> None:
        """Adds the cost of one stack sample, and adapts the sampling period.

        The cost counts in proportion to the main thread's running share: it is stopped for the
        sample, and on a machine with no free core until the sampling thread gets one.

        Args:
            due_ns: When the sample was due, in ns.
            done_ns: When it was complete, in ns.
            running_share: Share of the time in which the main thread ran.
        """
        if self._counted_since is None:
            self._counted_since = due_ns
        self._count += 1
        self._cost_ns += int(
            running_share * max(0, done_ns - due_ns - int(SHORT_THREAD_SWITCH_INTERVAL_S * 1e9))
        )
        if self._count >= SAMPLES_PER_ADJUSTMENT:
            share = self._cost_ns / max(done_ns - self._counted_since, 1)
            self.period = min(
                max(SAMPLING_PERIOD_S, self.period * share / MAX_SAMPLING_COST_SHARE),
                MAX_SAMPLING_PERIOD_S,
            )
            self._count = self._cost_ns = 0
            self._counted_since = None


class WorkerSampler:
    """Thread that samples the stack of the thread that created it, a worker's main thread.

    It does so from `begin_sampling` to `end_sampling`.
    """

    def __init__(
        self, path: Path, worker_times: WorkerTimes, phase_timer: PhaseTimer, sources: SourceFiles
    ) -> None:
        self._path = path
        self._worker_times = worker_times
        self._phase_timer = phase_timer
        self._sources = sources
        self._lines: dict[tuple[Any, ...], WorkerLine] = {}
        self._thread = threading.Thread(
            target=self._sample_until_end, name="selftime-worker", daemon=True
        )
        self._main_thread = threading.get_ident()
        self._cpu_clock = _thread_cpu_clock(self._main_thread)
        self._cpu = 0
        self._root_code: CodeType | None = None
        self._queue: Any = None
        self._ended = False
        self._program_interval = self._interval_set = self._interval_requested = (
            sys.getswitchinterval()
        )
        """Python's thread switch interval in seconds: the program's value, the value read back
        after the last change, and the value of that change."""
        self.metadata: Callable[[], dict[str, Any]] = dict
        """Function that returns further values to write to the measurement file."""

    def begin_sampling(self, root_code: CodeType, output_queue: Any) -> None:
        """Begins to sample the frames called by `root_code`, and the output queue's thread."""
        self._root_code, self._queue = root_code, output_queue
        self._thread.start()

    def end_sampling(self) -> None:
        self._ended = True
        self._set_switch_interval(seconds=self._program_interval)
        self._thread.join(MAX_SAMPLING_PERIOD_S)
        self._write_measurements()

    def _sample_until_end(self) -> None:
        rate, last, last_write = AdaptiveSamplingRate(), time.perf_counter_ns(), 0
        while not self._ended:
            time.sleep(rate.period)
            has_few_threads = threading.active_count() <= EXPECTED_WORKER_THREADS
            self._set_switch_interval(
                seconds=SHORT_THREAD_SWITCH_INTERVAL_S
                if has_few_threads
                else self._program_interval
            )
            woken, delay = time.perf_counter_ns(), rate.random_delay_s()
            time.sleep(delay)
            now = time.perf_counter_ns()
            self._set_switch_interval(seconds=self._program_interval)
            running_share = self._cpu_time_share_of_main_thread(now - last)
            self._take_sample(now - last)
            last = now
            if (
                now - last_write > MEASUREMENT_WRITE_INTERVAL_NS
                and self._worker_times.first.batches + self._worker_times.failed
            ):
                if not self._write_measurements():
                    return
                last_write = now
            rate.add_sample_cost(woken + int(delay * 1e9), time.perf_counter_ns(), running_share)

    def _cpu_time_share_of_main_thread(self, elapsed_ns: int) -> float:
        """Returns which fraction (0 to 1) of the last `elapsed_ns` the main thread ran on a CPU."""
        if self._cpu_clock is None:
            return float(self._phase_timer.phase is not WorkerPhase.WAITING)
        before, self._cpu = self._cpu, time.clock_gettime_ns(self._cpu_clock)
        return min(1.0, (self._cpu - before) / max(elapsed_ns, 1))

    def _set_switch_interval(self, *, seconds: float) -> None:
        """Sets Python's thread switch interval, unless the program has changed it.

        Python switches threads when one waits, or after this interval. With the default of 5 ms,
        mostly lines that wait would be sampled. A shorter interval costs time, so it is set only
        around a sample.
        """
        if sys.getswitchinterval() == self._interval_set and seconds != self._interval_requested:
            sys.setswitchinterval(seconds)
            self._interval_set, self._interval_requested = sys.getswitchinterval(), seconds

    def _take_sample(self, elapsed_ns: int) -> None:
        frames = frames_of_threads()
        phase, times = self._phase_timer.phase, self._worker_times.current_sums
        frame = frames.get(self._main_thread)
        if frame is not None and phase in _SAMPLED_PHASES:
            times.lines.add_sample(self._user_lines_on_stack(frame, phase), elapsed_ns)
        queue_frame = frames.get(getattr(getattr(self._queue, "_thread", None), "ident", None) or 0)
        activity = _activity_of_queue_thread(queue_frame)
        if activity == "dumps":
            times.serialising += elapsed_ns
        elif activity is not None:
            times.sending += elapsed_ns

    def _user_lines_on_stack(self, frame: FrameType | None, phase: WorkerPhase) -> list[WorkerLine]:
        """Returns the source lines of user code on a stack, the innermost first.

        If there are none, returns the library's outermost line.
        """
        user_lines: list[WorkerLine] = []
        outermost = None
        lines, root = self._lines, self._root_code
        while frame is not None:
            code = frame.f_code
            if code is root:
                break
            key = code.co_filename, frame.f_lineno, code.co_name, phase
            line = lines.get(key)
            if line is None:
                line = lines[key] = self._source_line(frame, phase)
            if line.own:
                user_lines.append(line)
            elif line.file not in _SOURCE_FILES_OF_DATALOADER:
                outermost = line
            frame = frame.f_back
        return user_lines if user_lines or outermost is None else [outermost]

    def _source_line(self, frame: FrameType, phase: WorkerPhase) -> WorkerLine:
        code = frame.f_code
        if len(self._lines) > MAX_CACHED_SOURCE_LINES:  # a program that keeps compiling code
            self._lines.clear()
        file = self._sources.user_file(code.co_filename)
        line = frame.f_lineno or code.co_firstlineno
        return WorkerLine(phase, file or code.co_filename, line, code.co_name, file is not None)

    def _write_measurements(self) -> bool:
        """Writes the measurements to the worker's file; returns False if its folder is gone."""
        content = {**self.metadata(), **self._worker_times.as_json()}
        temporary = self._path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(content))
            temporary.replace(self._path)
        except OSError:  # the main process has deleted the folder, or has ended
            return False
        return True


def _thread_cpu_clock(thread_id: int) -> int | None:
    """Returns the id of a thread's CPU-time clock; None if the system has no such clock."""
    try:
        return time.pthread_getcpuclockid(thread_id)
    except (AttributeError, OSError):
        return None


def _activity_of_queue_thread(frame: FrameType | None) -> str | None:
    """Returns `dumps` if the queue's thread pickles a batch, `send` if it sends one, else None."""
    while frame is not None:
        if frame.f_code.co_name in _NAMES_OF_BATCH_SENDING_FUNCTIONS:
            return "dumps" if frame.f_code.co_name == "dumps" else "send"
        frame = frame.f_back
    return None
