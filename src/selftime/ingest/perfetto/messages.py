"""Decode protocol buffers, and split a Perfetto trace into its packets.

Encoding: "Protocol Buffers: Encoding". A trace is a message whose only field is a repeated packet.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

Value: TypeAlias = int | bytes
"""A field's value: an integer, or bytes; fixed-size numbers stay as little-endian bytes."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_LONGEST: Final = 10
"""The most bytes of a varint."""
_PACKET: Final = b"\n"
"""The tag before each packet of a trace: field 1, length-delimited."""
_KNOWN: Final = {
    **dict.fromkeys((3, 8, 10, 13, 41, 42, 58, 79, 87), _VARINT),
    **dict.fromkeys((6, 11, 12, 33, 36, 43, 44, 45, 59, 60, 75, 89), _LENGTH),
}
"""Field numbers in the first packet of a trace, and their wire types."""


def fields_of(data: bytes) -> list[tuple[int, Value]]:
    """Returns the fields of a message as (number, value).

    Raises:
        ValueError: The data is not a message, or ends too early.
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
    """Returns the integer at an offset, and the offset after it."""
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


def first_value(data: bytes, number: int) -> Value | None:
    """Returns the first value of a field; None if the message does not have it."""
    return next((value for found, value in fields_of(data) if found == number), None)


def texts_of(data: bytes) -> dict[int, str]:
    """Returns the fields of a message that are texts, by number."""
    return {n: v.decode("utf-8", "replace") for n, v in fields_of(data) if isinstance(v, bytes)}


def is_perfetto(head: bytes) -> bool:
    """Returns whether a decompressed file begins with a packet of a Perfetto trace."""
    if not head.startswith(_PACKET):
        return False
    try:
        size, at = _varint(head, 1)
        kinds = list(_wire_types(head[at : at + size]))
    except ValueError:
        return False
    is_whole = at + size <= len(head)
    return is_whole and bool(kinds) and all(_KNOWN.get(number) == kind for number, kind in kinds)


def _wire_types(packet: bytes) -> Iterator[tuple[int, int]]:
    """Yields number and wire type of the fields of a packet."""
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
    """Yields the packets of a trace that arrives in blocks.

    Raises:
        ValueError: There is other data between packets, or the last packet ends too early.
    """
    buffer = b""
    for block in blocks:
        buffer += block
        at = 0
        while (whole := _packet_span(buffer, at)) is not None:
            begin, end = whole
            if begin < end:
                yield buffer[begin:end]
            at = end
        buffer = buffer[at:]
    if buffer:
        raise ValueError("a packet that ends too early")


def _packet_span(buffer: bytes, at: int) -> tuple[int, int] | None:
    """Returns start and end of the packet at an offset; None if it has not fully arrived.

    Fields of the trace that are not packets are skipped: they are returned as empty.
    """
    if at >= len(buffer):
        return None
    try:
        tag, begin = _varint(buffer, at)
        size, begin = _varint(buffer, begin)
    except ValueError:
        if len(buffer) - at > 2 * _LONGEST:
            raise
        return None
    if tag & 7 != _LENGTH:
        raise ValueError("what is no packet")
    end = begin + size
    if end > len(buffer):
        return None
    return (begin, end) if tag >> 3 == 1 else (end, end)
