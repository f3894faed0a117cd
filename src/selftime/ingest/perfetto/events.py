"""The events of a Perfetto trace as those of a file that Kineto writes in JSON.

Format: perfetto.protos.Trace with TrackEvents. PyTorch writes the begins of some slices, then their
ends, so events are put in order of time before ends are joined to begins: the file is held as a
whole. Arrows are not read: work is joined to its launch by correlation, as in JSON.
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
from selftime.ingest.perfetto.messages import Value, fields, first, packets
from selftime.ingest.perfetto.tracks import Tracks

Happened: TypeAlias = tuple[int, int, bytes]
"""Time, type, and what else an event tells: members of its object as JSON; a counter's value."""

_CLOCKS, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_COMPRESSED, _CLOCK_ID, _DEFAULTS, _TRACK = 50, 58, 59, 60
"""Of packets."""
_CATEGORY_IID, _ARGUMENT, _TYPE, _NAME_IID, _TRACK_UUID = 3, 4, 9, 10, 11
_CATEGORY, _NAME, _COUNT, _REAL_COUNT = 22, 23, 30, 44
"""Of events."""
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_CATEGORIES, _NAMES, _ARGUMENT_NAMES, _TEXTS = 1, 2, 3, 29
"""Of what is interned."""
_NAMED_IID, _BOOL, _UNSIGNED, _INT, _DOUBLE, _TEXT = 1, 2, 3, 4, 5, 6
_NAMED, _ENTRIES, _LISTED, _TEXT_IID = 10, 11, 12, 17
"""Of arguments."""
_REALTIME, _BOOTTIME = 1, 6
_OWN_CLOCK: Final = 64
"""Clocks from here on are a sequence's own, whose times count on from one another."""
_AT_ONCE: Final = 4096
"""Events that are handed on together."""
_encode: Final = msgspec.json.encode
_REMEMBERED: Final = 1 << 16
"""Different arguments that are read once."""
_DEEPEST: Final = 16
"""So many arguments may lie within each other."""


def as_json(blocks: Iterator[bytes], faults: list[Fault]) -> Iterator[bytes]:
    """The file's events in Kineto's layout; what was wrong with it is added to `faults`.

    Raises:
        UnreadableTrace: It is written in a way that is not supported.
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
    """What packets of one sequence refer to."""

    interned: dict[tuple[int, int], str] = field(default_factory=dict)
    track: int = 0
    _arguments: dict[bytes, tuple[str, Any]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget what was interned."""
        self.interned.clear()
        self._arguments.clear()

    def argument(self, told: bytes) -> tuple[str, Any]:
        """Name and value of an argument, of which many are equal."""
        found = self._arguments.get(told)
        if found is None:
            found = _argument(self.interned, told)
            if len(self._arguments) < _REMEMBERED:
                self._arguments[told] = found
        return found

    def intern(self, told: bytes) -> None:
        for kind, one in fields(told):
            values = dict(fields(one)) if isinstance(one, bytes) else {}
            number, text = values.get(1), values.get(2)
            if isinstance(number, int) and isinstance(text, bytes):
                self.interned[kind, number] = text.decode("utf-8", "replace")
        self._arguments.clear()  # a number may mean another text now

    def take_defaults(self, told: bytes) -> None:
        event = first(told, _EVENT)
        track = first(event, _TRACK_UUID) if isinstance(event, bytes) else None
        self.track = track if isinstance(track, int) else 0


class _File:
    """Gathers what a file's packets tell."""

    def __init__(self) -> None:
        self.base: int | None = None
        """The zero of times since the epoch, in ns."""
        self.lost: Counter[str] = Counter()
        self._tracks = Tracks()
        self._sequences: dict[Value, _Sequence] = {}
        self._happened: dict[int, list[Happened]] = {}
        self._last, self._is_in_order = 0, True
        """Whether begins and ends stand in the file as they happened."""

    def take(self, packet: bytes) -> None:
        """Take one packet."""
        values = dict(fields(packet))
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
        """Take what events refer to."""
        if _COMPRESSED in values:
            raise UnreadableTrace("its packets are compressed: give the trace as JSON")
        for key, take in (
            (_INTERNED, sequence.intern),
            (_DEFAULTS, sequence.take_defaults),
            (_TRACK, self._tracks.add),
            (_CLOCKS, self._set_clock),
        ):
            told = values.get(key)
            if isinstance(told, bytes):
                take(told)

    def _set_clock(self, told: bytes) -> None:
        known: dict[Value, Value] = {}
        for number, clock in fields(told):
            values = dict(fields(clock)) if number == 1 and isinstance(clock, bytes) else {}
            known[values.get(1, 0)] = values.get(2, 0)
        real, own = known.get(_REALTIME), known.get(_BOOTTIME)
        if self.base is None and isinstance(real, int) and isinstance(own, int):
            self.base = real - own

    def _take_event(self, sequence: _Sequence, packet: dict[int, Value], event: bytes) -> None:
        time, clock = packet.get(_TIMESTAMP), packet.get(_CLOCK_ID, 0)
        if not isinstance(time, int) or not isinstance(clock, int) or clock >= _OWN_CLOCK:
            raise UnreadableTrace("its times are by a clock of its own: give the trace as JSON")
        listed = fields(event)
        values = dict(listed)
        kind, track = values.get(_TYPE, 0), values.get(_TRACK_UUID, sequence.track)
        if kind in {_BEGIN, _END}:
            self._is_in_order &= time >= self._last
            self._last = time
        if isinstance(kind, int) and isinstance(track, int):
            told = b""
            if kind == _COUNTER:
                told = _encode(_plain(values.get(_COUNT, values.get(_REAL_COUNT))))
            elif kind != _END:
                told = _encode(_told(sequence, listed, values))[1:-1]
            self._happened.setdefault(track, []).append((time, kind, told))

    def events(self) -> Iterator[bytes]:
        """The events as Kineto's, those of each track in order of time."""
        yield from map(_encode, self._tracks.labels())
        by_time = _as_it_stands if self._is_in_order else _ends_first
        for track, happened in self._happened.items():
            pid, tid = self._tracks.place(track)
            where = _encode({"pid": pid, "tid": tid})[1:-1]
            name = _encode(self._tracks.name(track))
            for members in self._of_track(sorted(happened, key=by_time), name):
                yield b"{%b,%b}" % (where, members)

    def _of_track(self, happened: list[Happened], name: bytes) -> Iterator[bytes]:
        """The members of events but for where they are."""
        begun: list[tuple[int, bytes]] = []
        for time, kind, told in happened:
            if kind == _BEGIN:
                begun.append((time, told))
            elif kind == _END and begun:
                begin, members = begun.pop()
                times = _us(begin), _us(time - begin)
                yield b'"ph":"X","ts":%b,"dur":%b' % times + _further(members)
            elif kind == _INSTANT:
                yield b'"ph":"i","s":"t","ts":%b' % _us(time) + _further(told)
            elif kind == _COUNTER:
                sample = name, _us(time), name, told
                yield b'"ph":"C","name":%b,"ts":%b,"args":{%b:%b}' % sample
            else:
                self.lost["an end without a begin: left out"] += 1
        for begin, told in begun:
            yield b'"ph":"X","ts":%b' % _us(begin) + _further(told)


def _further(members: bytes) -> bytes:
    return b"," + members if members else b""


def _as_it_stands(event: Happened) -> tuple[int, bool]:
    return event[0], False


def _ends_first(event: Happened) -> tuple[int, bool]:
    """Where all begins stand before all ends, what ended at an instant did not begin at it."""
    return event[0], event[1] != _END


def _told(
    sequence: _Sequence, listed: list[tuple[int, Value]], values: dict[int, Value]
) -> dict[str, Any]:
    """Name, category and arguments of an event."""
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
        sequence.argument(one)
        for number, one in listed
        if number == _ARGUMENT and isinstance(one, bytes)
    )
    return {**found, "args": args} if args else found


def _argument(known: dict[tuple[int, int], str], told: bytes, depth: int = 0) -> tuple[str, Any]:
    """Name and value of an argument.

    Raises:
        ValueError: It lies too deep within others.
    """
    if depth > _DEEPEST:
        raise ValueError("arguments that lie too deep within each other")
    name = ""
    value: Any = None
    listed: list[Any] = []
    entries: dict[str, Any] = {}
    for number, one in fields(told):
        if number == _NAMED_IID and isinstance(one, int):
            name = known.get((_ARGUMENT_NAMES, one), "")
        elif number == _NAMED and isinstance(one, bytes):
            name = one.decode("utf-8", "replace")
        elif number == _TEXT_IID and isinstance(one, int):
            value = known.get((_TEXTS, one), "")
        elif number == _TEXT and isinstance(one, bytes):
            value = one.decode("utf-8", "replace")
        elif number == _ENTRIES and isinstance(one, bytes):
            entries.update([_argument(known, one, depth + 1)])
        elif number == _LISTED and isinstance(one, bytes):
            listed.append(_argument(known, one, depth + 1)[1])
        elif number in {_BOOL, _UNSIGNED, _INT, _DOUBLE}:
            value = bool(one) if number == _BOOL else _plain(one)
    return name, entries or listed or value


def _plain(value: Value | None) -> int | float | None:
    """A number as it is meant: integers are signed, eight bytes are a double."""
    if isinstance(value, bytes):
        number: float = struct.unpack("<d", value)[0]
        return number
    return value if value is None or value < 1 << 63 else value - (1 << 64)


def _us(nanoseconds: int) -> bytes:
    """Microseconds as a decimal, exactly."""
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    whole, rest = divmod(size, 1000)
    return f"{sign}{whole}.{rest:03}".encode()
