"""Opens traces for requests: tells how far reading one is, and stops it when nobody waits for it.

A request waits until its trace is read. A browser that leaves the page, or whose reader presses
Cancel, ends its requests' connections; the server tells that by the function in `is_client_gone`.
Other servers than Waitress do not tell it: there a trace is read to its end.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TypeAlias

from selftime.errors import ReadingStopped
from selftime.trace import Trace
from selftime.web.caches import SharedCache
from selftime.web.sources import TraceSources

_MAX_TRACE_CACHE_BYTES: Final = 2 << 30
"""Largest size of the cache of open traces, in bytes."""
_STOPPED_SENTENCE: Final = "reading was stopped before its end; open the trace again to go on"
_READING_STAGE: Final = "Reading the file"
_LINKING_STAGE: Final = "Linking what belongs together"

TraceKey: TypeAlias = tuple[str, str]
"""Key of a trace in caches: (id of the trace, fingerprint that changes with its content)."""

is_client_gone: ContextVar[Callable[[], bool] | None] = ContextVar("is_client_gone", default=None)
"""Tells whether the client of the current request has gone; None where that is not known."""


@dataclass(slots=True)
class _Reading:
    """A trace that is being read: how far that is, and who waits for it."""

    done_bytes: int = 0
    total_bytes: int | None = None
    waiting: list[Callable[[], bool] | None] = field(default_factory=list)
    """`is_client_gone` of each request that waits; None of what this process does by itself."""

    def advance(self, done: int, total: int | None) -> None:
        """Notes how many bytes have been read.

        Raises:
            ReadingStopped: All clients that waited have gone.
        """
        self.done_bytes, self.total_bytes = max(self.done_bytes, done), total
        clients = [is_gone for is_gone in self.waiting if is_gone is not None]
        if clients and all(is_gone() for is_gone in clients):
            raise ReadingStopped(_STOPPED_SENTENCE)

    def to_dict(self) -> dict[str, Any]:
        """Returns the progress as the JSON object `Progress` of the page's interface."""
        is_read = self.total_bytes is not None and self.done_bytes >= self.total_bytes
        return {
            "stage": _LINKING_STAGE if is_read else _READING_STAGE,
            "done": self.done_bytes,
            "total": self.total_bytes,
        }


class TraceReadings:
    """Opens traces by id, each once for all requests, and keeps them in memory."""

    def __init__(self, sources: TraceSources) -> None:
        self._sources = sources
        self._traces: SharedCache[TraceKey, Trace] = SharedCache(
            _MAX_TRACE_CACHE_BYTES, _trace_memory_bytes
        )
        self._readings: dict[TraceKey, _Reading] = {}
        self._lock = Lock()

    def open(self, key: TraceKey) -> Trace:
        """Returns a trace from the cache; if it is not there, reads the trace's file.

        Raises:
            ReadingStopped: All clients that waited for it have gone.
        """
        is_gone = is_client_gone.get()
        try:
            with self._shared_reading(key, is_gone) as reading:
                return self._traces.get(key, lambda: self._read(key, reading))
        except ReadingStopped:
            if is_gone is None or is_gone():
                raise
        return self.open(key)  # this client came just when the others had gone

    def _read(self, key: TraceKey, reading: _Reading) -> Trace:
        reading.done_bytes = 0
        return self._sources.open(key[0], progress=reading.advance)

    def progress_of(self, trace_id: str) -> dict[str, Any] | None:
        """Returns how far the reading of a trace is; None if it is not being read."""
        with self._lock:
            found = [reading for key, reading in self._readings.items() if key[0] == trace_id]
        return found[-1].to_dict() if found else None

    @contextmanager
    def _shared_reading(
        self, key: TraceKey, is_gone: Callable[[], bool] | None
    ) -> Iterator[_Reading]:
        """Yields the reading that all who wait for the trace share, this request among them."""
        with self._lock:
            reading = self._readings.setdefault(key, _Reading())
            reading.waiting.append(is_gone)
        try:
            yield reading
        finally:
            with self._lock:
                reading.waiting.remove(is_gone)
                if not reading.waiting:
                    self._readings.pop(key, None)


def _trace_memory_bytes(trace: Trace) -> int:
    """Returns the estimated size of a trace in memory, in bytes."""
    return sum(int(table.estimated_size()) for table in trace.tables().values())
