"""Splits the names of operators into name and overload, and removes invalid input shapes.

`Input Dims` holds the sizes of each input: `[]` for a scalar, `[2, 3]`, lists of those for a list
of tensors; `Input type` has one word for each input. Shapes that are cut off, are not a list, or do
not match the number of types become null, so that no figure is computed from them.
"""

from typing import Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.ingest.events.arguments import NO_STRING_CODE, Columns
from selftime.ingest.events.chunk_merging import FileEventColumns
from selftime.names import OPERATOR_CATEGORIES, operator_and_overload

StringCodes = NDArray[np.uint32]
_LENGTH_OF_INVALID_LIST: Final = -1
_LENGTH_OF_ABSENT_LIST: Final = -2
_JSON_LIST_DECODER = msgspec.json.Decoder(list[Any])


def split_overloads_from_names(
    slices: pl.DataFrame, ops: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Moves the overload out of each operator's name into a column of the table of arguments."""
    category = slices["category"].gather(ops["id"])
    operator = category.is_in(pl.Series(OPERATOR_CATEGORIES, dtype=category.dtype).implode())
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


def erase_invalid_shapes(columns: FileEventColumns) -> None:
    """Sets input shapes to null that are invalid, or that are not as many as the input types."""
    ops = columns.columns_by_group.get("op")
    if ops is None or not ops["row"].size:
        return
    sizes = _json_list_length_of_each_text(columns, ops["input_shapes"], _is_size_list_or_no_tensor)
    types = _json_list_length_of_each_text(
        columns, ops["input_types"], lambda word: isinstance(word, str)
    )
    odd = (sizes == _LENGTH_OF_INVALID_LIST) | ((sizes >= 0) & (types >= 0) & (sizes != types))
    if odd.any():
        _set_shapes_and_strides_to_null(ops, odd)
        columns.fault_counts["input shapes that are cut off, invalid, or not as many as types"] += (
            int(odd.sum())
        )


def _set_shapes_and_strides_to_null(ops: Columns, is_invalid: NDArray[np.bool_]) -> None:
    for name in ("input_shapes", "input_strides"):
        ops[name] = np.where(is_invalid, NO_STRING_CODE, ops[name]).astype(np.uint32)


def _json_list_length_of_each_text(
    columns: FileEventColumns, string_codes: StringCodes, is_valid_element: Any
) -> NDArray[np.int64]:
    """Returns the length of the JSON list in each text; negative if it is invalid or absent."""
    known = np.unique(string_codes[string_codes != NO_STRING_CODE])
    if not known.size:
        return np.full(string_codes.size, _LENGTH_OF_ABSENT_LIST, np.int64)
    texts = columns.decode_strings(known).cast(str).to_list()
    counts = np.array([_json_list_length(text, is_valid_element) for text in texts], np.int64)
    place = np.minimum(np.searchsorted(known, string_codes), known.size - 1)
    return np.where(string_codes == NO_STRING_CODE, _LENGTH_OF_ABSENT_LIST, counts[place])


def _json_list_length(json_text: str, is_valid_element: Any) -> int:
    try:
        found = _JSON_LIST_DECODER.decode(json_text)
    except (msgspec.DecodeError, RecursionError):
        return _LENGTH_OF_INVALID_LIST
    return len(found) if all(map(is_valid_element, found)) else _LENGTH_OF_INVALID_LIST


def _is_size_list_or_no_tensor(value: object) -> bool:
    """Returns whether a value is the shape of a tensor or tensor list, or `""` for no tensor."""
    if isinstance(value, list):
        return all(type(inner) is int or _is_size_list_or_no_tensor(inner) for inner in value)
    return value == ""
