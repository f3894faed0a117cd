"""Shapes that are not what they should be: unknown, rather than a figure computed from them.

`Input Dims` holds the sizes of each input: `[]` of a scalar, `[2, 3]`, lists of those for a list
of tensors; `Input type` has one word for each. What is cut off, is no list, or has another number
of types tells no shapes.
"""

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from selftime.ingest.events.arguments import NO_CODE, Columns
from selftime.ingest.events.assemble import FileColumns

Codes = NDArray[np.uint32]

_ODD: Final = -1
_UNTOLD: Final = -2
_lists = msgspec.json.Decoder(list[Any])


def forget_odd_shapes(columns: FileColumns) -> None:
    """Make the shapes unknown that cannot be read, or are not as many as the types."""
    ops = columns.groups.get("op")
    if ops is None or not ops["row"].size:
        return
    sizes = _counts(columns, ops["input_shapes"], _is_sizes)
    types = _counts(columns, ops["input_types"], lambda word: isinstance(word, str))
    odd = (sizes == _ODD) | ((sizes >= 0) & (types >= 0) & (sizes != types))
    if odd.any():
        _forget(ops, odd)
        columns.faults["shapes that are cut off, no sizes, or fewer or more than types"] += int(
            odd.sum()
        )


def _forget(ops: Columns, odd: NDArray[np.bool_]) -> None:
    for name in ("input_shapes", "input_strides"):
        ops[name] = np.where(odd, NO_CODE, ops[name]).astype(np.uint32)


def _counts(columns: FileColumns, codes: Codes, is_sound: Any) -> NDArray[np.int64]:
    """How many elements each text's list has; each text is read once."""
    known = np.unique(codes[codes != NO_CODE])
    if not known.size:
        return np.full(codes.size, _UNTOLD, np.int64)
    texts = columns.text(known).cast(str).to_list()
    counts = np.array([_count(text, is_sound) for text in texts], np.int64)
    place = np.minimum(np.searchsorted(known, codes), known.size - 1)
    return np.where(codes == NO_CODE, _UNTOLD, counts[place])


def _count(text: str, is_sound: Any) -> int:
    try:
        found = _lists.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _ODD
    return len(found) if all(map(is_sound, found)) else _ODD


def _is_sizes(value: object) -> bool:
    """Sizes of a tensor, of a list of tensors, or of what is no tensor."""
    if isinstance(value, list):
        return all(type(inner) is int or _is_sizes(inner) for inner in value)
    return value == ""
