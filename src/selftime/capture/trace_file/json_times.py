"""Replaces the times of events in the JSON that torch's profiler writes, by a mapping of times."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from selftime.array_types import Ints
from selftime.capture.trace_file.event_columns import HOST
from selftime.capture.trace_file.time_mapping import TimeMapping, Track

_EVENT_TIMES: Final = re.compile(
    rb'\n    "pid": ([^\n]*),\n    "tid": ([^\n]*),\n'
    rb'    "ts": (\d+)\.(\d{3})(?:,\n    "dur": (\d+)\.(\d{3}))?'
)
"""The times of an event with its process and thread. No name can look so: the profiler drops line
feeds."""
_EVENT_END: Final = b"\n  }"
"""Text at the end of each event, after which the text may be split."""
_GARBAGE_COLLECTION: Final = re.compile(
    rb'\n  \{\n    "ph": "X",\n    "cat": "python_function",\n    "name": "Python GC",.*?\n  \},',
    re.DOTALL,
)
_BASE_TIME: Final = re.compile(rb'"baseTimeNanoseconds": (\d+)')
_EVENTS_BEGIN: Final = b'"traceEvents": ['


class _Times(NamedTuple):
    """Where an event's times are in a text, and what they are."""

    begin: int
    """Offset of the first digit of its start."""
    end: int
    """Offset after its last digit."""
    track: Track | None
    """The event's thread or stream; None if its numbers are no numbers."""
    start_ns: int
    duration_ns: int | None


def replace_times(chunks: Iterable[bytes], mapping: TimeMapping) -> Iterator[bytes]:
    """Yields the JSON text with mapped times, in chunks of about the sizes of the given ones.

    Garbage collections of the detailed recording are replaced by those of the other one.
    """
    writer = _TimeReplacer(mapping)
    text = b""
    for chunk in chunks:
        text += chunk
        split_at = text.rfind(_EVENT_END)
        if split_at > 0:
            yield writer.replace(text[:split_at])
            text = text[split_at:]
    yield writer.replace(text)


class _TimeReplacer:
    """Replaces the times in one JSON text from its begin to its end."""

    def __init__(self, mapping: TimeMapping) -> None:
        self._mapping = mapping
        self._process = os.getpid()
        self._base_ns = 0
        self._has_begun = False

    def replace(self, text: bytes) -> bytes:
        """Returns a text of complete events with mapped times."""
        if base := _BASE_TIME.search(text):
            self._base_ns = int(base[1])
        if any(pair[0].start_ns.size for pair in self._mapping.collections.values()):
            text = _GARBAGE_COLLECTION.sub(b"", text)
        found = [self._times(match) for match in _EVENT_TIMES.finditer(text)]
        by_track: dict[Track | None, list[int]] = {}
        for row, times in enumerate(found):
            by_track.setdefault(times.track, []).append(row)
        starts = np.array([times.start_ns for times in found], np.int64)
        ends = starts + np.array([times.duration_ns or 0 for times in found], np.int64)
        for track, rows in by_track.items():
            starts[rows], ends[rows] = self._map(track, starts[rows]), self._map(track, ends[rows])
        parts, done = [], 0
        for times, start, end in zip(found, starts.tolist(), ends.tolist(), strict=True):
            parts.append(text[done : times.begin])
            parts.append(_microseconds(start - self._base_ns))
            if times.duration_ns is not None:
                parts.append(b',\n    "dur": %b' % _microseconds(max(end - start, 0)))
            done = times.end
        parts.append(text[done:])
        return self._with_collections(b"".join(parts))

    def _map(self, track: Track | None, instants: Ints) -> Ints:
        return self._mapping.map(track, instants)

    def _times(self, match: re.Match[bytes]) -> _Times:
        process, thread, whole, part, duration, duration_part = match.groups()
        start = int(whole) * 1000 + int(part) + self._base_ns
        took = None if duration is None else int(duration) * 1000 + int(duration_part)
        track = None
        if process.isdigit() and thread.isdigit():
            number = int(process)
            track = Track(HOST if number == self._process else number, int(thread))
        return _Times(match.start(3), match.end(), track, start, took)

    def _with_collections(self, text: bytes) -> bytes:
        """Adds the garbage collections of the other recording before the first event."""
        if self._has_begun or _EVENTS_BEGIN not in text:
            return text
        self._has_begun = True
        added = b"".join(
            self._collection(thread, start, end)
            for thread, (_, timed) in self._mapping.collections.items()
            for start, end in zip(timed.start_ns.tolist(), timed.end_ns.tolist(), strict=True)
        )
        return text.replace(_EVENTS_BEGIN, _EVENTS_BEGIN + added, 1)

    def _collection(self, thread: int, start_ns: int, end_ns: int) -> bytes:
        return (
            b'\n  {\n    "ph": "X",\n    "cat": "python_function",\n    "name": "Python GC",\n'
            b'    "pid": %d,\n    "tid": %d,\n    "ts": %b,\n    "dur": %b\n  },'
            % (
                self._process,
                thread,
                _microseconds(start_ns - self._base_ns),
                _microseconds(end_ns - start_ns),
            )
        )


def _microseconds(nanoseconds: int) -> bytes:
    return b"%d.%03d" % divmod(nanoseconds, 1000)
