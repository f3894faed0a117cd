"""The fields of protocol buffers, and the packets of a Perfetto trace.

Encoding: "Protocol Buffers: Encoding". A trace is a message whose only field are its packets.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

Value: TypeAlias = int | bytes
"""Of a field: an integer, or bytes, those of numbers of fixed size in the order of the format."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_LONGEST: Final = 10
"""Bytes of a varint at most."""
_PACKET: Final = b"\n"
"""What stands before each packet of a trace: field 1, with a length."""
_KNOWN: Final = {
    **dict.fromkeys((3, 8, 10, 13, 41, 42, 58, 79, 87), _VARINT),
    **dict.fromkeys((6, 11, 12, 33, 36, 43, 44, 45, 59, 60, 75, 89), _LENGTH),
}
"""Fields that the first packet of a trace has, and their wire types."""


def fields(data: bytes) -> list[tuple[int, Value]]:
    """The fields of a message: number and value.

    Raises:
        ValueError: It is none, or ends too early.
    """
    found: list[tuple[int, Value]] = []
    at, size = 0, len(data)
    while at < size:
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            found.append((tag >> 3, value))
            continue
        if kind == _LENGTH:
            length, at = _varint(data, at)
        elif kind in {_FIXED64, _FIXED32}:
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("a field of an unknown type")
        end = at + length
        if end > size:
            raise ValueError("a field that ends too early")
        found.append((tag >> 3, data[at:end]))
        at = end
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The integer at a place, and the place behind it."""
    if at < len(data) and data[at] < 128:
        return data[at], at + 1
    value = shift = 0
    for place in range(at, min(at + _LONGEST, len(data))):
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise ValueError("a number that does not end")


def first(data: bytes, number: int) -> Value | None:
    """The first value of a field; None if the message has none."""
    return next((value for found, value in fields(data) if found == number), None)


def texts_of(data: bytes) -> dict[int, str]:
    """The fields of a message that are texts."""
    return {n: v.decode("utf-8", "replace") for n, v in fields(data) if isinstance(v, bytes)}


def is_perfetto(head: bytes) -> bool:
    """Whether a decompressed file begins with a packet of a Perfetto trace."""
    if not head.startswith(_PACKET):
        return False
    try:
        size, at = _varint(head, 1)
        kinds = list(_kinds(head[at : at + size]))
    except ValueError:
        return False
    is_whole = at + size <= len(head)
    return is_whole and bool(kinds) and all(_KNOWN.get(number) == kind for number, kind in kinds)


def _kinds(packet: bytes) -> Iterator[tuple[int, int]]:
    """Number and type of the fields of a packet."""
    at = 0
    while at < len(packet):
        tag, at = _varint(packet, at)
        yield tag >> 3, tag & 7
        if tag & 7 == _VARINT:
            _, at = _varint(packet, at)
        elif tag & 7 == _LENGTH:
            length, at = _varint(packet, at)
            at += length
        else:
            return


def packets(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The packets of a trace that arrives in blocks.

    Raises:
        ValueError: What stands between two packets is none, or the last one ends too early.
    """
    held = b""
    for block in blocks:
        held += block
        at = 0
        while (whole := _whole(held, at)) is not None:
            begin, end = whole
            if begin < end:
                yield held[begin:end]
            at = end
        held = held[at:]
    if held:
        raise ValueError("a packet that ends too early")


def _whole(held: bytes, at: int) -> tuple[int, int] | None:
    """Where the packet at a place begins and ends; None if not all of it has arrived.

    Fields of the trace that are no packets are passed over: they are said to be empty there.
    """
    if at >= len(held):
        return None
    try:
        tag, begin = _varint(held, at)
        size, begin = _varint(held, begin)
    except ValueError:
        if len(held) - at > 2 * _LONGEST:
            raise
        return None
    if tag & 7 != _LENGTH:
        raise ValueError("what is no packet")
    end = begin + size
    if end > len(held):
        return None
    return (begin, end) if tag >> 3 == 1 else (end, end)
