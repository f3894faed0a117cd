"""Records the times of a few more steps alone, without what slows a detailed recording."""

import gc
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from torch._C._autograd import _KinetoEvent
from torch.profiler import schedule

from selftime.capture.facts.machine import rank_and_world
from selftime.capture.facts.step_overhead import lower_quartile_ns
from selftime.capture.profiler.profile import Profile
from selftime.capture.program.startup.selftime_early_log import instants_callback
from selftime.capture.recorder.recorded_details import RecordedDetails
from selftime.capture.recorder.running_profiler import RunningProfiler
from selftime.capture.steps import RecorderWork
from selftime.capture.trace_file.event_columns import event_columns
from selftime.capture.trace_file.time_mapping import Collections, TimeMapping, time_mapping
from selftime.errors import RecordingError

NO_DETAILS: Final = RecordedDetails(frames=False, shapes=False, memory=False)
STEPS_BEFORE_TIMES: Final = 1
"""Number of steps in which the profiler warms up before the times are recorded."""


class TimesRecording:
    """A recording of as many steps as the detailed one has, with nothing but the events' times.

    A step is left out before it, and its first step only warms the profiler up.
    """

    def __init__(self, steps: int, *, has_frames: bool, first_step: int | None = None) -> None:
        """Makes a recording of times.

        Args:
            steps: How many steps it has.
            has_frames: Whether the detailed recording has Python frames.
            first_step: The number of the first one in the run, from 1; None if unknown.
        """
        self._steps, self._has_frames, self.first_step = steps, has_frames, first_step
        self._steps_ended = 0
        """Number of steps that have ended since the start, with the one that warms up."""
        self._starts: deque[tuple[int, int]] = deque()
        self._stops: deque[tuple[int, int]] = deque()
        self._on_collection = instants_callback(self._starts, self._stops)
        self._thread = threading.get_ident()
        self._thread_id = threading.get_native_id()
        self._clock_offset_ns = 0
        self._profiler: RunningProfiler | None = None

    @property
    def profile(self) -> Profile | None:
        """Returns the profiler with the recording; None if there is none."""
        return None if self._profiler is None else self._profiler.profile

    @property
    def is_whole(self) -> bool:
        """Returns whether all steps are recorded."""
        return self._steps_ended > self._steps

    def start(self, recorder_work: RecorderWork | None = None) -> bool:
        """Starts the profiler; returns False if it cannot run.

        `recorder_work` marks selftime's own work between the steps; None without any.
        """
        try:
            self._profiler = RunningProfiler(
                schedule(wait=0, warmup=STEPS_BEFORE_TIMES, active=self._steps, repeat=1),
                NO_DETAILS,
                recorder_work,
            )
        except RecordingError:  # another profiler runs
            return False
        self._clock_offset_ns = time.time_ns() - time.perf_counter_ns()
        gc.callbacks.append(self._on_collection)
        return True

    def end_step(self) -> None:
        """Advances the profiler at the end of a step."""
        self._steps_ended += 1
        if self._profiler is not None:
            self._profiler.end_step()

    def stop(self) -> bool:
        """Stops the profiler; returns False if another thread would have to stop it."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)
        return self._profiler is None or self._profiler.stop()

    def forget(self) -> None:
        """Deletes what was recorded."""
        if self._profiler is not None:
            self._profiler.forget()
        self._profiler = None

    @property
    def usage(self) -> dict[str, Any] | None:
        """Returns how much of the cores was used in these steps."""
        return None if self.profile is None else self.profile.last_recording.usage

    @property
    def paging(self) -> dict[str, Any]:
        """Returns the page faults in these steps."""
        return {} if self.profile is None else self.profile.last_recording.paging

    def mapping(
        self, events: Iterable[_KinetoEvent], unrecorded_ns: list[int]
    ) -> TimeMapping | None:
        """Returns the mapping of a detailed recording's times to these.

        None if one of the recordings has other steps than the other.
        """
        if self.profile is None or not self.is_whole:
            return None
        detailed, timed = event_columns(events), event_columns(self.profile.recorded_events())
        numbers = list(detailed.step_spans_ns), list(timed.step_spans_ns)
        if not numbers[0] or len(numbers[0]) != len(numbers[1]):
            return None
        thread = self._thread_id
        recorded = np.array(detailed.collections_ns.get(thread, []), np.int64).reshape(-1, 2)
        collections = {}
        if self._has_frames:
            before = Collections(recorded[:, 0], recorded[:, 1])
            collections[thread] = before, self._collections()
        return time_mapping(
            detailed,
            timed,
            list(zip(*numbers, strict=True)),
            unrecorded_step_ns=None if is_in_job() else lower_quartile_ns(unrecorded_ns),
            collections=collections,
        )

    def _collections(self) -> Collections:
        """Returns the garbage collections in the thread of the steps."""
        starts = [at for at, thread in self._starts if thread == self._thread]
        ends = [at for at, thread in self._stops if thread == self._thread]
        pairs = [(start, end) for start, end in zip(starts, ends, strict=False) if start <= end]
        instants = np.array(pairs, np.int64).reshape(-1, 2) + self._clock_offset_ns
        return Collections(instants[:, 0], instants[:, 1])


def is_in_job() -> bool:
    """Returns whether this process is one of several ranks, whose times are compared."""
    _, world_size = rank_and_world()
    return world_size is not None and world_size > 1
