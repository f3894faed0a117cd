"""Times a DataLoader worker's phases: wait for indices, load samples, collate, put into queue.

No frame of selftime is on the stack while samples are made or collated, so the traceback of a
user's exception is unchanged.
"""

import sys
import time
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data._utils import fetch, worker

from selftime.capture.workers.worker_times import WorkerBatch, WorkerPhase, WorkerTimes

_now_ns: Callable[[], int] = time.perf_counter_ns


class PhaseTimer:
    """Stores the current phase of a worker's main thread, and times the current batch."""

    def __init__(
        self, worker_times: WorkerTimes, *, counts_samples: bool, is_batched: bool
    ) -> None:
        self.phase = WorkerPhase.WAITING
        self.worker_times = worker_times
        self._counts_samples = counts_samples
        self._is_batched = is_batched
        self._epoch = 0
        self._index = 0
        self._wait_start: int | None = None
        self._batch_start = 0
        self._collate_start: int | None = None
        self._cpu_start = 0
        self.samples: int | None = None
        self.longest: int | None = None

    def on_wait(self) -> None:
        self.phase = WorkerPhase.WAITING
        if self._wait_start is None:
            self._wait_start = _now_ns()

    def on_task(self, task: Any) -> Any:
        """Begins to time a batch; returns the task with indices that time each sample."""
        if isinstance(task, worker._ResumeIteration):  # noqa: SLF001 - as in the loop
            self._epoch += 1
        if not isinstance(task, tuple):
            return task
        self._index, index = task
        self.samples = self.longest = self._collate_start = None
        if self._counts_samples:
            index = _TimedIndices(index, self)
        elif self._is_batched and hasattr(index, "__len__"):
            self.samples = len(index)
        self._cpu_start = time.thread_time_ns()
        self.phase = WorkerPhase.SAMPLES
        self._batch_start = _now_ns()
        return self._index, index

    def on_collate(self) -> None:
        if self.phase is WorkerPhase.SAMPLES:
            self.phase = WorkerPhase.COLLATE
            self._collate_start = _now_ns()

    def on_batch_made(self) -> tuple[int, int]:
        self.phase = WorkerPhase.PUT
        return _now_ns(), time.thread_time_ns() - self._cpu_start

    def on_put(self, data: Any, made: tuple[int, int]) -> None:
        """Stores the times of a batch that was put into the worker's output queue."""
        now = _now_ns()
        wait_start = self._batch_start if self._wait_start is None else self._wait_start
        self._wait_start = None
        if isinstance(data, ExceptionWrapper):
            self.worker_times.failed += 1
        elif not isinstance(data, worker._IterableDatasetStopIteration):  # noqa: SLF001 - likewise
            parts = (self._collate_start, made[0], now, self.samples, self.longest, made[1])
            self.worker_times.add_batch(
                WorkerBatch(self._epoch, self._index, wait_start, self._batch_start, *parts)
            )


class _TimedIndices:
    """The sample indices of a batch; iterating over them times the loading of each sample."""

    def __init__(self, index: Any, phase_timer: PhaseTimer) -> None:
        self._index = index
        self._phase_timer = phase_timer

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[Any]:
        longest = count = 0
        last = _now_ns()
        try:
            for sample_index in self._index:
                yield sample_index
                now = _now_ns()
                longest, last = max(longest, now - last), now
                count += 1
        finally:
            self._phase_timer.samples, self._phase_timer.longest = count, longest


class TimedIndexQueue:
    """A worker's queue of sample indices; measures how long the worker waits for indices."""

    def __init__(self, queue: Any, phase_timer: PhaseTimer) -> None:
        self._queue = queue
        self._phase_timer = phase_timer

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self._phase_timer.on_wait()
        return self._phase_timer.on_task(self._queue.get(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class TimedDataQueue:
    """A worker's queue of finished batches; measures how long it takes to put a batch into it."""

    def __init__(self, queue: Any, phase_timer: PhaseTimer) -> None:
        self._queue = queue
        self._phase_timer = phase_timer

    def put(self, item: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(item[0], worker._ResumeIteration):  # noqa: SLF001 - a reply, not a batch
            self._queue.put(item, *args, **kwargs)
            return
        made = self._phase_timer.on_batch_made()
        self._queue.put(item, *args, **kwargs)
        self._phase_timer.on_put(item[1], made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _CollateAttribute:
    """Descriptor for a fetcher's `collate_fn`; reading it marks the start of the collation."""

    def __init__(self, phase_timer: PhaseTimer, loop: CodeType | None) -> None:
        self._phase_timer = phase_timer
        self._loop = loop

    def __get__(self, fetcher: Any, _owner: Any) -> Any:
        if fetcher is None:
            return self
        # A data set may have its own loader; the worker's fetcher is called by the worker's loop.
        if self._loop in (None, sys._getframe(2).f_code):  # noqa: SLF001 - the caller's code
            self._phase_timer.on_collate()
        return vars(fetcher)["collate_fn"]

    def __set__(self, fetcher: Any, function: Any) -> None:
        vars(fetcher)["collate_fn"] = function


def time_collation(phase_timer: PhaseTimer, loop: CodeType | None) -> None:
    """Makes the fetchers of a worker process report when collation starts."""
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        kind = getattr(fetch, name)
        members = {
            "collate_fn": _CollateAttribute(phase_timer, loop),
            "__module__": kind.__module__,
        }
        setattr(fetch, name, type(name, (kind,), members))
