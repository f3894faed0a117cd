"""Groups slices and operators by name, input shapes, or Python stack."""

import json
from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.slice_arguments import (
    arguments_of_slices,
    caller_of_every_frame,
    parent_of_every_slice,
)
from selftime.analysis.slice_filters import filter_by_name, matches_name
from selftime.array_types import Ints
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.schema import NameType
from selftime.trace import Trace

_AUTOGRAD_ENTRY_FRAMES: Final = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
)
"""File and function of autograd's entry points, frames that the stacks in torch's tables leave out.
"""


def equal_row_group_numbers(columns: pl.DataFrame) -> Ints:
    """Returns a number for each row of a table; rows get equal numbers if all values are equal."""
    found, size = np.zeros(columns.height, np.int64), 1
    for column in columns:
        codes, many = _codes_of_column_values(column)
        if size > _MAX_CODES_WITHOUT_RENUMBERING // max(many, 1):
            _, found = np.unique(found, return_inverse=True)
            size = columns.height + 1
        found, size = found * many + codes, size * many
        if (
            columns.width > _MAX_COLUMNS_WITH_GAPS_IN_NUMBERS
            and size
            <= _MAX_LOOKUP_TABLE_ENTRIES_PER_ROW * max(found.size, _MAX_SMALL_LOOKUP_TABLE_ENTRIES)
        ):
            found, size = _renumbered_without_gaps(found, size)
    return found


def _renumbered_without_gaps(numbers: Ints, code_count: int) -> tuple[Ints, int]:
    """Returns the numbers mapped to 0, 1, 2, ... in the same order, and how many there are."""
    known = np.zeros(code_count, bool)
    known[numbers] = True
    return (np.cumsum(known) - 1)[numbers], int(np.count_nonzero(known))


def group_and_first_row_of_rows(columns: pl.DataFrame) -> tuple[Ints, Ints]:
    """Returns each row's group number (equal rows are a group), and each group's first row."""
    numbers = equal_row_group_numbers(columns)
    many = int(numbers.max(initial=-1)) + 1
    if many > max(_MAX_SMALL_LOOKUP_TABLE_ENTRIES, numbers.size):
        _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
        return group, first
    place = np.full(many, NO_SLICE, np.int64)
    place[numbers[::-1]] = np.arange(numbers.size - 1, -1, -1)
    known = np.flatnonzero(place != NO_SLICE)
    group_of = np.zeros(many, np.int64)
    group_of[known] = np.arange(known.size)
    return group_of[numbers], place[known]


def slice_codes_by_category_and_name(
    slices: pl.DataFrame, code_of: Callable[[str, str], int]
) -> NDArray[np.int8]:
    """Returns `code_of(category, name)` for each slice; calls it once per distinct pair."""
    group, first = group_and_first_row_of_rows(slices.select("category", "name"))
    pairs = slices.select("category", "name")[pl.Series(first)].cast(pl.String)
    codes = [code_of(category or "", name or "") for category, name in pairs.iter_rows()]
    return np.asarray(np.array(codes, np.int8)[group])


_MAX_CODES_WITHOUT_RENUMBERING: Final = 1 << 62
"""Largest number of possible codes that are used as they are; more are first renumbered by sorting.
"""
_MAX_SMALL_LOOKUP_TABLE_ENTRIES: Final = 1 << 16
"""Largest number of entries for which a lookup table is used whatever the number of rows."""
_MAX_COLUMNS_WITH_GAPS_IN_NUMBERS: Final = 2
"""Largest number of columns for which row numbers may have gaps; with more columns, lookup tables
would be large.
"""
_MAX_LOOKUP_TABLE_ENTRIES_PER_ROW: Final = 8
"""Largest size of a lookup table, in entries per row, that costs less than sorting the rows."""


def _codes_of_column_values(column: pl.Series) -> tuple[Ints, int]:
    """Returns a code for each value (from 1; 0 is null), and the number of possible codes."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical)
    numbers = column.to_physical()
    low = int(numbers.min() or 0)  # type: ignore[arg-type]  # whole numbers
    if numbers.null_count():
        codes = (numbers.cast(pl.Int64) - (low - 1)).fill_null(0).to_numpy()
    else:
        codes = numbers.to_numpy().astype(np.int64) - (low - 1)
    return codes, int(codes.max(initial=0)) + 1


def map_distinct_names(column: pl.Series, transform: Callable[[str], str]) -> pl.Series:
    """Returns a column of names with `transform` applied to each distinct name; nulls stay null."""
    unique = column.drop_nulls().unique()
    changed = [transform(text) for text in unique.cast(pl.String).to_list()]
    codes = unique.to_physical()
    place = np.zeros(int(codes.max() or 0) + 1, np.uint32)  # type: ignore[arg-type]  # whole numbers
    place[codes.to_numpy()] = np.arange(unique.len())
    known = column.is_not_null()
    at = pl.Series(place[column.to_physical().fill_null(0).to_numpy()]).set(~known, None)
    return pl.Series(column.name, changed, dtype=pl.Categorical).gather(at)


def recorded_operator_argument(trace: Trace, slice_ids: pl.Series, column: str) -> pl.Series:
    """Returns one column of the trace's table `op_args`, with one value per given slice."""
    return arguments_of_slices(trace, "op_args", slice_ids, column)[column]


def input_shapes(trace: Trace, ids: pl.Series) -> pl.Series:
    """Returns each operator's input shapes as JSON text, in which a list of tensors is `[]`."""
    shapes = map_distinct_names(
        recorded_operator_argument(trace, ids, "input_shapes"), _replace_tensor_lists_by_empty
    )
    untold = shapes.is_null()
    return shapes.clone().scatter(untold.arg_true(), pl.Series(["[]"], dtype=shapes.dtype))


def _replace_tensor_lists_by_empty(shapes_json: str) -> str:
    """Returns input shapes as JSON in which `[]` replaces each list of tensors."""
    try:
        shapes = json.loads(shapes_json)
    except ValueError:
        return shapes_json
    if not isinstance(shapes, list):
        return shapes_json
    return json.dumps([[] if _is_list_of_shapes(shape) else shape for shape in shapes])


def _is_list_of_shapes(shape: object) -> bool:
    return isinstance(shape, list) and any(isinstance(size, list) for size in shape)


def python_stacks_of_operators(trace: Trace, slice_ids: pl.Series, max_frames: int) -> pl.Series:
    """Returns each slice's innermost `max_frames` Python frames, joined by `;`; null if unknown.

    The recorded stack is used where there is one, else the recorded Python frames. A backward node
    and the slices inside it have the stack of the forward operator. A Python frame has the stack of
    its caller.
    """
    nothing = pl.Series([None], dtype=NameType).new_from_index(0, slice_ids.len())
    if not trace.frame_args.height and not trace.op_args["call_stack"].is_not_null().any():
        return nothing
    forward = _forward_operators_of_slices(trace, slice_ids)
    written = map_distinct_names(
        recorded_operator_argument(trace, forward, "call_stack"),
        lambda text: _innermost_frames_of_stack(text, max_frames),
    )
    return written.zip_with(
        written.is_not_null(), _recorded_frame_stacks(trace, forward, max_frames)
    )


def _innermost_frames_of_stack(stack: str, max_frames: int) -> str:
    entries = [entry for entry in stack.replace("\n", ";").split(";") if entry.strip()]
    return ";".join(
        [entry for entry in entries if _is_not_autograd_entry_frame(entry)][:max_frames]
    )


def _is_not_autograd_entry_frame(frame: str) -> bool:
    return not any(file in frame and name in frame for file, name in _AUTOGRAD_ENTRY_FRAMES)


def _forward_operators_of_slices(trace: Trace, slice_ids: pl.Series) -> pl.Series:
    """Replaces each slice inside a backward node by its forward operator; keeps other slices."""
    forward = np.full(trace.slices.height, NO_SLICE, np.int64)
    known = trace.op_args.select("id", "forward").drop_nulls()
    forward[known["id"].to_numpy()] = known["forward"].cast(pl.Int64).to_numpy()
    around = _is_autograd_node_slice(trace)
    parent = parent_of_every_slice(trace)
    inner = np.flatnonzero((parent != NO_SLICE) & (forward == NO_SLICE))
    inner = inner[around[parent[inner]]]
    inner = inner[_outer_name_ends_with_inner_name(trace, inner, parent[inner])]
    forward[inner] = forward[
        parent[inner]
    ]  # a node without a number: autograd's slice around it has one
    forward[around] = NO_SLICE
    own = slice_ids.cast(pl.Int64).to_numpy()
    node = nearest_ancestor(parent, forward != NO_SLICE, own)
    return pl.Series("id", np.where(node == NO_SLICE, own, forward[node]), dtype=pl.UInt32)


def _is_autograd_node_slice(trace: Trace) -> NDArray[np.bool_]:
    """Flags the slices that autograd records around the nodes of the backward pass."""
    found = np.zeros(trace.slices.height, bool)
    found[filter_by_name(trace.slices, names.is_backward_node)["id"].to_numpy()] = True
    return found


def _outer_name_ends_with_inner_name(trace: Trace, inner: Ints, outer: Ints) -> NDArray[np.bool_]:
    """Flags pairs of slices in which the outer slice's name ends with the inner slice's name."""
    name = trace.slices["name"]
    ends = pl.DataFrame({"outer": name.gather(outer), "inner": name.gather(inner)}).select(
        pl.col("outer").cast(pl.String).str.ends_with(pl.lit(" ") + pl.col("inner").cast(pl.String))
    )
    return ends.to_series().to_numpy()


def _recorded_frame_stacks(trace: Trace, slice_ids: pl.Series, max_frames: int) -> pl.Series:
    """Returns the joined names of the Python frames around each slice, innermost first."""
    caller, wanted = (
        caller_of_every_frame(trace),
        matches_name(trace.slices, _is_not_autograd_entry_frame),
    )
    around = arguments_of_slices(trace, "op_args", slice_ids, "frame")["frame"].cast(pl.Int64)
    own = slice_ids.cast(pl.Int64).to_numpy()
    here = nearest_ancestor(
        caller, wanted, np.where(around.is_null(), caller[own], around.fill_null(NO_SLICE))
    )
    parts = [here]
    while len(parts) < max_frames and (here != NO_SLICE).any():
        here = nearest_ancestor(caller, wanted, np.where(here == NO_SLICE, NO_SLICE, caller[here]))
        parts.append(here)
    return _joined_slice_names(trace.slices["name"], parts)


def _joined_slice_names(slice_names: pl.Series, id_columns: list[Ints]) -> pl.Series:
    """Joins, for each row of the id columns, the names of the row's slices with `;`."""
    columns = [
        slice_names.gather(
            pl.Series(part).set(pl.Series(part == NO_SLICE), None).cast(pl.UInt32)
        ).alias(str(n))
        for n, part in enumerate(id_columns)
    ]
    inverse, first = group_and_first_row_of_rows(pl.DataFrame(columns))
    distinct = pl.DataFrame([column.gather(first).cast(pl.String) for column in columns])
    text = distinct.select(pl.concat_str(pl.all(), separator=";", ignore_nulls=True)).to_series()
    return text.set(text == "", None).cast(NameType).gather(inverse)
