"""Rewrite a file's text with only the events of a part, so that every viewer shows them in full.

Events are written unchanged, except for those that were clipped, and those that cross others of
their thread: these move to extra threads, named `stream 7 (2)`, and the key `selftime_tracks`
records their original thread, so that reading moves them back.
"""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.arrays import Ints
from selftime.ingest.links.ordering import home_threads
from selftime.ingest.text.parts import TextReceiver, split_events
from selftime.ingest.text.trace_in_file import EventFields, TraceInFile, event_fields
from selftime.rewrite.event_times import FileClock, with_values
from selftime.rewrite.part import Part
from selftime.rewrite.threads import AddedThreads, as_number

FLOW_PHASES: Final = "stf"
"""Phases of a flow arrow's points: start, intermediate step, end."""

_SEPARATOR: Final = b",\n  "
_FACTS: Final = "selftime"
_TRACKS: Final = "selftime_tracks"


class FlowBuffer:
    """Buffers the points of a flow arrow until it has a start and an end."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, bytes], list[bytes]] = {}
        self._seen: dict[tuple[str, bytes], set[str]] = {}

    def add(self, group: tuple[str, bytes], phase: str, text: bytes) -> Iterator[bytes]:
        """Add a point; yields the points that can be written now."""
        seen = self._seen.setdefault(group, set())
        seen.add(phase)
        waiting = self._waiting.setdefault(group, [])
        waiting.append(text)
        if {"s", "f"} <= seen:
            yield from waiting
            waiting.clear()


class EventCutter:
    """Receives a file's parts and passes on the events that belong to a part of the trace."""

    def __init__(self, target: TextReceiver, placed: TraceInFile, part: Part) -> None:
        self.target, self.placed, self.part = target, placed, part
        self.count = 0
        """The number of events passed on."""
        self._threads = AddedThreads(placed.trace, part.kept, part.start, part.end)
        self._arrows = FlowBuffer()
        self._begun: dict[tuple[str, str], list[bool]] = {}
        self._clock = FileClock(placed.zero)
        self._mask = 0
        self._starts = _starts(part)
        self._ids = _external_ids(placed, part)
        self._homes = home_threads(placed.trace.metadata)

    @property
    def moved(self) -> int:
        """The number of events that were moved to extra threads."""
        return int((self._threads.lane > 0).sum())

    def key(self, name: str, value: bytes) -> None:
        """Pass on a top-level key; selftime's facts are limited to the kept operators."""
        if name == _TRACKS and self._homes:  # replaced by the threads added now
            return
        if name == _FACTS:
            value = _with_operators(value, self._ids)
        self.target.key(name, value)

    def events(self, text: bytes, _count: int) -> None:
        """Pass on the events that belong to the part."""
        texts, fields = split_events(text), event_fields(text)
        away = self._moved_back(texts, fields)
        at = np.flatnonzero(fields.is_complete)
        slices = self.placed.slice_of[self._mask : self._mask + at.size]
        self._mask += at.size
        part = self.part
        times = self._clock.instants(fields, at, part.written[slices], part.is_timed[slices])
        wanted = np.zeros(times.size, bool)
        wanted[at] = part.kept[slices]
        changed = (part.clipped[slices] | (self._threads.lane[slices] > 0)) & wanted[at]
        for where, number in zip(at[changed].tolist(), slices[changed].tolist(), strict=True):
            values = self._values(number, fields, where)
            texts[where] = msgspec.Raw(with_values(bytes(texts[where]), values))
        for where in np.flatnonzero(~fields.is_complete).tolist():
            is_label = away[where] and fields.phase[where] == "M"
            kept = not is_label and self._keeps(fields, where, int(times[where]), texts[where])
            wanted[where] = kept
        arrows = [
            where for where in np.flatnonzero(wanted).tolist() if fields.phase[where] in FLOW_PHASES
        ]
        written = [
            bytes(column_values)
            for column_values in compress(texts, wanted & ~_mask(arrows, wanted.size))
        ]
        for where in arrows:
            point = fields.group[where], fields.phase[where], bytes(texts[where])
            written += self._arrows.add(*point)
        self._pass_on(written)

    def _moved_back(self, texts: list[msgspec.Raw], fields: EventFields) -> NDArray[np.bool_]:
        """Move events back from extra threads of an earlier cut; returns which were moved.

        Otherwise a thread added now could get the number of one added earlier.
        """
        away = np.zeros(len(texts), bool)
        if self._homes:
            away = np.array([thread in self._homes for thread in fields.thread], bool)
        for where in np.flatnonzero(away).tolist():
            _, own = self._homes[fields.thread[where]]
            texts[where] = msgspec.Raw(with_values(bytes(texts[where]), {"tid": as_number(own)}))
        return away

    def _pass_on(self, texts: list[bytes]) -> None:
        if texts:
            self.count += len(texts)
            self.target.events(_SEPARATOR.join(texts), len(texts))

    def end(self) -> None:
        """Write what follows the last event: the labels of the extra threads."""
        labels = self._threads.labels()
        if labels:
            self._pass_on(labels)
            self.target.key(_TRACKS, self._threads.tracks_json())

    def _values(self, number: int, fields: EventFields, at: int) -> dict[str, Any]:
        """Returns the values of a slice that differ from its event as written."""
        values: dict[str, Any] = {}
        if self.part.clipped[number]:
            start, end = int(self.part.start[number]), int(self.part.end[number])
            values["ts"] = self._clock.text(fields, at, start - int(self.part.written[number]))
            whole = bool(fields.in_nanoseconds[at])
            values["dur"] = self._clock.length(end - start, whole=whole)
        if self._threads.lane[number]:
            values["tid"] = self._threads.tid(number)
        return values

    def _keeps(self, fields: EventFields, at: int, time: int, text: msgspec.Raw) -> bool:
        """Returns whether to keep an event that is not a slice by itself."""
        phase = fields.phase[at]
        if phase == "M":
            self._threads.note(fields.thread[at], fields.name[at], bytes(text))
            return True
        inside = self.part.begin <= time < self.part.done
        if phase in FLOW_PHASES:
            found = np.searchsorted(self._starts, time)
            return bool(found < self._starts.size and self._starts[found] == time)
        if phase == "B":
            self._begun.setdefault(fields.thread[at], []).append(inside)
        elif phase == "E":
            begun = self._begun.get(fields.thread[at], [])
            return begun.pop() if begun else False
        return inside


def _mask(places: list[int], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, bool)
    found[places] = True
    return found


def _starts(part: Part) -> Ints:
    """Returns the sorted starts of kept slices, where a flow arrow may begin or end."""
    return np.unique(part.start[part.kept])


def _external_ids(placed: TraceInFile, part: Part) -> frozenset[int]:
    """Returns the external ids of the kept operators."""
    ops = placed.trace.op_args
    kept = pl.Series(part.kept[ops["id"].to_numpy()])
    return frozenset(ops.filter(kept)["external_id"].drop_nulls().to_list())


def _with_operators(facts: bytes, ids: frozenset[int]) -> bytes:
    """Returns the facts, with columns on operators limited to the kept ones."""
    document = msgspec.json.decode(facts)
    if not isinstance(document, dict):
        return facts
    ops, lines = document.get("ops"), document.get("lines")
    if isinstance(lines, dict):
        document["lines"] = _rows_of(lines, ids, ("file", "line", "function", "how"))
    if isinstance(ops, dict):
        ops = _rows_of(ops, ids, ("overload",))
        if isinstance(ops.get("flops"), dict):
            ops["flops"] = _rows_of(ops["flops"], ids, ("value",))
        if isinstance(ops.get("async"), list):
            ops["async"] = [number for number in ops["async"] if number in ids]
        document["ops"] = ops
    return msgspec.json.encode(document)


def _rows_of(
    table: Mapping[str, Any], ids: frozenset[int], columns: tuple[str, ...]
) -> dict[str, Any]:
    """Returns a table of columns limited to these ids; unchanged if the columns do not match."""
    document = table.get("id")
    lists = {name: table.get(name) for name in columns}
    if not isinstance(document, list) or any(
        not isinstance(column_values, list) or len(column_values) != len(document)
        for column_values in lists.values()
    ):
        return dict(table)
    rows = [isinstance(number, int) and number in ids for number in document]
    cut = {name: list(compress(column_values or [], rows)) for name, column_values in lists.items()}
    return {**table, "id": list(compress(document, rows)), **cut}
