"""Maps the tracks of a Perfetto trace to processes and threads.

Processes, threads and streams are tracks, and so are lanes beside them. A track below a process's
track is a thread's, whether it says so or not; a track below that belongs to the same thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from selftime.ingest.perfetto.protobuf_messages import (
    FieldValue,
    first_field_value,
    message_fields,
    text_fields_by_number,
)

(
    _TRACK_UUID_FIELD,
    _TRACK_NAME_FIELD,
    _TRACK_PROCESS_FIELD,
    _TRACK_THREAD_FIELD,
    _TRACK_PARENT_FIELD,
    _TRACK_COUNTER_FIELD,
) = 1, 2, 3, 4, 5, 8
_PROCESS_NAME_FIELD, _THREAD_ID_FIELD, _THREAD_NAME_FIELD = 6, 2, 5


@dataclass(frozen=True, slots=True)
class PerfettoTrack:
    """A Perfetto track: its name, parent, process and thread, from its track descriptor."""

    name: str = ""
    parent: int = 0
    pid: int | None = None
    tid: int | None = None
    is_process: bool = False
    is_counter: bool = False


@dataclass(slots=True)
class PerfettoTracks:
    """The tracks of a Perfetto file, each found by its uuid."""

    by_uuid: dict[int, PerfettoTrack] = field(default_factory=dict)

    def add_descriptor(self, descriptor: bytes) -> None:
        """Adds the track that a descriptor describes; a later descriptor of a track replaces it."""
        values: dict[int, FieldValue] = dict(message_fields(descriptor))
        process, thread, name = (
            values.get(number)
            for number in (_TRACK_PROCESS_FIELD, _TRACK_THREAD_FIELD, _TRACK_NAME_FIELD)
        )
        named = name.decode("utf-8", "replace") if isinstance(name, bytes) else ""
        pid = tid = None
        if isinstance(process, bytes):
            pid = _int_or_none(first_field_value(process, 1))
            named = named or text_fields_by_number(process).get(_PROCESS_NAME_FIELD, "")
        if isinstance(thread, bytes):
            pid, tid = (
                _int_or_none(first_field_value(thread, 1)),
                _int_or_none(first_field_value(thread, _THREAD_ID_FIELD)),
            )
            named = named or text_fields_by_number(thread).get(_THREAD_NAME_FIELD, "")
        uuid, parent = (
            _int_or_none(values.get(_TRACK_UUID_FIELD)),
            _int_or_none(values.get(_TRACK_PARENT_FIELD)),
        )
        counts = _TRACK_COUNTER_FIELD in values
        self.by_uuid[uuid or 0] = PerfettoTrack(
            named, parent or 0, pid, tid, process is not None, counts
        )

    def process_and_thread(self, uuid: int) -> tuple[Any, Any]:
        """Returns a track's process and thread as ids or names, for JSON's `pid` and `tid`."""
        chain = list(self._track_and_ancestors(uuid))
        if not chain:
            return "?", uuid
        for _, track in chain:
            if track.tid is not None:
                return track.pid, track.tid
        root = chain[-1][1]
        below = chain[-2] if len(chain) > 1 else chain[-1]
        process = root.pid if root.pid is not None else root.name or str(chain[-1][0])
        if len(chain) == 1 and root.is_process:
            return process, 0
        return process, below[1].name or str(below[0])

    def _track_and_ancestors(self, uuid: int) -> Iterator[tuple[int, PerfettoTrack]]:
        """Yields (uuid, track) of a track and of each ancestor, up to the outermost."""
        seen: set[int] = set()
        while uuid in self.by_uuid and uuid not in seen:
            seen.add(uuid)
            yield uuid, self.by_uuid[uuid]
            uuid = self.by_uuid[uuid].parent

    def track_name(self, uuid: int) -> str:
        """Returns the name of a track; empty if it has none."""
        return self.by_uuid[uuid].name if uuid in self.by_uuid else ""

    def label_events(self) -> Iterator[dict[str, Any]]:
        """Yields Kineto's metadata events that name processes and threads."""
        for number, track in self.by_uuid.items():
            depth = len(list(self._track_and_ancestors(number)))
            if not track.name or track.is_counter:
                continue
            pid, tid = self.process_and_thread(number)
            if track.is_process or (depth == 1 and track.tid is None):
                label = {"name": "process_name", "pid": pid}
            elif track.tid is not None or depth == 2:
                label = {"name": "thread_name", "pid": pid, "tid": tid}
            else:
                continue
            yield {"ph": "M", **label, "args": {"name": track.name}}


def _int_or_none(value: FieldValue | None) -> int | None:
    return value if isinstance(value, int) else None
