"""Starts and stops measuring DataLoader workers, and returns the measurements."""

import inspect
import json
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils.data import _DatasetKind
from torch.utils.data._utils import worker

from selftime.capture import temporary_folders
from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.facts import machine
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.workers.batch_arrivals import BatchArrivals
from selftime.capture.workers.clock_offset import ClockReading, combine_clock_readings
from selftime.capture.workers.phases import (
    PhaseTimer,
    TimedDataQueue,
    TimedIndexQueue,
    time_collation,
)
from selftime.capture.workers.sampler import (
    MAX_SAMPLING_PERIOD_S,
    MEASUREMENT_WRITE_INTERVAL_NS,
    WorkerSampler,
)
from selftime.capture.workers.worker_fact_columns import worker_facts
from selftime.capture.workers.worker_times import WorkerTimes

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


class RecordedWorkerLoop:
    """PyTorch's worker loop with measurements; can be pickled for spawned worker processes.

    Args:
        folder: Where workers write their files; None until it exists.
        user_packages: Returns the folders of installed packages that count as the user's code.
    """

    def __init__(self, folder: str | None, user_packages: Callable[[], tuple[str, ...]]) -> None:
        self.folder = folder
        self.user_packages = user_packages
        self.sources: SourceFiles | None = None
        """Finds the user's source files; made before workers are forked, since that is slow.
        None before."""
        self.original: Any = worker._worker_loop  # noqa: SLF001 - the replaced function
        while isinstance(self.original, RecordedWorkerLoop):  # in a recorded spawned process
            self.original = self.original.original

    def __reduce__(self) -> tuple[Any, ...]:
        return _recreate_in_spawned_process, (self.folder, self.user_packages())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = _worker_loop_arguments_by_name(self.original, args, kwargs)
        if arguments is None or self.folder is None or not Path(self.folder).is_dir():
            return self.original(*args, **kwargs)
        worker_times = WorkerTimes()
        is_batched = bool(arguments["auto_collation"])
        phase_timer = PhaseTimer(
            worker_times,
            counts_samples=is_batched and _fetches_samples_one_by_one(arguments),
            is_batched=is_batched,
        )
        name = f"{os.getpid()}-{time.perf_counter_ns()}.json"
        sampler = WorkerSampler(
            Path(self.folder, name),
            worker_times,
            phase_timer,
            self.sources or SourceFiles(self.user_packages()),
        )
        sampler.metadata = lambda: _facts_of_worker_process(arguments)
        queue = arguments["data_queue"]
        arguments["index_queue"] = TimedIndexQueue(arguments["index_queue"], phase_timer)
        arguments["data_queue"] = TimedDataQueue(queue, phase_timer)
        time_collation(phase_timer, getattr(self.original, "__code__", None))
        sampler.begin_sampling(RecordedWorkerLoop.__call__.__code__, queue)
        try:
            return self.original(**arguments)
        finally:
            sampler.end_sampling()


def _recreate_in_spawned_process(
    folder: str | None, user_packages: tuple[str, ...]
) -> RecordedWorkerLoop:
    """Creates the measuring worker loop again in a spawned process, when it is unpickled."""
    return RecordedWorkerLoop(folder, lambda: user_packages)


def _worker_loop_arguments_by_name(
    loop: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the arguments of a worker loop by name; None if its signature is unknown."""
    try:
        arguments = inspect.signature(loop).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    known = {"dataset_kind", "dataset", "index_queue", "data_queue", "auto_collation", "worker_id"}
    return dict(arguments) if known <= arguments.keys() else None


def _fetches_samples_one_by_one(arguments: dict[str, Any]) -> bool:
    """Returns whether samples are fetched one by one, not by the dataset's `__getitems__`."""
    if arguments["dataset_kind"] == _DatasetKind.Iterable:
        return True
    try:
        return not getattr(arguments["dataset"], "__getitems__", None)
    except Exception:  # noqa: BLE001 - the program's; PyTorch raises it again
        return False


def _facts_of_worker_process(arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "worker": arguments["worker_id"],
        "threads": torch.get_num_threads(),
        "python_threads": threading.active_count(),
        "cores": machine.usable_core_counts()["effective"],
    }
