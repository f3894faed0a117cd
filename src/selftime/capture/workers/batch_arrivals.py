"""The main process's side of loaders with workers: when it took a batch, how many were ready.

An attribute that PyTorch's iterator counts taken batches with tells it, so that nothing of ours is
on the stack. The attribute's value stays where it is: without us the iterator finds it there.
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

from selftime.capture.patches import Patches

RECENT: Final = 4096
"""Batches taken of which the time is kept, the latest."""

MOST_ITERATORS: Final = 64
"""Iterators that are kept, the latest: a program may make one each epoch."""

_COUNTER: Final = "_rcvd_idx"
"""The number of the batch that the iterator hands out next."""


class Taken(NamedTuple):
    """A batch that the loop took."""

    iterator: int
    epoch: int
    number: int
    time: int
    """In ns of the counter that all processes share."""
    ready: int | None
    """Batches that were ready besides; None where the system does not tell."""


@dataclass(slots=True)
class Iterator:
    """An iterator over a loader that has workers."""

    number: int
    loader: tuple[Any, ...]
    """What is equal for all iterators of a loader."""
    workers: int
    prefetch: int | None
    batch_size: int | None
    pinned: bool
    persistent: bool
    start: str
    dataset: str
    epoch: int = -1
    pids: tuple[int, ...] = ()


@dataclass(slots=True)
class Pinning:
    """What the threads did that copy batches to pinned memory."""

    batches: int = 0
    time: int = 0
    """In ns."""


class Takes:
    """Wraps what tells it; `release` leaves everything as torch made it."""

    def __init__(self, before_start: Callable[[], None]) -> None:
        self.before_start = before_start
        """Called before worker processes are started."""
        self.recent: deque[Taken] = deque(maxlen=RECENT)
        self.iterators: deque[Iterator] = deque(maxlen=MOST_ITERATORS)
        self.pinning = Pinning()
        self._known: weakref.WeakKeyDictionary[Any, Iterator] = weakref.WeakKeyDictionary()
        self._made = 0
        self._process = os.getpid()
        self._patches = Patches()

    def watch(self) -> None:
        kind = dataloader._MultiProcessingDataLoaderIter  # noqa: SLF001 - no hook tells when a batch is taken
        self._listen(kind, _COUNTER, self._counts)
        self._listen(kind, "_workers", lambda *_: self.before_start())
        self._patches.wrap(
            pin_memory, "_pin_memory_loop", lambda loop: _PinningLoop(loop, self.pinning)
        )

    def release(self) -> None:
        self._patches.undo()

    def _listen(self, kind: type, name: str, told: Callable[[Any, Any], None]) -> None:
        if name not in vars(kind):
            self._patches.put(kind, name, _Attribute(name, told))

    def _counts(self, iterator: Any, number: int) -> None:
        if os.getpid() != self._process:
            return
        now = time.perf_counter_ns()
        known = self._known.get(iterator)
        if known is None:
            known = self._known[iterator] = self._described(iterator)
            self.iterators.append(known)
        if number == 0:  # torch resets it as an epoch begins
            known.epoch += 1
            known.pids = tuple(worker.pid for worker in iterator._workers)  # noqa: SLF001 - likewise
        elif getattr(iterator, "_in_order", True):
            ready = _ready(iterator)
            self.recent.append(Taken(known.number, known.epoch, number - 1, now, ready))

    def _described(self, iterator: Any) -> Iterator:
        told = vars(iterator).get
        dataset, sampler = told("_dataset"), told("_index_sampler")
        workers = told("_workers") or []
        self._made += 1
        return Iterator(
            number=self._made,
            loader=(id(dataset), id(sampler), len(workers)),
            workers=len(workers),
            prefetch=told("_prefetch_factor"),
            batch_size=getattr(sampler, "batch_size", None),
            pinned=bool(told("_pin_memory")),
            persistent=bool(told("_persistent_workers")),
            start=_start_method(workers),
            dataset=type(dataset).__name__,
        )


class _Attribute:
    """An attribute whose value lies in the object itself; that it was set is told on."""

    def __init__(self, name: str, told: Callable[[Any, Any], None]) -> None:
        self._name = name
        self._told = told

    def __get__(self, iterator: Any, _owner: Any) -> Any:
        if iterator is None:
            return self
        try:
            return vars(iterator)[self._name]
        except KeyError:
            raise AttributeError(self._name) from None

    def __set__(self, iterator: Any, value: Any) -> None:
        vars(iterator)[self._name] = value
        self._told(iterator, value)

    def __delete__(self, iterator: Any) -> None:
        try:
            del vars(iterator)[self._name]
        except KeyError:
            raise AttributeError(self._name) from None


class _PinningLoop:
    """Stands in for the loop of the thread that pins batches."""

    def __init__(self, original: Any, pinning: Pinning) -> None:
        self._original = original
        self._pinning = pinning

    def __call__(self, in_queue: Any, out_queue: Any, *args: Any, **kwargs: Any) -> Any:
        times = _PinningTimes(self._pinning)
        return self._original(_In(in_queue, times), _Out(out_queue, times), *args, **kwargs)


class _PinningTimes:
    def __init__(self, pinning: Pinning) -> None:
        self.pinning = pinning
        self.began: int | None = None
        self.lock = threading.Lock()


class _In:
    def __init__(self, queue: Any, times: _PinningTimes) -> None:
        self._queue = queue
        self._times = times

    def get(self, *args: Any, **kwargs: Any) -> Any:
        task = self._queue.get(*args, **kwargs)
        self._times.began = time.perf_counter_ns()
        return task

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _Out:
    def __init__(self, queue: Any, times: _PinningTimes) -> None:
        self._queue = queue
        self._times = times

    def put(self, *args: Any, **kwargs: Any) -> None:
        times = self._times
        if times.began is not None:
            with times.lock:
                times.pinning.batches += 1
                times.pinning.time += time.perf_counter_ns() - times.began
            times.began = None
        self._queue.put(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


def _start_method(workers: Sequence[Any]) -> str:
    told = getattr(workers[0], "_start_method", None) if workers else None
    return str(told or multiprocessing.get_start_method(allow_none=True))


def _ready(iterator: Any) -> int | None:
    try:
        waiting = iterator._data_queue.qsize()  # noqa: SLF001 - likewise
    except NotImplementedError:  # macOS
        return None
    stored = sum(len(info) == 2 for info in iterator._task_info.values())  # noqa: SLF001 - as torch tells a batch that is there
    return int(waiting + stored)
