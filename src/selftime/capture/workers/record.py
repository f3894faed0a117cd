"""Starts and stops measuring DataLoader workers, and returns the measurements."""

import json
import multiprocessing
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from torch.utils.data._utils import worker

from selftime.capture import temporary_folders
from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.workers.batch_arrivals import BatchArrivals
from selftime.capture.workers.clock_offset import ClockReading, combine_clock_readings
from selftime.capture.workers.sampler import MAX_SAMPLING_PERIOD_S, MEASUREMENT_WRITE_INTERVAL_NS
from selftime.capture.workers.worker_fact_columns import worker_facts
from selftime.capture.workers.worker_loop import RecordedWorkerLoop

MAX_WORKER_FILES: Final = 256
"""Largest number of workers whose measurement files are read; the latest workers are preferred."""

MAX_WRITE_DELAY_NS: Final = MEASUREMENT_WRITE_INTERVAL_NS + int(MAX_SAMPLING_PERIOD_S * 1e9)
"""Longest time in ns until a running worker has written its measurements to its file."""

WORKER_FILE_POLL_SECONDS: Final = 0.02
"""Seconds between two checks whether workers have written their measurement files."""

_active: list["WorkerRecord"] = []
"""Contains the object that now measures DataLoader workers; empty if there is none."""


def current_worker_record() -> "WorkerRecord | None":
    """Returns the object that now measures DataLoader workers in this process; None without one."""
    return _active[0] if _active and _active[0].process == os.getpid() else None


def on_recording_begin() -> None:
    """Tells the object that measures DataLoader workers that a profiler recording starts."""
    record = current_worker_record()
    if record is not None:
        record.begin()


def on_recording_end() -> None:
    """Tells the object that measures DataLoader workers that a profiler recording ends."""
    record = current_worker_record()
    if record is not None:
        record.end()


def current_worker_facts() -> dict[str, Any] | None:
    """Returns the measurements of DataLoader workers as JSON columns; None if there are none."""
    record = current_worker_record()
    return None if record is None else record.facts()


class WorkerRecord:
    """Measures the DataLoader workers that start between `start` and `stop`.

    Workers that run already are not recorded; recorded ones stop measuring after `stop`.
    """

    def __init__(self, user_packages: Callable[[], tuple[str, ...]] = tuple) -> None:
        self.process = os.getpid()
        self._loop = RecordedWorkerLoop(None, user_packages)
        self._arrivals = BatchArrivals(self._make_folder)
        self._patches = AttributePatches()
        self._start_reading = ClockReading.now()
        self._end_ns: int | None = None
        self._failure: str | None = None

    def start(self) -> None:
        """Begins to measure new DataLoader workers, unless this process already does."""
        if current_worker_record() is not None:
            return
        while _active:
            _active.pop().release()
        self._loop.original = worker._worker_loop  # noqa: SLF001 - what workers run
        self._patches.replace_attribute(worker, "_worker_loop", self._loop)
        self._arrivals.begin_observing()
        _active.append(self)

    def stop(self) -> None:
        """Stops measuring and deletes the workers' files, which makes running workers stop, too."""
        if current_worker_record() is self:
            _active.remove(self)
            self.release()
            if self._loop.folder is not None:
                shutil.rmtree(self._loop.folder, ignore_errors=True)

    def release(self) -> None:
        """Removes the wrappers from torch; those that cannot be removed do nothing more."""
        self._patches.restore_all()
        self._arrivals.stop_observing()

    def begin(self) -> None:
        """Stores the start of a profiler recording; measurements before it are not needed."""
        self._start_reading, self._end_ns = ClockReading.now(), None

    def end(self) -> None:
        """Stores the end of a profiler recording; measurements after it are not needed."""
        self._end_ns = time.perf_counter_ns()

    def facts(self) -> dict[str, Any] | None:
        """Returns the workers' times as JSON columns; None if no DataLoader started workers.

        Waits until running workers have written what they measured before `end`.
        """
        if not self._arrivals.iterators:
            return None
        worker_files = self._read_worker_files()
        deadline = time.perf_counter_ns() + MAX_WRITE_DELAY_NS
        while (
            self._lacks_measurements_until_end(worker_files) and time.perf_counter_ns() < deadline
        ):
            time.sleep(WORKER_FILE_POLL_SECONDS)
            worker_files = self._read_worker_files()
        clock = combine_clock_readings(self._start_reading, ClockReading.now())
        found = worker_facts(worker_files, self._arrivals, self._start_reading.counter_ns, clock)
        return {**found, "failure": self._failure}

    def _lacks_measurements_until_end(self, worker_files: list[dict[str, Any]]) -> bool:
        """Returns whether a running worker has yet to write times up to the recording's end."""
        written = {worker_file["pid"]: worker_file["written"] for worker_file in worker_files}
        own_pids = {pid for iterator in self._arrivals.iterators for pid in iterator.pids}
        live_pids = own_pids & {child.pid for child in multiprocessing.active_children()}
        return self._end_ns is not None and any(
            written.get(pid, 0) < self._end_ns for pid in live_pids
        )

    def _make_folder(self) -> None:
        if self._loop.folder is not None or os.getpid() != self.process:
            return
        try:
            folder = str(temporary_folders.make_temporary_folder())
        except OSError as error:
            self._failure = (
                f"workers could not be recorded: no folder can be made in "
                f"`{tempfile.gettempdir()}`: {error.strerror}; set TMPDIR to another place"
            )
            return
        self._loop.folder = folder
        self._loop.sources = SourceFiles(self._loop.user_packages())
        weakref.finalize(self, _remove_folder_if_same_process, folder, self.process)

    def _read_worker_files(self) -> list[dict[str, Any]]:
        """Returns the contents of the workers' measurement files, in order of worker start."""
        if self._loop.folder is None:
            return []
        names = sorted(Path(self._loop.folder).glob("*.json"), key=lambda path: path.name)
        written = [json.loads(path.read_text()) for path in names]
        return sorted(written, key=lambda worker_file: int(worker_file["began"]))[
            -MAX_WORKER_FILES:
        ]


def _remove_folder_if_same_process(folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked child must not delete the parent's folder
        shutil.rmtree(folder, ignore_errors=True)
