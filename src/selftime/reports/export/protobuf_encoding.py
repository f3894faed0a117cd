"""Encodes many protocol-buffer messages at once, with NumPy.

Encoding: "Protocol Buffers: Encoding". The messages of all rows are consecutive parts of one array
of bytes; their sizes follow from their values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from selftime.array_types import Ints

ByteArray = NDArray[np.uint8]
PaddedCells: TypeAlias = "tuple[ByteArray, NDArray[np.bool_]]"
"""Byte strings as an array of shape (n, width), and a mask of the bytes that belong to them."""

WIRE_VARINT: Final = 0
"""Wire type of integers of variable length."""
WIRE_FIXED64: Final = 1
"""Wire type of values of eight bytes."""
WIRE_LENGTH_DELIMITED: Final = 2
"""Wire type of texts, bytes and messages, which are preceded by their length in bytes."""

_VARINT_PAYLOAD_BITS_PER_BYTE: Final = np.uint64(7)
_VARINT_PAYLOAD_MASK: Final = np.uint64(0x7F)
_VARINT_CONTINUATION_BIT: Final = np.uint8(0x80)


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """n byte strings, such as encoded messages, one after the other in one array of bytes."""

    flat: ByteArray
    size: Ints
    """Size of each row in bytes, shape (n,)."""


def encode_tag(field_number: int, wire_type: int) -> bytes:
    """Returns the encoded tag before a field's value: field number and wire type.

    >>> encode_tag(8, WIRE_VARINT).hex(), encode_tag(47, WIRE_FIXED64).hex()
    ('40', 'f902')
    """
    return _encode_varint(field_number << 3 | wire_type)


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_field(field_number: int, value: int | str | bytes) -> bytes:
    """Returns one encoded field: an integer as a varint, text and bytes with their length.

    >>> encode_field(2, "a").hex(), encode_field(1, 300).hex()
    ('120161', '08ac02')
    """
    if isinstance(value, int):
        return encode_tag(field_number, WIRE_VARINT) + _encode_varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    content = value.encode() if isinstance(value, str) else value
    return encode_tag(field_number, WIRE_LENGTH_DELIMITED) + _encode_varint(len(content)) + content


def encode_varints(values: NDArray[Any]) -> PaddedCells:
    """Returns integers encoded as protobuf varints; negative integers take ten bytes."""
    remaining = values.astype(np.int64, copy=False).view(np.uint64)
    width = max(1, -(-int(remaining.max(initial=0)).bit_length() // 7))
    cells = np.empty((remaining.size, width), np.uint8)
    is_used = np.empty((remaining.size, width), bool)
    for position in range(width):
        is_used[:, position] = (remaining != 0) if position else True
        cells[:, position] = (remaining & _VARINT_PAYLOAD_MASK).astype(np.uint8)
        remaining = remaining >> _VARINT_PAYLOAD_BITS_PER_BYTE
        cells[:, position] |= np.where(remaining != 0, _VARINT_CONTINUATION_BIT, np.uint8(0))
    return cells, is_used


def encode_fixed64(values: NDArray[Any]) -> PaddedCells:
    """Returns 64-bit integers encoded as eight bytes."""
    cells = np.ascontiguousarray(values.astype("<u8", copy=False)).view(np.uint8)
    return cells.reshape(-1, 8), np.ones((values.size, 8), bool)


def encode_doubles(values: NDArray[Any]) -> PaddedCells:
    """Returns 64-bit floats encoded as eight bytes."""
    cells = np.ascontiguousarray(values.astype("<f8", copy=False)).view(np.uint8)
    return cells.reshape(-1, 8), np.ones((values.size, 8), bool)


def join_row_parts(row_count: int, *parts: "bytes | PaddedCells") -> EncodedRows:
    """Returns n byte strings, each joined from `parts`: one value for all, or one per row."""
    encoded_parts = [
        _repeat_bytes(part, row_count) if isinstance(part, bytes) else part for part in parts
    ]
    cells = np.concatenate([cells for cells, _ in encoded_parts], axis=1)
    is_used = np.concatenate([is_used for _, is_used in encoded_parts], axis=1)
    return EncodedRows(cells[is_used], is_used.sum(axis=1, dtype=np.int64))


def _repeat_bytes(data: bytes, row_count: int) -> PaddedCells:
    values = np.frombuffer(data, np.uint8)
    shape = (row_count, values.size)
    return np.broadcast_to(values, shape), np.ones(shape, bool)


def merge_rows_by_message(
    message_count: int, parts: Sequence[tuple[Ints, EncodedRows]]
) -> EncodedRows:
    """Returns one byte string per message, joined from all parts' rows for that message.

    A part is a pair (index of each row's message, rows).

    >>> letters = EncodedRows(np.frombuffer(b"abc", np.uint8), np.array([1, 1, 1]))
    >>> merged = merge_rows_by_message(2, [(np.array([0, 1, 1]), letters)])
    >>> merged.flat.tobytes(), merged.size.tolist()
    (b'abc', [1, 2])
    """
    if len(parts) == 1 and np.array_equal(parts[0][0], np.arange(message_count)):
        return parts[0][1]
    message = np.concatenate([owners for owners, _ in parts])
    size = np.concatenate([owners.size for _, owners in parts])
    flat = np.concatenate([owners.flat for _, owners in parts])
    order = np.argsort(message, kind="stable")
    begin = np.cumsum(size) - size
    ordered_sizes = size[order]
    target = np.cumsum(ordered_sizes) - ordered_sizes
    at = np.repeat(begin[order] - target, ordered_sizes) + np.arange(flat.size)
    sizes = np.zeros(message_count, np.int64)
    np.add.at(sizes, message, size)
    return EncodedRows(flat[at], sizes)


def encode_length_delimited(field_number: int, contents: EncodedRows) -> EncodedRows:
    """Returns each row encoded as a length-delimited field with the number `field_number`."""
    count = contents.size.size
    head = join_row_parts(
        count,
        encode_tag(field_number, WIRE_LENGTH_DELIMITED),
        encode_varints(contents.size),
    )
    all_rows = np.arange(count)
    return merge_rows_by_message(count, [(all_rows, head), (all_rows, contents)])
