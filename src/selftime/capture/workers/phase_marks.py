"""When a worker's main thread goes from one phase to the next, told by what PyTorch's loop touches.

Nothing of ours is on the stack while a sample is made or samples are joined: an exception of the
user's has the traceback that it has without us.
"""

import sys
import time
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from torch._utils import ExceptionWrapper
from torch.utils.data._utils import fetch, worker

from selftime.capture.workers.tally import Batch, Phase, Tally

_clock: Callable[[], int] = time.perf_counter_ns


class Marks:
    """The phase of the main thread, and the batch that it makes."""

    def __init__(self, tally: Tally, *, counts_samples: bool, is_batched: bool) -> None:
        self.phase = Phase.WAITING
        self.tally = tally
        self._counts_samples = counts_samples
        self._is_batched = is_batched
        self._epoch = 0
        self._index = 0
        self._asked: int | None = None
        self._begun = 0
        self._collating: int | None = None
        self._cpu = 0
        self.samples: int | None = None
        self.longest: int | None = None

    def ask(self) -> None:
        self.phase = Phase.WAITING
        if self._asked is None:
            self._asked = _clock()

    def got(self, task: Any) -> Any:
        """What the queue gave; of a batch, an index that marks its samples."""
        if isinstance(task, worker._ResumeIteration):  # noqa: SLF001 - what the loop itself asks
            self._epoch += 1
        if not isinstance(task, tuple):
            return task
        self._index, index = task
        self.samples = self.longest = self._collating = None
        if self._counts_samples:
            index = _Samples(index, self)
        elif self._is_batched and hasattr(index, "__len__"):
            self.samples = len(index)
        self._cpu = time.thread_time_ns()
        self.phase = Phase.SAMPLES
        self._begun = _clock()
        return self._index, index

    def collate(self) -> None:
        if self.phase is Phase.SAMPLES:
            self.phase = Phase.COLLATE
            self._collating = _clock()

    def made(self) -> tuple[int, int]:
        self.phase = Phase.PUT
        return _clock(), time.thread_time_ns() - self._cpu

    def put(self, data: Any, made: tuple[int, int]) -> None:
        """The batch that was begun has been put into the queue."""
        now = _clock()
        asked = self._begun if self._asked is None else self._asked
        self._asked = None
        if isinstance(data, ExceptionWrapper):
            self.tally.failed += 1
        elif not isinstance(data, worker._IterableDatasetStopIteration):  # noqa: SLF001 - likewise
            parts = (self._collating, made[0], now, self.samples, self.longest, made[1])
            self.tally.add(Batch(self._epoch, self._index, asked, self._begun, *parts))


class _Samples:
    """The index of a batch: it notes when each next sample is asked for."""

    def __init__(self, index: Any, marks: Marks) -> None:
        self._index = index
        self._marks = marks

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[Any]:
        longest = count = 0
        last = _clock()
        try:
            for one in self._index:
                yield one
                now = _clock()
                longest, last = max(longest, now - last), now
                count += 1
        finally:
            self._marks.samples, self._marks.longest = count, longest


class AskedQueue:
    """The queue of indices, as a worker sees it."""

    def __init__(self, queue: Any, marks: Marks) -> None:
        self._queue = queue
        self._marks = marks

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self._marks.ask()
        return self._marks.got(self._queue.get(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class DataQueue:
    """The queue of batches, as a worker sees it."""

    def __init__(self, queue: Any, marks: Marks) -> None:
        self._queue = queue
        self._marks = marks

    def put(self, item: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(item[0], worker._ResumeIteration):  # noqa: SLF001 - an answer, no batch
            self._queue.put(item, *args, **kwargs)
            return
        made = self._marks.made()
        self._queue.put(item, *args, **kwargs)
        self._marks.put(item[1], made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _Collation:
    """The attribute `collate_fn` of a fetcher: to take it out is to begin to join samples."""

    def __init__(self, marks: Marks, loop: CodeType | None) -> None:
        self._marks = marks
        self._loop = loop

    def __get__(self, fetcher: Any, _owner: Any) -> Any:
        if fetcher is None:
            return self
        # A data set may have a loader of its own: the worker's fetcher is called by its loop.
        if self._loop in (None, sys._getframe(2).f_code):  # noqa: SLF001 - the callers
            self._marks.collate()
        return vars(fetcher)["collate_fn"]

    def __set__(self, fetcher: Any, function: Any) -> None:
        vars(fetcher)["collate_fn"] = function


def mark_collation(marks: Marks, loop: CodeType | None) -> None:
    """In a worker process: let the fetchers that it makes tell when they have their samples."""
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        kind = getattr(fetch, name)
        members = {"collate_fn": _Collation(marks, loop), "__module__": kind.__module__}
        setattr(fetch, name, type(name, (kind,), members))
