"""Records when the main process receives each batch from DataLoader workers.

The attribute in which PyTorch's iterator counts batches is observed, so that no frame of selftime
is on the stack. Its value stays in the iterator, which works as before once observation ends.
"""

import multiprocessing
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from torch.utils.data import dataloader
from torch.utils.data._utils import pin_memory

from selftime.capture.attribute_patches import AttributePatches

MAX_KEPT_ARRIVALS: Final = 4096
"""Largest number of batch arrivals that are kept; the oldest are dropped."""

MAX_KEPT_ITERATORS: Final = 64
"""Largest number of DataLoader iterators that are kept; the oldest are dropped."""

_ITERATOR_ATTRIBUTE_WITH_BATCH_COUNT: Final = "_rcvd_idx"
"""Name of the attribute of a DataLoader's iterator that holds the number of its next batch."""


class BatchArrival(NamedTuple):
    """When the main process took a batch from a DataLoader, and how many others were ready."""

    iterator: int
    epoch: int
    number: int
    time: int
    """When the batch was taken, in ns of `time.perf_counter_ns`, a clock that all processes
    share."""
    ready: int | None
    """Number of other batches that were ready at that time; None if unknown."""


@dataclass(slots=True)
class LoaderIterator:
    """An iterator over a DataLoader with worker processes, and its settings."""

    number: int
    loader: tuple[Any, ...]
    """Identifies the DataLoader; equal for all iterators over the same DataLoader."""
    workers: int
    prefetch: int | None
    batch_size: int | None
    pin_memory: bool
    persistent_workers: bool
    start_method: str
    dataset: str
    epoch: int = -1
    pids: tuple[int, ...] = ()


@dataclass(slots=True)
class PinningTimes:
    """How many batches threads copied to pinned memory, and the time that it took in ns."""

    batch_count: int = 0
    time_ns: int = 0
    """Total time of the copies, in ns."""


class BatchArrivals:
    """Records batch arrivals from DataLoaders between `begin_observing` and `stop_observing`."""

    def __init__(self, before_start: Callable[[], None]) -> None:
        self.before_start = before_start
        """Function called before worker processes are started."""
        self.recent: deque[BatchArrival] = deque(maxlen=MAX_KEPT_ARRIVALS)
        self.iterators: deque[LoaderIterator] = deque(maxlen=MAX_KEPT_ITERATORS)
        self.pinning = PinningTimes()
        self._description_by_iterator: weakref.WeakKeyDictionary[Any, LoaderIterator] = (
            weakref.WeakKeyDictionary()
        )
        self._iterator_count = 0
        self._process = os.getpid()
        self._patches = AttributePatches()

    def begin_observing(self) -> None:
        kind = dataloader._MultiProcessingDataLoaderIter  # noqa: SLF001 - torch has no hook for it
        self._observe_attribute(
            kind, _ITERATOR_ATTRIBUTE_WITH_BATCH_COUNT, self._on_batch_counter_set
        )
        self._observe_attribute(kind, "_workers", lambda *_: self.before_start())
        self._patches.wrap_attribute(
            pin_memory, "_pin_memory_loop", lambda loop: _PinningLoop(loop, self.pinning)
        )

    def stop_observing(self) -> None:
        self._patches.restore_all()

    def _observe_attribute(self, kind: type, name: str, on_set: Callable[[Any, Any], None]) -> None:
        if name not in vars(kind):
            self._patches.replace_attribute(kind, name, _ObservedAttribute(name, on_set))

    def _on_batch_counter_set(self, iterator: Any, number: int) -> None:
        if os.getpid() != self._process:
            return
        now = time.perf_counter_ns()
        description = self._description_by_iterator.get(iterator)
        if description is None:
            description = self._description_by_iterator[iterator] = self._describe_iterator(
                iterator
            )
            self.iterators.append(description)
        if number == 0:  # torch resets it at the begin of an epoch
            description.epoch += 1
            description.pids = tuple(worker.pid for worker in iterator._workers)  # noqa: SLF001 - likewise
        elif getattr(iterator, "_in_order", True):
            ready = _number_of_ready_batches(iterator)
            self.recent.append(
                BatchArrival(description.number, description.epoch, number - 1, now, ready)
            )

    def _describe_iterator(self, iterator: Any) -> LoaderIterator:
        attribute = vars(iterator).get
        dataset, sampler = attribute("_dataset"), attribute("_index_sampler")
        workers = attribute("_workers") or []
        self._iterator_count += 1
        return LoaderIterator(
            number=self._iterator_count,
            loader=(id(dataset), id(sampler), len(workers)),
            workers=len(workers),
            prefetch=attribute("_prefetch_factor"),
            batch_size=getattr(sampler, "batch_size", None),
            pin_memory=bool(attribute("_pin_memory")),
            persistent_workers=bool(attribute("_persistent_workers")),
            start_method=_worker_start_method(workers),
            dataset=type(dataset).__name__,
        )


class _ObservedAttribute:
    """Descriptor that calls a function whenever the program sets the attribute of an instance."""

    def __init__(self, name: str, on_set: Callable[[Any, Any], None]) -> None:
        self._name = name
        self._on_set = on_set

    def __get__(self, iterator: Any, _owner: Any) -> Any:
        if iterator is None:
            return self
        try:
            return vars(iterator)[self._name]
        except KeyError:
            raise AttributeError(self._name) from None

    def __set__(self, iterator: Any, value: Any) -> None:
        vars(iterator)[self._name] = value
        self._on_set(iterator, value)

    def __delete__(self, iterator: Any) -> None:
        try:
            del vars(iterator)[self._name]
        except KeyError:
            raise AttributeError(self._name) from None


class _PinningLoop:
    """Replaces the loop of the thread that pins batches by a loop that measures its time."""

    def __init__(self, original: Any, pinning: PinningTimes) -> None:
        self._original = original
        self._pinning = pinning

    def __call__(self, in_queue: Any, out_queue: Any, *args: Any, **kwargs: Any) -> Any:
        timer = _TimerOfPinnedBatch(self._pinning)
        return self._original(
            _TimedPinningInputQueue(in_queue, timer),
            _TimedPinningOutputQueue(out_queue, timer),
            *args,
            **kwargs,
        )


class _TimerOfPinnedBatch:
    def __init__(self, times: PinningTimes) -> None:
        self.times = times
        self.start_ns: int | None = None
        self.lock = threading.Lock()


class _TimedPinningInputQueue:
    def __init__(self, queue: Any, timer: _TimerOfPinnedBatch) -> None:
        self._queue = queue
        self._timer = timer

    def get(self, *args: Any, **kwargs: Any) -> Any:
        task = self._queue.get(*args, **kwargs)
        self._timer.start_ns = time.perf_counter_ns()
        return task

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _TimedPinningOutputQueue:
    def __init__(self, queue: Any, timer: _TimerOfPinnedBatch) -> None:
        self._queue = queue
        self._timer = timer

    def put(self, *args: Any, **kwargs: Any) -> None:
        timer = self._timer
        if timer.start_ns is not None:
            with timer.lock:
                timer.times.batch_count += 1
                timer.times.time_ns += time.perf_counter_ns() - timer.start_ns
            timer.start_ns = None
        self._queue.put(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


def _worker_start_method(workers: Sequence[Any]) -> str:
    method = getattr(workers[0], "_start_method", None) if workers else None
    return str(method or multiprocessing.get_start_method(allow_none=True))


def _number_of_ready_batches(iterator: Any) -> int | None:
    try:
        waiting = iterator._data_queue.qsize()  # noqa: SLF001 - likewise
    except NotImplementedError:  # macOS
        return None
    stored = sum(len(info) == 2 for info in iterator._task_info.values())  # noqa: SLF001 - a batch that has arrived has 2 entries
    return int(waiting + stored)
