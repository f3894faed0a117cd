"""Map Perfetto tracks to processes and threads.

Processes, threads and streams are tracks, and so are lanes beside them. A track below a process's
track is a thread's, whether it says so or not; a track below that belongs to the same thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from selftime.ingest.perfetto.messages import Value, fields_of, first_value, texts_of

_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_PROCESS_NAME, _THREAD_ID, _THREAD_NAME = 6, 2, 5


@dataclass(frozen=True, slots=True)
class Track:
    """One track, from its descriptor."""

    name: str = ""
    parent: int = 0
    pid: int | None = None
    tid: int | None = None
    is_process: bool = False
    is_counter: bool = False


@dataclass(slots=True)
class Tracks:
    """The tracks of a file by uuid."""

    of: dict[int, Track] = field(default_factory=dict)

    def add(self, descriptor: bytes) -> None:
        """Read a track descriptor; a later one of the same track replaces the earlier."""
        values: dict[int, Value] = dict(fields_of(descriptor))
        process, thread, name = (values.get(number) for number in (_PROCESS, _THREAD, _NAME))
        named = name.decode("utf-8", "replace") if isinstance(name, bytes) else ""
        pid = tid = None
        if isinstance(process, bytes):
            pid = _number(first_value(process, 1))
            named = named or texts_of(process).get(_PROCESS_NAME, "")
        if isinstance(thread, bytes):
            pid, tid = _number(first_value(thread, 1)), _number(first_value(thread, _THREAD_ID))
            named = named or texts_of(thread).get(_THREAD_NAME, "")
        uuid, parent = _number(values.get(_UUID)), _number(values.get(_PARENT))
        counts = _COUNTER in values
        self.of[uuid or 0] = Track(named, parent or 0, pid, tid, process is not None, counts)

    def place(self, number: int) -> tuple[Any, Any]:
        """Returns the process and the thread of a track, as an event names them."""
        chain = list(self._upwards(number))
        if not chain:
            return "?", number
        for _, track in chain:
            if track.tid is not None:
                return track.pid, track.tid
        root = chain[-1][1]
        below = chain[-2] if len(chain) > 1 else chain[-1]
        process = root.pid if root.pid is not None else root.name or str(chain[-1][0])
        if len(chain) == 1 and root.is_process:
            return process, 0
        return process, below[1].name or str(below[0])

    def _upwards(self, number: int) -> Iterator[tuple[int, Track]]:
        """Yields a track and its ancestors, up to the outermost."""
        seen: set[int] = set()
        while number in self.of and number not in seen:
            seen.add(number)
            yield number, self.of[number]
            number = self.of[number].parent

    def name(self, number: int) -> str:
        """Returns a track's name; empty if it has none."""
        return self.of[number].name if number in self.of else ""

    def labels(self) -> Iterator[dict[str, Any]]:
        """Yields the names of processes and threads as Kineto's metadata events, without lanes."""
        for number, track in self.of.items():
            depth = len(list(self._upwards(number)))
            if not track.name or track.is_counter:
                continue
            pid, tid = self.place(number)
            if track.is_process or (depth == 1 and track.tid is None):
                label = {"name": "process_name", "pid": pid}
            elif track.tid is not None or depth == 2:
                label = {"name": "thread_name", "pid": pid, "tid": tid}
            else:
                continue
            yield {"ph": "M", **label, "args": {"name": track.name}}


def _number(value: Value | None) -> int | None:
    return value if isinstance(value, int) else None
