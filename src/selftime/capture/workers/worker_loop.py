"""Replaces the loop of PyTorch's DataLoader workers by a loop that measures their work."""

import inspect
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import _DatasetKind
from torch.utils.data._utils import worker

from selftime.capture.facts import machine
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.workers.phases import (
    PhaseTimer,
    TimedDataQueue,
    TimedIndexQueue,
    time_collation,
)
from selftime.capture.workers.sampler import WorkerSampler
from selftime.capture.workers.worker_times import WorkerTimes


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
