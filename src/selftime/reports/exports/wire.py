"""Many protocol-buffer messages at once, by columns.

Encoding: "Protocol Buffers: Encoding". A message of each row is a part of one array of bytes; what
rows differ in length by is known from their values, so that NumPy lays all of them down together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from selftime.arrays import Ints

PACKET: Final = 1
"""Of Trace."""

CLOCK_SNAPSHOT: Final = 6
TIMESTAMP: Final = 8
SEQUENCE_ID: Final = 10
TRACK_EVENT: Final = 11
INTERNED: Final = 12
FLAGS: Final = 13
TRACK: Final = 60
"""Of TracePacket."""

CLEARED: Final = 1
NEEDS_STATE: Final = 2
"""Flags: what was interned before holds no more; what was interned is referred to."""

CATEGORY_IID: Final = 3
ANNOTATION: Final = 4
TYPE: Final = 9
NAME_IID: Final = 10
TRACK_UUID: Final = 11
COUNTER_VALUE: Final = 30
DOUBLE_COUNTER_VALUE: Final = 44
FLOW: Final = 47
FLOW_END: Final = 48
"""Of TrackEvent."""

BEGIN: Final = 1
END: Final = 2
INSTANT: Final = 3
COUNTER: Final = 4
"""Types of a TrackEvent."""

INTERNED_CATEGORY: Final = 1
INTERNED_NAME: Final = 2
INTERNED_ANNOTATION: Final = 3
INTERNED_TEXT: Final = 29
"""Of InternedData; each has an iid, 1, and a name or text, 2."""

ANNOTATION_NAME: Final = 1
ANNOTATION_INT: Final = 4
ANNOTATION_DOUBLE: Final = 5
ANNOTATION_LISTED: Final = 12
ANNOTATION_TEXT: Final = 17
"""Of DebugAnnotation."""

UUID: Final = 1
NAME: Final = 2
PROCESS: Final = 3
THREAD: Final = 4
PARENT: Final = 5
COUNTERS: Final = 8
MERGING: Final = 15
"""Of TrackDescriptor."""

APART: Final = 2
"""Of its behaviours towards siblings: one of the same name stays a track of its own."""

PROCESS_ID: Final = 1
PROCESS_NAME: Final = 6
"""Of ProcessDescriptor."""

THREAD_PROCESS: Final = 1
THREAD_ID: Final = 2
THREAD_NAME: Final = 5
"""Of ThreadDescriptor."""

COUNTER_UNIT: Final = 3
SIZE_BYTES: Final = 3
"""Of CounterDescriptor, and one of its units."""

CLOCK: Final = 1
CLOCK_ID: Final = 1
CLOCK_TIME: Final = 2
"""Of ClockSnapshot and of its clocks."""

REALTIME: Final = 1
BOOTTIME: Final = 6
"""Clocks: since the epoch; the one that timestamps are of."""


Bytes = NDArray[np.uint8]
Cells: TypeAlias = "tuple[Bytes, NDArray[np.bool_]]"
"""Bytes of shape (n, width), and which of them are there."""

VARINT: Final = 0
FIXED: Final = 1
LENGTH: Final = 2
"""Wire types."""

_SEVEN: Final = np.uint64(7)
_LOW: Final = np.uint64(0x7F)
_MORE: Final = np.uint8(0x80)


@dataclass(frozen=True, slots=True)
class Rows:
    """Messages, or parts of them, one behind the other."""

    flat: Bytes
    size: Ints
    """Bytes of each, shape (n,)."""


def tag(number: int, kind: int) -> bytes:
    """What stands before a field's value.

    >>> tag(8, VARINT).hex(), tag(47, FIXED).hex()
    ('40', 'f902')
    """
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def field(number: int, value: int | str | bytes) -> bytes:
    """One field of a message that is written once.

    >>> field(2, "a").hex(), field(1, 300).hex()
    ('120161', '08ac02')
    """
    if isinstance(value, int):
        return tag(number, VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    content = value.encode() if isinstance(value, str) else value
    return tag(number, LENGTH) + _varint(len(content)) + content


def varints(values: NDArray[Any]) -> Cells:
    """Integers of up to 64 bits as varints; a negative one has ten bytes."""
    left = values.astype(np.int64, copy=False).view(np.uint64)
    width = max(1, -(-int(left.max(initial=0)).bit_length() // 7))
    cells = np.empty((left.size, width), np.uint8)
    there = np.empty((left.size, width), bool)
    for at in range(width):
        there[:, at] = (left != 0) if at else True
        cells[:, at] = (left & _LOW).astype(np.uint8)
        left = left >> _SEVEN
        cells[:, at] |= np.where(left != 0, _MORE, np.uint8(0))
    return cells, there


def fixed(values: NDArray[Any]) -> Cells:
    """Integers of 64 bits as eight bytes."""
    cells = np.ascontiguousarray(values.astype("<u8", copy=False)).view(np.uint8)
    return cells.reshape(-1, 8), np.ones((values.size, 8), bool)


def doubles(values: NDArray[Any]) -> Cells:
    """Floats of 64 bits as eight bytes."""
    cells = np.ascontiguousarray(values.astype("<f8", copy=False)).view(np.uint8)
    return cells.reshape(-1, 8), np.ones((values.size, 8), bool)


def rows(count: int, *parts: "bytes | Cells") -> Rows:
    """The parts of each row side by side; bytes are those of every row."""
    found = [_every(part, count) if isinstance(part, bytes) else part for part in parts]
    cells = np.concatenate([cells for cells, _ in found], axis=1)
    there = np.concatenate([there for _, there in found], axis=1)
    return Rows(cells[there], there.sum(axis=1, dtype=np.int64))


def _every(part: bytes, count: int) -> Cells:
    told = np.frombuffer(part, np.uint8)
    shape = (count, told.size)
    return np.broadcast_to(told, shape), np.ones(shape, bool)


def spliced(count: int, parts: Sequence[tuple[Ints, Rows]]) -> Rows:
    """To each of so many owners the rows that it has, those of earlier parts first.

    >>> letters = Rows(np.frombuffer(b"abc", np.uint8), np.array([1, 1, 1]))
    >>> found = spliced(2, [(np.array([0, 1, 1]), letters), (np.array([0]), letters)][:1])
    >>> found.flat.tobytes(), found.size.tolist()
    (b'abc', [1, 2])
    """
    if len(parts) == 1 and np.array_equal(parts[0][0], np.arange(count)):
        return parts[0][1]
    owner = np.concatenate([one for one, _ in parts])
    size = np.concatenate([one.size for _, one in parts])
    flat = np.concatenate([one.flat for _, one in parts])
    order = np.argsort(owner, kind="stable")
    begin = np.cumsum(size) - size
    laid = size[order]
    place = np.cumsum(laid) - laid
    at = np.repeat(begin[order] - place, laid) + np.arange(flat.size)
    whole = np.zeros(count, np.int64)
    np.add.at(whole, owner, size)
    return Rows(flat[at], whole)


def wrapped(number: int, content: Rows) -> Rows:
    """Each row as a field of a message around it."""
    count = content.size.size
    head = rows(count, tag(number, LENGTH), varints(content.size))
    every = np.arange(count)
    return spliced(count, [(every, head), (every, content)])
