"""Convert the events of a Perfetto trace to Kineto's JSON.

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
from selftime.ingest.damage.faults import Fault
from selftime.ingest.perfetto.messages import Value, fields_of, first_value, packets
from selftime.ingest.perfetto.tracks import Tracks

TrackEvent: TypeAlias = tuple[int, int, bytes]
"""An event: its time in ns, its type, and the members of its JSON object or a counter's value."""

_CLOCKS, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_COMPRESSED, _CLOCK_ID, _DEFAULTS, _TRACK = 50, 58, 59, 60
"""Field numbers of packets."""
_CATEGORY_IID, _ARGUMENT, _TYPE, _NAME_IID, _TRACK_UUID = 3, 4, 9, 10, 11
_CATEGORY, _NAME, _COUNT, _REAL_COUNT = 22, 23, 30, 44
"""Field numbers of events."""
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_CATEGORIES, _NAMES, _ARGUMENT_NAMES, _TEXTS = 1, 2, 3, 29
"""Field numbers of interned data."""
_NAMED_IID, _BOOL, _UNSIGNED, _INT, _DOUBLE, _TEXT = 1, 2, 3, 4, 5, 6
_NAMED, _ENTRIES, _LISTED, _TEXT_IID = 10, 11, 12, 17
"""Field numbers of arguments."""
_REALTIME, _BOOTTIME = 1, 6
_OWN_CLOCK: Final = 64
"""Clock ids from here on belong to one sequence, whose times are relative to each other."""
_AT_ONCE: Final = 4096
"""Events that are yielded in one block."""
_encode: Final = msgspec.json.encode
_REMEMBERED: Final = 1 << 16
"""The most distinct arguments whose parsed value is cached."""
_DEEPEST: Final = 16
"""The deepest allowed nesting of arguments."""


def as_json(blocks: Iterator[bytes], faults: list[Fault]) -> Iterator[bytes]:
    """Yields the file's events in Kineto's JSON layout; the file's faults are added to `faults`.

    Raises:
        UnreadableTrace: The file uses a feature of the format that is not supported.
    """
    file = _File()
    try:
        for packet in packets(blocks):
            file.take(packet)
    except (ValueError, struct.error) as error:
        faults.append(Fault(f"{error}: what follows is left out"))
    base = b"" if file.base is None else b'"baseTimeNanoseconds": %d, ' % file.base
    yield b'{"schemaVersion": 1, %b"traceEvents": [' % base
    events, between = file.events(), b"\n"
    while some := list(islice(events, _AT_ONCE)):
        yield between + b",\n".join(some)
        between = b",\n"
    yield b"\n]}"
    faults += [Fault(fault, lost=lost) for fault, lost in file.lost.items()]


@dataclass(slots=True)
class _Sequence:
    """The state of one packet sequence: interned texts and the default track."""

    interned: dict[tuple[int, int], str] = field(default_factory=dict)
    track: int = 0
    _arguments: dict[bytes, tuple[str, Any]] = field(default_factory=dict)

    def clear(self) -> None:
        """Discard the interned texts."""
        self.interned.clear()
        self._arguments.clear()

    def argument(self, data: bytes) -> tuple[str, Any]:
        """Returns name and value of an argument; cached, as many are equal."""
        found = self._arguments.get(data)
        if found is None:
            found = _argument(self.interned, data)
            if len(self._arguments) < _REMEMBERED:
                self._arguments[data] = found
        return found

    def intern(self, data: bytes) -> None:
        for kind, raw in fields_of(data):
            values = dict(fields_of(raw)) if isinstance(raw, bytes) else {}
            number, text = values.get(1), values.get(2)
            if isinstance(number, int) and isinstance(text, bytes):
                self.interned[kind, number] = text.decode("utf-8", "replace")
        self._arguments.clear()  # an id may now refer to another text

    def take_defaults(self, data: bytes) -> None:
        event = first_value(data, _EVENT)
        track = first_value(event, _TRACK_UUID) if isinstance(event, bytes) else None
        self.track = track if isinstance(track, int) else 0


class _File:
    """Collects the contents of a file's packets."""

    def __init__(self) -> None:
        self.base: int | None = None
        """The time origin in ns since the Unix epoch."""
        self.lost: Counter[str] = Counter()
        self._tracks = Tracks()
        self._sequences: dict[Value, _Sequence] = {}
        self._events_by_track: dict[int, list[TrackEvent]] = {}
        self._last, self._is_in_order = 0, True
        """Whether begins and ends stand in the file in order of time."""

    def take(self, packet: bytes) -> None:
        """Read one packet."""
        values = dict(fields_of(packet))
        sequence = self._sequences.setdefault(values.get(_SEQUENCE, 0), _Sequence())
        flags = values.get(_FLAGS, 0)
        if isinstance(flags, int) and flags & 1:
            sequence.clear()
        if not self._RARE.isdisjoint(values):
            self._take_rare(sequence, values)
        event = values.get(_EVENT)
        if isinstance(event, bytes):
            self._take_event(sequence, values, event)

    _RARE: ClassVar = frozenset({_INTERNED, _DEFAULTS, _TRACK, _CLOCKS, _COMPRESSED})

    def _take_rare(self, sequence: _Sequence, values: dict[int, Value]) -> None:
        """Read definitions that events refer to."""
        if _COMPRESSED in values:
            raise UnreadableTrace("its packets are compressed: give the trace as JSON")
        for key, take in (
            (_INTERNED, sequence.intern),
            (_DEFAULTS, sequence.take_defaults),
            (_TRACK, self._tracks.add),
            (_CLOCKS, self._set_clock),
        ):
            data = values.get(key)
            if isinstance(data, bytes):
                take(data)

    def _set_clock(self, data: bytes) -> None:
        known: dict[Value, Value] = {}
        for number, clock in fields_of(data):
            values = dict(fields_of(clock)) if number == 1 and isinstance(clock, bytes) else {}
            known[values.get(1, 0)] = values.get(2, 0)
        real, own = known.get(_REALTIME), known.get(_BOOTTIME)
        if self.base is None and isinstance(real, int) and isinstance(own, int):
            self.base = real - own

    def _take_event(self, sequence: _Sequence, packet: dict[int, Value], event: bytes) -> None:
        time, clock = packet.get(_TIMESTAMP), packet.get(_CLOCK_ID, 0)
        if not isinstance(time, int) or not isinstance(clock, int) or clock >= _OWN_CLOCK:
            raise UnreadableTrace("its times are by a clock of its own: give the trace as JSON")
        listed = fields_of(event)
        values = dict(listed)
        kind, track = values.get(_TYPE, 0), values.get(_TRACK_UUID, sequence.track)
        if kind in {_BEGIN, _END}:
            self._is_in_order &= time >= self._last
            self._last = time
        if isinstance(kind, int) and isinstance(track, int):
            data = b""
            if kind == _COUNTER:
                data = _encode(_number(values.get(_COUNT, values.get(_REAL_COUNT))))
            elif kind != _END:
                data = _encode(_event_fields(sequence, listed, values))[1:-1]
            self._events_by_track.setdefault(track, []).append((time, kind, data))

    def events(self) -> Iterator[bytes]:
        """Yields the events as Kineto's JSON objects, those of each track in order of time."""
        yield from map(_encode, self._tracks.labels())
        by_time = _by_time if self._is_in_order else _by_time_ends_first
        for track, track_events in self._events_by_track.items():
            pid, tid = self._tracks.place(track)
            where = _encode({"pid": pid, "tid": tid})[1:-1]
            name = _encode(self._tracks.name(track))
            for members in self._of_track(sorted(track_events, key=by_time), name):
                yield b"{%b,%b}" % (where, members)

    def _of_track(self, track_events: list[TrackEvent], name: bytes) -> Iterator[bytes]:
        """Yields the members of each event on a track, without process and thread."""
        begun: list[tuple[int, bytes]] = []
        for time, kind, data in track_events:
            if kind == _BEGIN:
                begun.append((time, data))
            elif kind == _END and begun:
                begin, members = begun.pop()
                times = _us(begin), _us(time - begin)
                yield b'"ph":"X","ts":%b,"dur":%b' % times + _after_comma(members)
            elif kind == _INSTANT:
                yield b'"ph":"i","s":"t","ts":%b' % _us(time) + _after_comma(data)
            elif kind == _COUNTER:
                sample = name, _us(time), name, data
                yield b'"ph":"C","name":%b,"ts":%b,"args":{%b:%b}' % sample
            else:
                self.lost["an end without a begin: left out"] += 1
        for begin, data in begun:
            yield b'"ph":"X","ts":%b' % _us(begin) + _after_comma(data)


def _after_comma(members: bytes) -> bytes:
    return b"," + members if members else b""


def _by_time(event: TrackEvent) -> tuple[int, bool]:
    return event[0], False


def _by_time_ends_first(event: TrackEvent) -> tuple[int, bool]:
    """Returns the sort key for files with all begins before all ends: ends come first."""
    return event[0], event[1] != _END


def _event_fields(
    sequence: _Sequence, listed: list[tuple[int, Value]], values: dict[int, Value]
) -> dict[str, Any]:
    """Returns name, category and arguments of an event."""
    known = sequence.interned
    found: dict[str, Any] = {}
    name, category = values.get(_NAME), values.get(_CATEGORY)
    if isinstance(name, bytes):
        found["name"] = name.decode("utf-8", "replace")
    elif _NAME_IID in values:
        found["name"] = known.get((_NAMES, int(values[_NAME_IID])), "")
    if isinstance(category, bytes):
        found["cat"] = category.decode("utf-8", "replace")
    elif _CATEGORY_IID in values:
        found["cat"] = known.get((_CATEGORIES, int(values[_CATEGORY_IID])), "")
    args = dict(
        sequence.argument(raw)
        for number, raw in listed
        if number == _ARGUMENT and isinstance(raw, bytes)
    )
    return {**found, "args": args} if args else found


def _argument(known: dict[tuple[int, int], str], data: bytes, depth: int = 0) -> tuple[str, Any]:
    """Returns name and value of an argument.

    Raises:
        ValueError: It is nested too deeply.
    """
    if depth > _DEEPEST:
        raise ValueError("arguments that lie too deep within each other")
    name = ""
    value: Any = None
    listed: list[Any] = []
    entries: dict[str, Any] = {}
    for number, raw in fields_of(data):
        if number == _NAMED_IID and isinstance(raw, int):
            name = known.get((_ARGUMENT_NAMES, raw), "")
        elif number == _NAMED and isinstance(raw, bytes):
            name = raw.decode("utf-8", "replace")
        elif number == _TEXT_IID and isinstance(raw, int):
            value = known.get((_TEXTS, raw), "")
        elif number == _TEXT and isinstance(raw, bytes):
            value = raw.decode("utf-8", "replace")
        elif number == _ENTRIES and isinstance(raw, bytes):
            entries.update([_argument(known, raw, depth + 1)])
        elif number == _LISTED and isinstance(raw, bytes):
            listed.append(_argument(known, raw, depth + 1)[1])
        elif number in {_BOOL, _UNSIGNED, _INT, _DOUBLE}:
            value = bool(raw) if number == _BOOL else _number(raw)
    return name, entries or listed or value


def _number(value: Value | None) -> int | float | None:
    """Returns a number's value: integers are signed, eight bytes are a double."""
    if isinstance(value, bytes):
        number: float = struct.unpack("<d", value)[0]
        return number
    return value if value is None or value < 1 << 63 else value - (1 << 64)


def _us(nanoseconds: int) -> bytes:
    """Returns nanoseconds as an exact decimal number of microseconds."""
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    whole, rest = divmod(size, 1000)
    return f"{sign}{whole}.{rest:03}".encode()
