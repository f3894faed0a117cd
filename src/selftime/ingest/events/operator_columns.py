"""Check operators' shapes, and split operators' names from their overloads.

`Input Dims` holds the sizes of each input: `[]` for a scalar, `[2, 3]`, lists of those for a list
of tensors; `Input type` has one word for each input. Shapes that are cut off, are not a list, or do
not match the number of types become null, so that no figure is computed from them.
"""

from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.ingest.events.arguments import NO_CODE, Columns
from selftime.ingest.events.assemble import FileColumns
from selftime.names import OPERATORS, operator_and_overload

Codes = NDArray[np.uint32]
_INVALID: Final = -1
_ABSENT: Final = -2
_lists = msgspec.json.Decoder(list[Any])


def split_overloads(slices: pl.DataFrame, ops: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the slices with operator names only, and the arguments with overloads."""
    category = slices["category"].gather(ops["id"])
    operator = category.is_in(pl.Series(OPERATORS, dtype=category.dtype).implode())
    named = slices["name"].gather(ops["id"])
    distinct = named.filter(operator).unique()
    split = [(text, *operator_and_overload(text)) for text in distinct.cast(pl.String).to_list()]
    with_overload = [row for row in split if row[2] is not None]
    if not with_overload:
        return slices, ops
    known = pl.DataFrame(with_overload, schema=["written", "plain", "overload"], orient="row")
    joined = (
        named.cast(pl.String)
        .to_frame("written")
        .join(known, on="written", how="left", maintain_order="left")
    )
    at = (joined["plain"].is_not_null() & operator).arg_true()
    plain = joined["plain"].gather(at).cast(slices["name"].dtype)
    name = slices["name"].clone().scatter(ops["id"].gather(at), plain)
    from_name = joined["overload"].cast(ops["overload"].dtype)
    overload = ops["overload"].fill_null(from_name.set(~operator, None))
    return slices.with_columns(name), ops.with_columns(overload)


def erase_invalid_shapes(columns: FileColumns) -> None:
    """Set shapes to null that cannot be parsed, or differ in number from the types."""
    ops = columns.groups.get("op")
    if ops is None or not ops["row"].size:
        return
    sizes = _counts(columns, ops["input_shapes"], _is_sizes)
    types = _counts(columns, ops["input_types"], lambda word: isinstance(word, str))
    odd = (sizes == _INVALID) | ((sizes >= 0) & (types >= 0) & (sizes != types))
    if odd.any():
        _erase_shapes(ops, odd)
        columns.faults["shapes that are cut off, no sizes, or fewer or more than types"] += int(
            odd.sum()
        )


def _erase_shapes(ops: Columns, odd: NDArray[np.bool_]) -> None:
    for name in ("input_shapes", "input_strides"):
        ops[name] = np.where(odd, NO_CODE, ops[name]).astype(np.uint32)


def _counts(columns: FileColumns, codes: Codes, is_sound: Any) -> NDArray[np.int64]:
    """Returns the number of elements in each text's list; each distinct text is parsed once."""
    known = np.unique(codes[codes != NO_CODE])
    if not known.size:
        return np.full(codes.size, _ABSENT, np.int64)
    texts = columns.text(known).cast(str).to_list()
    counts = np.array([_count(text, is_sound) for text in texts], np.int64)
    place = np.minimum(np.searchsorted(known, codes), known.size - 1)
    return np.where(codes == NO_CODE, _ABSENT, counts[place])


def _count(text: str, is_sound: Any) -> int:
    try:
        found = _lists.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _INVALID
    return len(found) if all(map(is_sound, found)) else _INVALID


def _is_sizes(value: object) -> bool:
    """Returns whether a value is sizes of a tensor, of a list of tensors, or `""` for no tensor."""
    if isinstance(value, list):
        return all(type(inner) is int or _is_sizes(inner) for inner in value)
    return value == ""
