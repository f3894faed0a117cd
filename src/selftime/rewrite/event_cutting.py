"""Copies a trace file's text, with only the events of a selected part of the trace.

Events are written unchanged, except for times, which count from the begin of the day (see
`event_times`), events that were clipped, and those that cross others of their thread: these move to
extra threads, named `stream 7 (2)`, and the key `selftime_tracks` records their original thread, so
that reading moves them back.
"""

from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.array_types import Ints
from selftime.ingest.links.slice_ordering import original_thread_by_added_thread
from selftime.ingest.text.event_positions import (
    IdentifyingEventFields,
    TraceWithEventPositions,
    identifying_fields_of_events,
)
from selftime.ingest.text.trace_text_stream import TraceTextReceiver, split_into_events
from selftime.rewrite.added_threads import AddedThreads, number_if_integer
from selftime.rewrite.event_times import (
    ADDED_BASE_TIME_JSON,
    ADDED_BASE_TIME_KEY,
    BASE_TIME_KEY,
    TraceFileClock,
    base_time_of_written_file,
    event_with_values,
    is_shown_short,
    microseconds_json,
)
from selftime.rewrite.trace_part import TracePart

FLOW_EVENT_PHASES: Final = "stf"
"""Values of an event's `ph` for points of a flow arrow: `s` start, `t` step, `f` end."""

_EVENT_SEPARATOR: Final = b",\n  "
_SELFTIME_FACTS_KEY: Final = "selftime"
_ADDED_THREADS_KEY: Final = "selftime_tracks"


class FlowArrowBuffer:
    """Holds back the events of each flow arrow until both its start and its end were read."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, bytes], list[bytes]] = {}
        self._seen: dict[tuple[str, bytes], set[str]] = {}

    def add_point(
        self, category_and_id: tuple[str, bytes], phase: str, event_text: bytes
    ) -> Iterator[bytes]:
        """Adds one event of a flow arrow; yields all its events once start and end are known."""
        seen = self._seen.setdefault(category_and_id, set())
        seen.add(phase)
        waiting = self._waiting.setdefault(category_and_id, [])
        waiting.append(event_text)
        if {"s", "f"} <= seen:
            yield from waiting
            waiting.clear()


class EventCutter:
    """Reads a trace's top-level keys and events; writes those in the selected part of the trace."""

    def __init__(
        self, target: TraceTextReceiver, trace_positions: TraceWithEventPositions, part: TracePart
    ) -> None:
        self.target, self.trace_positions, self.part = target, trace_positions, part
        self.count = 0
        """Number of events that were written."""
        self._threads = AddedThreads(
            trace_positions.trace, part.kept, part.start, part.end, for_json=True
        )
        self._arrows = FlowArrowBuffer()
        self._begun: dict[tuple[str, str], list[bool]] = {}
        trace = trace_positions.trace
        self._clock = TraceFileClock(trace_positions.time_origin_ns, trace.origin)
        self._base_time_json: bytes | None = None
        self._mask = 0
        self._starts = _starts_of_kept_slices(part)
        self._thread_of_moved_arrow = self._threads.added_thread_by_start(part.kept, part.start)
        self._ids = _external_ids_of_kept_operators(trace_positions, part)
        self._original_threads = original_thread_by_added_thread(trace_positions.trace.metadata)

    @property
    def moved_event_count(self) -> int:
        """Number of written events that are now on a thread added to the trace."""
        return int((self._threads.lane > 0).sum())

    def receive_key(self, name: str, value: bytes) -> None:
        """Writes a top-level JSON key; of selftime's own data, only rows about kept operators."""
        if (
            name == _ADDED_THREADS_KEY and self._original_threads
        ):  # replaced by the threads added now
            return
        if name == BASE_TIME_KEY:
            self._base_time_json = value
            return
        if name == _SELFTIME_FACTS_KEY:
            value = _keep_facts_of_operators(value, self._ids)
        self.target.receive_key(name, value)

    def receive_events(self, events_text: bytes, _count: int) -> None:
        """Writes those of the given JSON events that are in the selected part of the trace."""
        texts, fields = split_into_events(events_text), identifying_fields_of_events(events_text)
        away = self._move_back_to_original_threads(texts, fields)
        at = np.flatnonzero(fields.is_complete)
        slices = self.trace_positions.slice_of_event[self._mask : self._mask + at.size]
        self._mask += at.size
        part = self.part
        times = self._clock.event_times(fields, at, part.written[slices], part.is_timed[slices])
        wanted = np.zeros(times.size, bool)
        wanted[at] = part.kept[slices]
        kept = wanted[at]
        for where, number in zip(at[kept].tolist(), slices[kept].tolist(), strict=True):
            values = self._changed_values_of_event(number, fields, where)
            if values:
                texts[where] = msgspec.Raw(event_with_values(bytes(texts[where]), values))
        for where in np.flatnonzero(~fields.is_complete).tolist():
            is_label = away[where] and fields.phase[where] == "M"
            wanted[where] = not is_label and self._is_non_slice_event_kept(
                fields, where, int(times[where]), texts[where]
            )
            values = self._changed_values_of_other_event(fields, where, int(times[where]))
            if wanted[where] and values:
                texts[where] = msgspec.Raw(event_with_values(bytes(texts[where]), values))
        arrows = [
            where
            for where in np.flatnonzero(wanted).tolist()
            if fields.phase[where] in FLOW_EVENT_PHASES
        ]
        written = [
            bytes(column_values)
            for column_values in compress(texts, wanted & ~_mask_of_indices(arrows, wanted.size))
        ]
        for where in arrows:
            point = fields.category_and_id[where], fields.phase[where], bytes(texts[where])
            written += self._arrows.add_point(*point)
        self._write_event_texts(written)

    def _move_back_to_original_threads(
        self, texts: list[msgspec.Raw], fields: IdentifyingEventFields
    ) -> NDArray[np.bool_]:
        """Moves events on added threads back to the original threads; returns which were moved.

        Otherwise a thread added now could get the number of one added earlier.
        """
        away = np.zeros(len(texts), bool)
        if self._original_threads:
            away = np.array([thread in self._original_threads for thread in fields.thread], bool)
        for where in np.flatnonzero(away).tolist():
            _, own = self._original_threads[fields.thread[where]]
            texts[where] = msgspec.Raw(
                event_with_values(bytes(texts[where]), {"tid": number_if_integer(own)})
            )
        return away

    def _write_event_texts(self, texts: list[bytes]) -> None:
        if texts:
            self.count += len(texts)
            self.target.receive_events(_EVENT_SEPARATOR.join(texts), len(texts))

    def write_end(self) -> None:
        """Writes what is known at the end: the added threads, and from when the times count."""
        origin = self.trace_positions.trace.origin
        if origin is not None and self._clock.writes_base_time:
            if self._base_time_json is None:
                self.target.receive_key(ADDED_BASE_TIME_KEY, ADDED_BASE_TIME_JSON)
            self.target.receive_key(BASE_TIME_KEY, b"%d" % base_time_of_written_file(origin))
        elif self._base_time_json is not None:
            self.target.receive_key(BASE_TIME_KEY, self._base_time_json)
        labels = self._threads.thread_label_events()
        if labels:
            self._write_event_texts(labels)
            self.target.receive_key(_ADDED_THREADS_KEY, self._threads.added_tracks_json())

    def _changed_values_of_event(
        self, slice_index: int, fields: IdentifyingEventFields, event_index: int
    ) -> dict[str, Any]:
        """Returns the fields to replace in an event: time, duration and thread id, as needed."""
        values: dict[str, Any] = {}
        moved = self._clock.rebased_time(fields, event_index)
        if moved is not None:
            values["ts"] = moved
            length = int(self.part.end[slice_index]) - int(self.part.start[slice_index])
            if self.part.is_timed[slice_index] and is_shown_short(length):
                values["dur"] = microseconds_json(length)
        if self.part.clipped[slice_index]:
            start, end = int(self.part.start[slice_index]), int(self.part.end[slice_index])
            values["ts"] = self._clock.time_json(
                fields, event_index, start - int(self.part.written[slice_index])
            )
            is_integer = bool(fields.is_written_in_ns[event_index])
            values["dur"] = self._clock.duration_json(end - start, is_integer=is_integer)
        if self._threads.lane[slice_index]:
            values["tid"] = self._threads.added_thread_number(slice_index)
        return values

    def _changed_values_of_other_event(
        self, fields: IdentifyingEventFields, event_index: int, time_ns: int
    ) -> dict[str, Any]:
        """Returns the fields to replace in an event that is no slice: its time, an arrow's thread.

        An arrow goes with the slice at which it begins or ends.
        """
        if fields.phase[event_index] == "M":
            return {}
        time = self._clock.rebased_time(fields, event_index)
        values: dict[str, Any] = {} if time is None else {"ts": time}
        if fields.phase[event_index] in FLOW_EVENT_PHASES:
            thread = self._thread_of_moved_arrow.get((fields.thread[event_index], time_ns))
            values |= {} if thread is None else {"tid": thread}
        return values

    def _is_non_slice_event_kept(
        self,
        fields: IdentifyingEventFields,
        event_index: int,
        time_ns: int,
        event_text: msgspec.Raw,
    ) -> bool:
        """Returns whether to keep an event other than a slice: metadata, an instant or a flow."""
        phase = fields.phase[event_index]
        if phase == "M":
            self._threads.note_thread_label(
                fields.thread[event_index], fields.name[event_index], bytes(event_text)
            )
            return True
        inside = self.part.begin <= time_ns < self.part.done
        if phase in FLOW_EVENT_PHASES:
            found = np.searchsorted(self._starts, time_ns)
            return bool(found < self._starts.size and self._starts[found] == time_ns)
        if phase == "B":
            self._begun.setdefault(fields.thread[event_index], []).append(inside)
        elif phase == "E":
            begun = self._begun.get(fields.thread[event_index], [])
            return begun.pop() if begun else False
        return inside


def _mask_of_indices(indices: list[int], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, bool)
    found[indices] = True
    return found


def _starts_of_kept_slices(part: TracePart) -> Ints:
    """Returns the sorted distinct start times of the kept slices, in ns."""
    return np.unique(part.start[part.kept])


def _external_ids_of_kept_operators(
    trace_positions: TraceWithEventPositions, part: TracePart
) -> frozenset[int]:
    """Returns Kineto's `External id` of each operator in the selected part of the trace."""
    ops = trace_positions.trace.op_args
    kept = pl.Series(part.kept[ops["id"].to_numpy()])
    return frozenset(ops.filter(kept)["external_id"].drop_nulls().to_list())


def _keep_facts_of_operators(facts_json: bytes, external_ids: frozenset[int]) -> bytes:
    """Returns selftime's JSON data of a trace, with only rows about the given operators."""
    document = msgspec.json.decode(facts_json)
    if not isinstance(document, dict):
        return facts_json
    ops, lines = document.get("ops"), document.get("lines")
    if isinstance(lines, dict):
        document["lines"] = _keep_rows_with_ids(
            lines, external_ids, ("file", "line", "function", "how")
        )
    if isinstance(ops, dict):
        ops = _keep_rows_with_ids(ops, external_ids, ("overload",))
        if isinstance(ops.get("flops"), dict):
            ops["flops"] = _keep_rows_with_ids(ops["flops"], external_ids, ("value",))
        if isinstance(ops.get("async"), list):
            ops["async"] = [number for number in ops["async"] if number in external_ids]
        document["ops"] = ops
    return msgspec.json.encode(document)


def _keep_rows_with_ids(
    table: Mapping[str, Any], ids: frozenset[int], columns: tuple[str, ...]
) -> dict[str, Any]:
    """Returns a JSON table with only the rows that have an id in `ids`; malformed ones as is."""
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
