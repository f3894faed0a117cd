"""PyTorch's loop of a worker process, with a record of what it does."""

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
from selftime.capture.workers.phase_marks import AskedQueue, DataQueue, Marks, mark_collation
from selftime.capture.workers.sampler import Sampler
from selftime.capture.workers.tally import Tally


class RecordedLoop:
    """Stands in for `torch.utils.data._utils.worker._worker_loop`; it can be pickled for a spawn.

    `folder` is where each worker writes its file, once there is one; `own_code` tells
    folders of installed code that counts as the user's.
    """

    def __init__(self, folder: str | None, own_code: Callable[[], tuple[str, ...]]) -> None:
        self.folder = folder
        self.own_code = own_code
        self.sources: SourceFiles | None = None
        """Which files are the user's: made before a fork, for it takes a while."""
        self.original: Any = worker._worker_loop  # noqa: SLF001 - what it stands in for
        while isinstance(self.original, RecordedLoop):  # a new interpreter is recorded as well
            self.original = self.original.original

    def __reduce__(self) -> tuple[Any, ...]:
        return _spawned, (self.folder, self.own_code())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        told = _arguments(self.original, args, kwargs)
        if told is None or self.folder is None or not Path(self.folder).is_dir():
            return self.original(*args, **kwargs)
        tally = Tally()
        is_batched = bool(told["auto_collation"])
        marks = Marks(tally, counts_samples=is_batched and _one_by_one(told), is_batched=is_batched)
        name = f"{os.getpid()}-{time.perf_counter_ns()}.json"
        sampler = Sampler(
            Path(self.folder, name), tally, marks, self.sources or SourceFiles(self.own_code())
        )
        sampler.about = lambda: _about(told)
        queue = told["data_queue"]
        told["index_queue"] = AskedQueue(told["index_queue"], marks)
        told["data_queue"] = DataQueue(queue, marks)
        mark_collation(marks, getattr(self.original, "__code__", None))
        sampler.begin(RecordedLoop.__call__.__code__, queue)
        try:
            return self.original(**told)
        finally:
            sampler.end()


def _spawned(folder: str | None, own_code: tuple[str, ...]) -> RecordedLoop:
    """The same in a new interpreter, where torch is as it was made."""
    return RecordedLoop(folder, lambda: own_code)


def _arguments(loop: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The loop's arguments by name; None if it is not the loop that we know."""
    try:
        told = inspect.signature(loop).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    known = {"dataset_kind", "dataset", "index_queue", "data_queue", "auto_collation", "worker_id"}
    return dict(told) if known <= told.keys() else None


def _one_by_one(told: dict[str, Any]) -> bool:
    """Whether PyTorch asks for each sample by itself: the data set never sees the batch's index."""
    if told["dataset_kind"] == _DatasetKind.Iterable:
        return True
    try:
        return not getattr(told["dataset"], "__getitems__", None)
    except Exception:  # noqa: BLE001 - the program's own, which it meets when PyTorch asks
        return False


def _about(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "worker": told["worker_id"],
        "threads": torch.get_num_threads(),
        "python_threads": threading.active_count(),
        "cores": machine.cores()["effective"],
    }
