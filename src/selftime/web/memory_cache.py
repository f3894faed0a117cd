"""What is kept in memory: bounded, the longest unused goes first, and nothing is made twice."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """Values by key. Who asks for one that another is making waits for it."""

    def __init__(self, limit: int, weigh: Callable[[V], int]) -> None:
        self.limit = limit
        self.weigh = weigh
        self._lock = Lock()
        self._values: OrderedDict[K, Future[V]] = OrderedDict()
        self._weights: dict[K, int] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made now if it is not here; an error is told and not kept."""
        with self._lock:
            known = self._values.get(key)
            if known is not None:
                self._values.move_to_end(key)
            else:
                value = self._values[key] = Future()
        return known.result() if known is not None else self._make(key, value, make)

    def _make(self, key: K, value: "Future[V]", make: Callable[[], V]) -> V:
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                del self._values[key]
            value.set_exception(error)
            raise
        value.set_result(made)
        with self._lock:
            self._weights[key] = self.weigh(made)
            self._trim(key)
        return made

    def _trim(self, newest: K) -> None:
        """Let the longest unused go; never the newest, however heavy, nor one in the making."""
        total = sum(self._weights.values())
        for key in list(self._values):
            if total <= self.limit:
                return
            if key in self._weights and key != newest:
                del self._values[key]
                total -= self._weights.pop(key)

    def __len__(self) -> int:
        return len(self._values)
