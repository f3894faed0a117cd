"""A small reader of Perfetto's traces, written from the format and not from what writes them."""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Read", "read"]


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
        elif kind == 1:
            yield number, data[at : (at := at + 8)]
        else:
            assert kind == 2, "no other wire type is written"
            size = varint()
            assert at + size <= len(data), "a field ends within what holds it"
            yield number, data[at : (at := at + size)]


def one(data: bytes, number: int, default: Any = None) -> Any:
    return next((value for found, value in fields(data) if found == number), default)


@dataclass
class Read:
    """What a file holds; slices as track, name, begin and end, None where it has none."""

    tracks: dict[int, dict[int, Any]] = field(default_factory=dict)
    slices: list[tuple[int, str, int, int | None]] = field(default_factory=list)
    marks: list[tuple[int, str, int]] = field(default_factory=list)
    samples: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    flows: Counter[int] = field(default_factory=Counter)
    ends: Counter[int] = field(default_factory=Counter)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)
    args: list[dict[str, Any]] = field(default_factory=list)


def read(path: Path) -> Read:
    found = Read()
    open_on: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    for number, packet in fields(path.read_bytes()):
        assert number == 1
        assert one(packet, 10) == 1, "one sequence"
        if (interned := one(packet, 12)) is not None:
            for kind, told in fields(interned):
                found.texts[kind, one(told, 1)] = one(told, 2, b"").decode()
        if (track := one(packet, 60)) is not None:
            assert one(track, 1) not in found.tracks
            found.tracks[one(track, 1)] = dict(fields(track))
        if (event := one(packet, 11)) is not None:
            _event(found, event, one(packet, 8), open_on, last)
    return found


def _event(
    found: Read, event: bytes, time: int, open_on: dict[int, list[int]], last: dict[int, int]
) -> None:
    kind, track = one(event, 9), one(event, 11)
    assert track in found.tracks, "a track is described before its events"
    if kind == 4:
        raw = one(event, 30)
        value = struct.unpack("<d", one(event, 44))[0] if raw is None else raw
        found.samples.setdefault(track, []).append((time, value))
        return
    if kind == 3:
        found.marks.append((track, found.texts[2, one(event, 10)], time))
        return
    assert time >= last.get(track, 0), "events of a track are in order"
    last[track] = time
    if kind == 2:
        at = open_on[track].pop()
        found.slices[at] = (*found.slices[at][:3], time)
        return
    assert kind == 1
    open_on.setdefault(track, []).append(len(found.slices))
    found.slices.append((track, found.texts[2, one(event, 10)], time, None))
    found.flows.update(int.from_bytes(v, "little") for n, v in fields(event) if n == 47)
    found.ends.update(int.from_bytes(v, "little") for n, v in fields(event) if n == 48)
    told = [value for number, value in fields(event) if number == 4]
    found.args.append({found.texts[3, one(arg, 1)]: _value(found, arg) for arg in told})


def _value(found: Read, arg: bytes) -> Any:
    if listed := [_value(found, value) for number, value in fields(arg) if number == 12]:
        return listed
    [(number, value)] = [(n, v) for n, v in fields(arg) if n != 1]
    if number == 17:
        return found.texts[29, value]
    if number == 5:
        return struct.unpack("<d", value)[0]
    assert number == 4
    return value - (1 << 64) if value >> 63 else value
