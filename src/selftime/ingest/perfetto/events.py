"""Converts the events of a Perfetto trace to JSON events as Kineto writes them.

Format: perfetto.protos.Trace with TrackEvents. PyTorch writes the begins of some slices, then their
ends, so the whole file is held in memory and events are sorted by time before ends are matched to
begins. Flow arrows are not read: work is linked to its launch by correlation, as in JSON.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from selftime.errors import UnreadableTrace
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.perfetto.protobuf_messages import (
    FieldValue,
    first_field_value,
    message_fields,
    split_into_packets,
)
from selftime.ingest.perfetto.tracks import PerfettoTracks

TrackEvent: TypeAlias = tuple[int, int, bytes]
"""An event: time in ns, type, and the JSON members of the event or the value of a counter."""

(
    _PACKET_CLOCKS_FIELD,
    _PACKET_TIMESTAMP_FIELD,
    _PACKET_SEQUENCE_FIELD,
    _PACKET_EVENT_FIELD,
    _PACKET_INTERNED_FIELD,
    _PACKET_FLAGS_FIELD,
) = 6, 8, 10, 11, 12, 13
_PACKET_COMPRESSED_FIELD, _PACKET_CLOCK_ID_FIELD, _PACKET_DEFAULTS_FIELD, _PACKET_TRACK_FIELD = (
    50,
    58,
    59,
    60,
)
"""Field numbers of packets."""
(
    _EVENT_CATEGORY_IID_FIELD,
    _EVENT_ARGUMENT_FIELD,
    _EVENT_TYPE_FIELD,
    _EVENT_NAME_IID_FIELD,
    _EVENT_TRACK_UUID_FIELD,
) = 3, 4, 9, 10, 11
_EVENT_CATEGORY_FIELD, _EVENT_NAME_FIELD, _EVENT_COUNT_FIELD, _EVENT_REAL_COUNT_FIELD = (
    22,
    23,
    30,
    44,
)
"""Field numbers of events."""
_BEGIN_EVENT_TYPE, _END_EVENT_TYPE, _INSTANT_EVENT_TYPE, _COUNTER_EVENT_TYPE = 1, 2, 3, 4
(
    _INTERNED_CATEGORIES_FIELD,
    _INTERNED_NAMES_FIELD,
    _INTERNED_ARGUMENT_NAMES_FIELD,
    _INTERNED_TEXTS_FIELD,
) = 1, 2, 3, 29
"""Field numbers of interned data."""
(
    _ARGUMENT_NAME_IID_FIELD,
    _ARGUMENT_BOOL_FIELD,
    _ARGUMENT_UNSIGNED_FIELD,
    _ARGUMENT_INT_FIELD,
    _ARGUMENT_DOUBLE_FIELD,
    _ARGUMENT_TEXT_FIELD,
) = 1, 2, 3, 4, 5, 6
_ARGUMENT_NAME_FIELD, _ARGUMENT_ENTRIES_FIELD, _ARGUMENT_LIST_FIELD, _ARGUMENT_TEXT_IID_FIELD = (
    10,
    11,
    12,
    17,
)
"""Field numbers of arguments."""
_REALTIME_CLOCK_ID, _BOOTTIME_CLOCK_ID = 1, 6
_MIN_ID_OF_SEQUENCE_CLOCK: Final = 64
"""Smallest id of clocks that are valid in one packet sequence; their times are relative to each
other.
"""
_EVENTS_PER_YIELDED_BLOCK: Final = 4096
"""Number of events that are yielded in one block."""
_encode_json: Final = msgspec.json.encode
_MAX_CACHED_ARGUMENTS: Final = 1 << 16
"""Largest number of distinct arguments whose parsed value is cached."""
_MAX_ARGUMENT_NESTING_DEPTH: Final = 16
"""Largest depth of arguments nested in arguments that is read."""


def kineto_json_of_perfetto(blocks: Iterator[bytes], faults: list[FileFault]) -> Iterator[bytes]:
    """Yields the text of a Kineto JSON trace with a Perfetto file's events; appends to `faults`.

    Raises:
        UnreadableTrace: The file uses a feature of the format that is not supported.
    """
    file = _PerfettoFile()
    try:
        for packet in split_into_packets(blocks):
            file.read_packet(packet)
    except (ValueError, struct.error) as error:
        faults.append(FileFault(f"{error}: what follows is left out"))
    base = b"" if file.base is None else b'"baseTimeNanoseconds": %d, ' % file.base
    yield b'{"schemaVersion": 1, %b"traceEvents": [' % base
    events, between = file.kineto_events(), b"\n"
    while some := list(islice(events, _EVENTS_PER_YIELDED_BLOCK)):
        yield between + b",\n".join(some)
        between = b",\n"
    yield b"\n]}"
    faults += [FileFault(fault, lost=lost) for fault, lost in file.lost.items()]


@dataclass(slots=True)
class _PacketSequence:
    """The interned texts and the default track of one sequence of Perfetto packets."""

    interned: dict[tuple[int, int], str] = field(default_factory=dict)
    track: int = 0
    _arguments: dict[bytes, tuple[str, Any]] = field(default_factory=dict)

    def discard_interned_texts(self) -> None:
        """Discards all interned texts of the sequence, as a flag in a packet demands."""
        self.interned.clear()
        self._arguments.clear()

    def cached_argument(self, message: bytes) -> tuple[str, Any]:
        """Returns the name and value of an event's argument; parsed arguments are cached."""
        found = self._arguments.get(message)
        if found is None:
            found = _argument_name_and_value(self.interned, message)
            if len(self._arguments) < _MAX_CACHED_ARGUMENTS:
                self._arguments[message] = found
        return found

    def read_interned_texts(self, message: bytes) -> None:
        for kind, raw in message_fields(message):
            values = dict(message_fields(raw)) if isinstance(raw, bytes) else {}
            number, text = values.get(1), values.get(2)
            if isinstance(number, int) and isinstance(text, bytes):
                self.interned[kind, number] = text.decode("utf-8", "replace")
        self._arguments.clear()  # an id may now refer to another text

    def read_default_track(self, message: bytes) -> None:
        event = first_field_value(message, _PACKET_EVENT_FIELD)
        track = (
            first_field_value(event, _EVENT_TRACK_UUID_FIELD) if isinstance(event, bytes) else None
        )
        self.track = track if isinstance(track, int) else 0


class _PerfettoFile:
    """Collects tracks, clocks and events from the packets of a Perfetto file."""

    def __init__(self) -> None:
        self.base: int | None = None
        """The origin of the file's times, in ns since the Unix epoch; None if unknown."""
        self.lost: Counter[str] = Counter()
        self._tracks = PerfettoTracks()
        self._sequences: dict[FieldValue, _PacketSequence] = {}
        self._events_by_track: dict[int, list[TrackEvent]] = {}
        self._last, self._is_in_order = 0, True
        """The time (ns) of the last begin or end read, and whether they came in order of time."""

    def read_packet(self, packet: bytes) -> None:
        """Reads one packet: its interned texts, its track or clock, and its event."""
        values = dict(message_fields(packet))
        sequence = self._sequences.setdefault(
            values.get(_PACKET_SEQUENCE_FIELD, 0), _PacketSequence()
        )
        flags = values.get(_PACKET_FLAGS_FIELD, 0)
        if isinstance(flags, int) and flags & 1:
            sequence.discard_interned_texts()
        if not self._DEFINITION_FIELDS.isdisjoint(values):
            self._read_definitions(sequence, values)
        event = values.get(_PACKET_EVENT_FIELD)
        if isinstance(event, bytes):
            self._read_event(sequence, values, event)

    _DEFINITION_FIELDS: ClassVar = frozenset(
        {
            _PACKET_INTERNED_FIELD,
            _PACKET_DEFAULTS_FIELD,
            _PACKET_TRACK_FIELD,
            _PACKET_CLOCKS_FIELD,
            _PACKET_COMPRESSED_FIELD,
        }
    )

    def _read_definitions(self, sequence: _PacketSequence, values: dict[int, FieldValue]) -> None:
        """Reads the interned texts, default track, track and clocks that a packet defines."""
        if _PACKET_COMPRESSED_FIELD in values:
            raise UnreadableTrace("its packets are compressed: give the trace as JSON")
        for key, take in (
            (_PACKET_INTERNED_FIELD, sequence.read_interned_texts),
            (_PACKET_DEFAULTS_FIELD, sequence.read_default_track),
            (_PACKET_TRACK_FIELD, self._tracks.add_descriptor),
            (_PACKET_CLOCKS_FIELD, self._read_clock_snapshot),
        ):
            data = values.get(key)
            if isinstance(data, bytes):
                take(data)

    def _read_clock_snapshot(self, message: bytes) -> None:
        times_by_clock: dict[FieldValue, FieldValue] = {}
        for number, clock in message_fields(message):
            values = dict(message_fields(clock)) if number == 1 and isinstance(clock, bytes) else {}
            times_by_clock[values.get(1, 0)] = values.get(2, 0)
        real, own = times_by_clock.get(_REALTIME_CLOCK_ID), times_by_clock.get(_BOOTTIME_CLOCK_ID)
        if self.base is None and isinstance(real, int) and isinstance(own, int):
            self.base = real - own

    def _read_event(
        self, sequence: _PacketSequence, packet: dict[int, FieldValue], event: bytes
    ) -> None:
        time, clock = packet.get(_PACKET_TIMESTAMP_FIELD), packet.get(_PACKET_CLOCK_ID_FIELD, 0)
        if (
            not isinstance(time, int)
            or not isinstance(clock, int)
            or clock >= _MIN_ID_OF_SEQUENCE_CLOCK
        ):
            raise UnreadableTrace(
                "its times are relative to a clock of their own: give the trace as JSON"
            )
        listed = message_fields(event)
        values = dict(listed)
        kind, track = (
            values.get(_EVENT_TYPE_FIELD, 0),
            values.get(_EVENT_TRACK_UUID_FIELD, sequence.track),
        )
        if kind in {_BEGIN_EVENT_TYPE, _END_EVENT_TYPE}:
            self._is_in_order &= time >= self._last
            self._last = time
        if isinstance(kind, int) and isinstance(track, int):
            data = b""
            if kind == _COUNTER_EVENT_TYPE:
                data = _encode_json(
                    _numeric_field_value(
                        values.get(_EVENT_COUNT_FIELD, values.get(_EVENT_REAL_COUNT_FIELD))
                    )
                )
            elif kind != _END_EVENT_TYPE:
                data = _encode_json(_kineto_event_fields(sequence, listed, values))[1:-1]
            self._events_by_track.setdefault(track, []).append((time, kind, data))

    def kineto_events(self) -> Iterator[bytes]:
        """Yields each event as a Kineto JSON object, track by track, in order of time."""
        yield from map(_encode_json, self._tracks.label_events())
        by_time = _event_time_sort_key if self._is_in_order else _event_time_sort_key_ends_first
        for track, track_events in self._events_by_track.items():
            pid, tid = self._tracks.process_and_thread(track)
            where = _encode_json({"pid": pid, "tid": tid})[1:-1]
            name = _encode_json(self._tracks.track_name(track))
            for members in self._members_of_track_events(sorted(track_events, key=by_time), name):
                yield b"{%b,%b}" % (where, members)

    def _members_of_track_events(
        self, track_events: list[TrackEvent], name: bytes
    ) -> Iterator[bytes]:
        """Yields the JSON members of each event on a track, except for its process and thread."""
        begun: list[tuple[int, bytes]] = []
        for time, kind, data in track_events:
            if kind == _BEGIN_EVENT_TYPE:
                begun.append((time, data))
            elif kind == _END_EVENT_TYPE and begun:
                begin, members = begun.pop()
                times = _microseconds_text(begin), _microseconds_text(time - begin)
                yield b'"ph":"X","ts":%b,"dur":%b' % times + _with_leading_comma(members)
            elif kind == _INSTANT_EVENT_TYPE:
                yield b'"ph":"i","s":"t","ts":%b' % _microseconds_text(time) + _with_leading_comma(
                    data
                )
            elif kind == _COUNTER_EVENT_TYPE:
                sample = name, _microseconds_text(time), name, data
                yield b'"ph":"C","name":%b,"ts":%b,"args":{%b:%b}' % sample
            else:
                self.lost["an end without a begin: left out"] += 1
        for begin, data in begun:
            yield b'"ph":"X","ts":%b' % _microseconds_text(begin) + _with_leading_comma(data)


def _with_leading_comma(json_members: bytes) -> bytes:
    return b"," + json_members if json_members else b""


def _event_time_sort_key(event: TrackEvent) -> tuple[int, bool]:
    return event[0], False


def _event_time_sort_key_ends_first(event: TrackEvent) -> tuple[int, bool]:
    """Returns a sort key that puts end events first at equal times, for files not in time order."""
    return event[0], event[1] != _END_EVENT_TYPE


def _kineto_event_fields(
    sequence: _PacketSequence, listed: list[tuple[int, FieldValue]], values: dict[int, FieldValue]
) -> dict[str, Any]:
    """Returns the name, category and arguments of an event, by the keys that Kineto uses."""
    known = sequence.interned
    found: dict[str, Any] = {}
    name, category = values.get(_EVENT_NAME_FIELD), values.get(_EVENT_CATEGORY_FIELD)
    if isinstance(name, bytes):
        found["name"] = name.decode("utf-8", "replace")
    elif _EVENT_NAME_IID_FIELD in values:
        found["name"] = known.get((_INTERNED_NAMES_FIELD, int(values[_EVENT_NAME_IID_FIELD])), "")
    if isinstance(category, bytes):
        found["cat"] = category.decode("utf-8", "replace")
    elif _EVENT_CATEGORY_IID_FIELD in values:
        found["cat"] = known.get(
            (_INTERNED_CATEGORIES_FIELD, int(values[_EVENT_CATEGORY_IID_FIELD])), ""
        )
    args = dict(
        sequence.cached_argument(raw)
        for number, raw in listed
        if number == _EVENT_ARGUMENT_FIELD and isinstance(raw, bytes)
    )
    return {**found, "args": args} if args else found


def _argument_name_and_value(
    interned: dict[tuple[int, int], str], message: bytes, depth: int = 0
) -> tuple[str, Any]:
    """Returns the name and the value of an event's argument, which may hold nested arguments.

    Raises:
        ValueError: It is nested too deeply.
    """
    if depth > _MAX_ARGUMENT_NESTING_DEPTH:
        raise ValueError("arguments that are nested too deep")
    name = ""
    value: Any = None
    listed: list[Any] = []
    entries: dict[str, Any] = {}
    for number, raw in message_fields(message):
        if number == _ARGUMENT_NAME_IID_FIELD and isinstance(raw, int):
            name = interned.get((_INTERNED_ARGUMENT_NAMES_FIELD, raw), "")
        elif number == _ARGUMENT_NAME_FIELD and isinstance(raw, bytes):
            name = raw.decode("utf-8", "replace")
        elif number == _ARGUMENT_TEXT_IID_FIELD and isinstance(raw, int):
            value = interned.get((_INTERNED_TEXTS_FIELD, raw), "")
        elif number == _ARGUMENT_TEXT_FIELD and isinstance(raw, bytes):
            value = raw.decode("utf-8", "replace")
        elif number == _ARGUMENT_ENTRIES_FIELD and isinstance(raw, bytes):
            entries.update([_argument_name_and_value(interned, raw, depth + 1)])
        elif number == _ARGUMENT_LIST_FIELD and isinstance(raw, bytes):
            listed.append(_argument_name_and_value(interned, raw, depth + 1)[1])
        elif number in {
            _ARGUMENT_BOOL_FIELD,
            _ARGUMENT_UNSIGNED_FIELD,
            _ARGUMENT_INT_FIELD,
            _ARGUMENT_DOUBLE_FIELD,
        }:
            value = bool(raw) if number == _ARGUMENT_BOOL_FIELD else _numeric_field_value(raw)
    return name, entries or listed or value


def _numeric_field_value(value: FieldValue | None) -> int | float | None:
    """Returns a protobuf value as a signed integer, or as a double if it is bytes; else None."""
    if isinstance(value, bytes):
        number: float = struct.unpack("<d", value)[0]
        return number
    return value if value is None or value < 1 << 63 else value - (1 << 64)


def _microseconds_text(nanoseconds: int) -> bytes:
    """Returns nanoseconds as an exact decimal number of microseconds."""
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    whole, rest = divmod(size, 1000)
    return f"{sign}{whole}.{rest:03}".encode()
