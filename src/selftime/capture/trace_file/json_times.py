"""Replaces the times of events in the JSON that torch's profiler writes, by a mapping of times."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from selftime.array_types import Ints
from selftime.capture.trace_file.event_columns import HOST
from selftime.capture.trace_file.time_mapping import TimeMapping, Track

_EVENT_TIMES: Final = re.compile(
    rb'("pid": [^\n,]*,\s+"tid": [^\n,]*,\s+"ts": )(\d+)\.(\d{3})'
    rb'(?:,\s+"dur": (\d+)\.(\d{3}))?'
)
"""An event's process and thread, and its start and duration in us, in one line or in several, as
releases differ."""
_PARTS_OF_EVENT: Final = _EVENT_TIMES.groups + 1
"""Number of texts that each event adds to a text split there: the groups and what follows."""
_PROCESS_AND_THREAD: Final = re.compile(rb'"pid": (\d+),\s+"tid": (\d+),')
_EVENT_END: Final = b"\n  },"
"""Text at the end of each event but the last, after which the text may be split."""
_GARBAGE_COLLECTION: Final = re.compile(
    rb'\n  \{\n    "ph": "X",\n    "cat": "python_function",\n    "name": "Python GC",.*?\n  \},',
    re.DOTALL,
)
_BASE_TIME: Final = re.compile(rb'"baseTimeNanoseconds": (\d+)')
_EVENTS_BEGIN: Final = b'"traceEvents": ['


def replace_times(chunks: Iterable[bytes], mapping: TimeMapping) -> Iterator[bytes]:
    """Yields the JSON text with mapped times, in chunks of about the sizes of the given ones.

    Garbage collections of the detailed recording are replaced by those of the other one.
    """
    writer = _TimeReplacer(mapping)
    text = b""
    for chunk in chunks:
        text += chunk
        split_at = text.rfind(_EVENT_END) + len(_EVENT_END)
        if split_at >= len(_EVENT_END):
            yield writer.replace(text[:split_at])
            text = text[split_at:]
    yield writer.replace(text)


class _TimeReplacer:
    """Replaces the times in one JSON text from its begin to its end."""

    def __init__(self, mapping: TimeMapping) -> None:
        self._mapping = mapping
        self._process = os.getpid()
        self._tracks: dict[bytes, Track] = {}
        self._base_ns = 0
        self._has_begun = False

    def replace(self, text: bytes) -> bytes:
        """Returns a text of complete events with mapped times."""
        if base := _BASE_TIME.search(text):
            self._base_ns = int(base[1])
        if any(pair[0].start_ns.size for pair in self._mapping.collections.values()):
            text = _GARBAGE_COLLECTION.sub(b"", text)
        parts: list[Any] = _EVENT_TIMES.split(text)
        heads, durations = parts[1::_PARTS_OF_EVENT], parts[4::_PARTS_OF_EVENT]
        starts = self._base_ns + _nanoseconds(parts[2::_PARTS_OF_EVENT], parts[3::_PARTS_OF_EVENT])
        lasts = np.array([duration is not None for duration in durations], np.bool_)
        ends = starts + _nanoseconds(durations, parts[5::_PARTS_OF_EVENT])
        for head in set(heads):
            rows = np.array([one == head for one in heads], np.bool_)
            track = self._track(head)
            starts[rows] = self._mapping.map(track, starts[rows])
            ends[rows] = self._mapping.map(track, ends[rows])
        parts[2::_PARTS_OF_EVENT] = _microseconds(starts - self._base_ns)
        parts[3::_PARTS_OF_EVENT] = [
            b',\n    "dur": ' if is_lasting else b"" for is_lasting in lasts.tolist()
        ]
        took = _microseconds(np.maximum(ends - starts, 0))
        parts[4::_PARTS_OF_EVENT] = [
            one if is_lasting else b"" for one, is_lasting in zip(took, lasts.tolist(), strict=True)
        ]
        parts[5::_PARTS_OF_EVENT] = [b""] * len(heads)
        return self._with_collections(b"".join(parts))

    def _track(self, head: bytes) -> Track | None:
        """Returns the thread or stream of an event; None if its numbers are no numbers."""
        track = self._tracks.get(head)
        if track is None and (found := _PROCESS_AND_THREAD.search(head)):
            process = int(found[1])
            track = Track(HOST if process == self._process else process, int(found[2]))
            self._tracks[head] = track
        return track

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
        instants = np.array([start_ns - self._base_ns, end_ns - start_ns], np.int64)
        start, duration = _microseconds(instants)
        return (
            b'\n  {\n    "ph": "X",\n    "cat": "python_function",\n    "name": "Python GC",\n'
            b'    "pid": %d,\n    "tid": %d,\n    "ts": %b,\n    "dur": %b\n  },'
            % (self._process, thread, start, duration)
        )


def _nanoseconds(whole: list[bytes | None], thousandths: list[bytes | None]) -> Ints:
    """Returns times in ns from the digits before and after the point of times in us; None is 0."""
    pairs = zip(whole, thousandths, strict=True)
    return np.array([0 if one is None else int(one + two) for one, two in pairs], np.int64)  # type: ignore[operator]  # None in both


def _microseconds(nanoseconds: Ints) -> list[bytes]:
    """Returns times in ns as digits of times in us."""
    return [b"%d.%03d" % divmod(value, 1000) for value in nanoseconds.tolist()]
