"""Decodes protocol buffers, and splits a Perfetto trace into its packets.

Encoding: "Protocol Buffers: Encoding". A trace is a message whose only field is a repeated packet.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

FieldValue: TypeAlias = int | bytes
"""The value of a protobuf field: an integer, or bytes, also for fixed-size numbers (little-endian).
"""

_VARINT_WIRE_TYPE, _FIXED64_WIRE_TYPE, _LENGTH_PREFIXED_WIRE_TYPE, _FIXED32_WIRE_TYPE = 0, 1, 2, 5
_MAX_VARINT_BYTES: Final = 10
"""Largest number of bytes of a variable-length integer."""
_PACKET_TAG_BYTE: Final = b"\n"
"""The byte before each packet of a trace: the tag of field 1, length-delimited."""
_WIRE_TYPE_BY_PACKET_FIELD: Final = {
    **dict.fromkeys((3, 8, 10, 13, 41, 42, 58, 79, 87), _VARINT_WIRE_TYPE),
    **dict.fromkeys((6, 11, 12, 33, 36, 43, 44, 45, 59, 60, 75, 89), _LENGTH_PREFIXED_WIRE_TYPE),
}
"""The wire type of each field that may be in the first packet of a trace, by field number."""


def message_fields(message: bytes) -> list[tuple[int, FieldValue]]:
    """Returns the fields of a protocol buffer message as (number, value).

    Raises:
        ValueError: The data is not a message, or ends too early.
    """
    found: list[tuple[int, FieldValue]] = []
    offset, size = 0, len(message)
    while offset < size:
        tag, offset = (
            (message[offset], offset + 1)
            if message[offset] < 128
            else _read_varint(message, offset)
        )
        kind = tag & 7
        if kind == _VARINT_WIRE_TYPE:
            value, offset = _read_varint(message, offset)
            found.append((tag >> 3, value))
            continue
        if kind == _LENGTH_PREFIXED_WIRE_TYPE:
            length, offset = _read_varint(message, offset)
        elif kind in {_FIXED64_WIRE_TYPE, _FIXED32_WIRE_TYPE}:
            length = 8 if kind == _FIXED64_WIRE_TYPE else 4
        else:
            raise ValueError("a field of an unknown type")
        end = offset + length
        if end > size:
            raise ValueError("a field that ends too early")
        found.append((tag >> 3, message[offset:end]))
        offset = end
    return found


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Returns the variable-length integer at a byte offset, and the offset after it."""
    if offset < len(data) and data[offset] < 128:
        return data[offset], offset + 1
    value = shift = 0
    for place in range(offset, min(offset + _MAX_VARINT_BYTES, len(data))):
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        shift += 7
    raise ValueError("a number that does not end")


def first_field_value(message: bytes, field_number: int) -> FieldValue | None:
    """Returns the first value of a message's field; None if the message lacks the field."""
    return next(
        (value for number, value in message_fields(message) if number == field_number), None
    )


def text_fields_by_number(message: bytes) -> dict[int, str]:
    """Returns the text fields of a message, by field number."""
    return {
        n: v.decode("utf-8", "replace") for n, v in message_fields(message) if isinstance(v, bytes)
    }


def is_perfetto_trace(file_start: bytes) -> bool:
    """Returns whether a decompressed file begins with a packet of a Perfetto trace."""
    if not file_start.startswith(_PACKET_TAG_BYTE):
        return False
    try:
        size, at = _read_varint(file_start, 1)
        kinds = list(_field_numbers_and_wire_types(file_start[at : at + size]))
    except ValueError:
        return False
    is_whole = at + size <= len(file_start)
    return (
        is_whole
        and bool(kinds)
        and all(_WIRE_TYPE_BY_PACKET_FIELD.get(number) == kind for number, kind in kinds)
    )


def _field_numbers_and_wire_types(packet: bytes) -> Iterator[tuple[int, int]]:
    """Yields the number and the wire type of each field of a packet."""
    at = 0
    while at < len(packet):
        tag, at = _read_varint(packet, at)
        yield tag >> 3, tag & 7
        if tag & 7 == _VARINT_WIRE_TYPE:
            _, at = _read_varint(packet, at)
        elif tag & 7 == _LENGTH_PREFIXED_WIRE_TYPE:
            length, at = _read_varint(packet, at)
            at += length
        else:
            return


def split_into_packets(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the packets of a Perfetto trace, which is read in blocks.

    Raises:
        ValueError: There is other data between packets, or the last packet ends too early.
    """
    buffer = b""
    for block in blocks:
        buffer += block
        at = 0
        while (whole := _packet_byte_range(buffer, at)) is not None:
            begin, end = whole
            if begin < end:
                yield buffer[begin:end]
            at = end
        buffer = buffer[at:]
    if buffer:
        raise ValueError("a packet that ends too early")


def _packet_byte_range(buffer: bytes, offset: int) -> tuple[int, int] | None:
    """Returns a packet's start and end offsets; None if `buffer` does not hold the whole packet.

    Fields of the trace that are not packets are skipped: they are returned as empty.
    """
    if offset >= len(buffer):
        return None
    try:
        tag, begin = _read_varint(buffer, offset)
        size, begin = _read_varint(buffer, begin)
    except ValueError:
        if len(buffer) - offset > 2 * _MAX_VARINT_BYTES:
            raise
        return None
    if tag & 7 != _LENGTH_PREFIXED_WIRE_TYPE:
        raise ValueError("data that is not a packet")
    end = begin + size
    if end > len(buffer):
        return None
    return (begin, end) if tag >> 3 == 1 else (end, end)
