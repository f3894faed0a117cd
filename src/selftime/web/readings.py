"""Opens traces for requests: tells how far reading one is, and stops it when nobody waits for it.

A request waits until its trace is read. A browser that leaves the page, or whose reader presses
Cancel, ends its requests' connections; the server tells that by the function in `is_client_gone`.
Other servers than Waitress do not tell it: there a trace is read to its end.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Generic, TypeAlias, TypeVar

from selftime.errors import ReadingStopped
from selftime.trace import Trace
from selftime.web.caches import SharedCache
from selftime.web.client_presence import STOPPED_SENTENCE, is_client_gone
from selftime.web.sources import TraceSources

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MAX_TRACE_CACHE_BYTES: Final = 2 << 30
"""Largest size of the cache of open traces, in bytes."""
_READING_STAGE: Final = "Reading the file"
_LINKING_STAGE: Final = "Linking what belongs together"

TraceKey: TypeAlias = tuple[str, str]
"""Key of a trace in caches: (id of the trace, fingerprint that changes with its content)."""


@dataclass(slots=True)
class Reading:
    """What is being read: how far that is, and who waits for it."""

    trace_ids: frozenset[str]
    """Ids of the traces that are shown with this progress."""
    waiting: list[Callable[[], bool] | None] = field(default_factory=list)
    """`is_client_gone` of each request that waits; None of what this process does by itself."""
    done_bytes: int = 0
    total_bytes: int | None = None
    rank_count: int | None = None
    """The number of ranks that are read; None for a single trace."""
    done_ranks: int = 0
    _done_bytes_by_path: dict[str, int] = field(default_factory=dict)

    def advance(self, done: int, total: int | None) -> None:
        """Notes how many bytes have been read.

        Raises:
            ReadingStopped: All clients that waited have gone.
        """
        self.done_bytes, self.total_bytes = max(self.done_bytes, done), total
        clients = [is_gone for is_gone in self.waiting if is_gone is not None]
        if clients and all(is_gone() for is_gone in clients):
            raise ReadingStopped(STOPPED_SENTENCE)

    def advance_rank(self, path: str, done: int) -> None:
        """Notes how many bytes of one of several files have been read.

        Raises:
            ReadingStopped: All clients that waited have gone.
        """
        self._done_bytes_by_path[path] = max(done, self._done_bytes_by_path.get(path, 0))
        self.advance(sum(list(self._done_bytes_by_path.values())), self.total_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Returns the progress as the JSON object `Progress` of the page's interface."""
        is_read = self.total_bytes is not None and self.done_bytes >= self.total_bytes
        stage = _LINKING_STAGE if is_read else _READING_STAGE
        if self.rank_count is not None:
            rank = min(self.done_ranks + 1, self.rank_count)
            stage = f"Reading rank {rank} of {self.rank_count}"
        return {"stage": stage, "done": self.done_bytes, "total": self.total_bytes}


class SharedReadings(Generic[K]):
    """What is being read by key; all requests that wait for the same share its reading."""

    def __init__(self) -> None:
        self._readings: dict[K, Reading] = {}
        self._lock = Lock()

    def run(self, key: K, trace_ids: Iterable[str], read: Callable[[Reading], V]) -> V:
        """Returns what `read` returns, which advances the reading that it is given.

        Raises:
            ReadingStopped: All clients that waited for it have gone.
        """
        is_gone = is_client_gone.get()
        ids = frozenset(trace_ids)
        try:
            with self._shared_reading(key, ids, is_gone) as reading:
                return read(reading)
        except ReadingStopped:
            if is_gone is None or is_gone():
                raise
        return self.run(key, ids, read)  # this client came just when the others had gone

    def progress_of(self, trace_id: str) -> dict[str, Any] | None:
        """Returns how far the reading of a trace, or of its job, is; None if neither is read."""
        with self._lock:
            found = [one for one in self._readings.values() if trace_id in one.trace_ids]
        return found[-1].to_dict() if found else None

    @contextmanager
    def _shared_reading(
        self, key: K, trace_ids: frozenset[str], is_gone: Callable[[], bool] | None
    ) -> Iterator[Reading]:
        """Yields the reading that all who wait for the same share, this request among them."""
        with self._lock:
            reading = self._readings.setdefault(key, Reading(trace_ids))
            reading.waiting.append(is_gone)
        try:
            yield reading
        finally:
            with self._lock:
                reading.waiting.remove(is_gone)
                if not reading.waiting:
                    self._readings.pop(key, None)


class TraceReadings:
    """Opens traces by id, each once for all requests, and keeps them in memory."""

    def __init__(self, sources: TraceSources) -> None:
        self._sources = sources
        self._traces: SharedCache[TraceKey, Trace] = SharedCache(
            _MAX_TRACE_CACHE_BYTES, _trace_memory_bytes
        )
        self.shared: SharedReadings[TraceKey] = SharedReadings()

    def open(self, key: TraceKey) -> Trace:
        """Returns a trace from the cache; if it is not there, reads the trace's file.

        Raises:
            ReadingStopped: All clients that waited for it have gone.
        """

        def read(reading: Reading) -> Trace:
            return self._traces.get(key, lambda: self._read(key, reading))

        return self.shared.run(key, [key[0]], read)

    def _read(self, key: TraceKey, reading: Reading) -> Trace:
        reading.done_bytes = 0
        return self._sources.open(key[0], progress=reading.advance)


def _trace_memory_bytes(trace: Trace) -> int:
    """Returns the estimated size of a trace in memory, in bytes."""
    return sum(int(table.estimated_size()) for table in trace.tables().values())
