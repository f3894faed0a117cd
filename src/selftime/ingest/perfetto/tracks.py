"""Whose a track is: processes, threads and streams are tracks, and so are lanes beside them.

A track below that of a process is a thread's, whether it says so or not; what lies below it belongs
to the same thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from selftime.ingest.perfetto.messages import Value, fields, first, texts_of

_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_PROCESS_NAME, _THREAD_ID, _THREAD_NAME = 6, 2, 5


@dataclass(frozen=True, slots=True)
class Track:
    """One track as its description tells it."""

    name: str = ""
    parent: int = 0
    pid: int | None = None
    tid: int | None = None
    is_process: bool = False
    is_counter: bool = False


@dataclass(slots=True)
class Tracks:
    """The tracks of a file by their numbers."""

    of: dict[int, Track] = field(default_factory=dict)

    def add(self, told: bytes) -> None:
        """Take a description; a later one of the same track holds."""
        values: dict[int, Value] = dict(fields(told))
        process, thread, name = (values.get(number) for number in (_PROCESS, _THREAD, _NAME))
        named = name.decode("utf-8", "replace") if isinstance(name, bytes) else ""
        pid = tid = None
        if isinstance(process, bytes):
            pid = _number(first(process, 1))
            named = named or texts_of(process).get(_PROCESS_NAME, "")
        if isinstance(thread, bytes):
            pid, tid = _number(first(thread, 1)), _number(first(thread, _THREAD_ID))
            named = named or texts_of(thread).get(_THREAD_NAME, "")
        uuid, parent = _number(values.get(_UUID)), _number(values.get(_PARENT))
        counts = _COUNTER in values
        self.of[uuid or 0] = Track(named, parent or 0, pid, tid, process is not None, counts)

    def place(self, number: int) -> tuple[Any, Any]:
        """The process and the thread of a track, as an event names them."""
        chain = list(self._upwards(number))
        if not chain:
            return "?", number
        for _, one in chain:
            if one.tid is not None:
                return one.pid, one.tid
        root = chain[-1][1]
        below = chain[-2] if len(chain) > 1 else chain[-1]
        process = root.pid if root.pid is not None else root.name or str(chain[-1][0])
        if len(chain) == 1 and root.is_process:
            return process, 0
        return process, below[1].name or str(below[0])

    def _upwards(self, number: int) -> Iterator[tuple[int, Track]]:
        """A track and what it lies below, up to the outermost."""
        seen: set[int] = set()
        while number in self.of and number not in seen:
            seen.add(number)
            yield number, self.of[number]
            number = self.of[number].parent

    def name(self, number: int) -> str:
        """What a track is called; empty if nothing tells it."""
        return self.of[number].name if number in self.of else ""

    def labels(self) -> Iterator[dict[str, Any]]:
        """What processes and threads are called, as events of Kineto's; lanes are no threads."""
        for number, one in self.of.items():
            depth = len(list(self._upwards(number)))
            if not one.name or one.is_counter:
                continue
            pid, tid = self.place(number)
            if one.is_process or (depth == 1 and one.tid is None):
                label = {"name": "process_name", "pid": pid}
            elif one.tid is not None or depth == 2:
                label = {"name": "thread_name", "pid": pid, "tid": tid}
            else:
                continue
            yield {"ph": "M", **label, "args": {"name": one.name}}


def _number(value: Value | None) -> int | None:
    return value if isinstance(value, int) else None
