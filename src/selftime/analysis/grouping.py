"""What operators are told apart by, beyond their name: shapes and Python stacks."""

import json
from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.parents import callers, parents
from selftime.analysis.slice_arguments import arguments_of
from selftime.analysis.slice_filters import filter_by_name, matches_name
from selftime.arrays import Ints
from selftime.nesting import NONE, nearest
from selftime.schema import Name
from selftime.trace import Trace

_UNWANTED: Final = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
)
"""Frames of autograd's own entry that torch's stacks leave out."""


def group_numbers(columns: pl.DataFrame) -> Ints:
    """One number for each distinct row, for columns of names, texts and whole numbers."""
    found, size = np.zeros(columns.height, np.int64), 1
    for column in columns:
        codes, many = _codes(column)
        if size > _MOST_CODES // max(many, 1):
            _, found = np.unique(found, return_inverse=True)
            size = columns.height + 1
        found, size = found * many + codes, size * many
        if columns.width > _FEW_COLUMNS and size <= _SPARSE * max(found.size, _FEW_CODES):
            found, size = _dense(found, size)
    return found


def _dense(numbers: Ints, size: int) -> tuple[Ints, int]:
    """The numbers without gaps, in the same order, and how many there are."""
    known = np.zeros(size, bool)
    known[numbers] = True
    return (np.cumsum(known) - 1)[numbers], int(np.count_nonzero(known))


def grouped(columns: pl.DataFrame) -> tuple[Ints, Ints]:
    """A group for each row, from 0 on, and the first row of each group; as `group_numbers`."""
    numbers = group_numbers(columns)
    many = int(numbers.max(initial=-1)) + 1
    if many > max(_FEW_CODES, numbers.size):
        _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
        return group, first
    place = np.full(many, NONE, np.int64)
    place[numbers[::-1]] = np.arange(numbers.size - 1, -1, -1)
    known = np.flatnonzero(place != NONE)
    group_of = np.zeros(many, np.int64)
    group_of[known] = np.arange(known.size)
    return group_of[numbers], place[known]


def by_kind(slices: pl.DataFrame, read: Callable[[str, str], int]) -> NDArray[np.int8]:
    """A number for each slice from its category and name; each pair of them is looked at once."""
    group, first = grouped(slices.select("category", "name"))
    pairs = slices.select("category", "name")[pl.Series(first)].cast(pl.String)
    told = [read(category or "", name or "") for category, name in pairs.iter_rows()]
    return np.asarray(np.array(told, np.int8)[group])


_MOST_CODES: Final = 1 << 62
_FEW_CODES: Final = 1 << 16
"""A table of so many is filled at once."""
_FEW_COLUMNS: Final = 2
"""The numbers of more columns are kept without gaps, lest they soon be too large for a table."""
_SPARSE: Final = 8
"""A table of so many to each row costs less than sorting the rows."""


def _codes(column: pl.Series) -> tuple[Ints, int]:
    """A number from 0 for each value, 0 for an unknown one, and how many there may be."""
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical)
    numbers = column.to_physical()
    low = int(numbers.min() or 0)  # type: ignore[arg-type]  # whole numbers
    if numbers.null_count():
        codes = (numbers.cast(pl.Int64) - (low - 1)).fill_null(0).to_numpy()
    else:
        codes = numbers.to_numpy().astype(np.int64) - (low - 1)
    return codes, int(codes.max(initial=0)) + 1


def recoded(column: pl.Series, change: Callable[[str], str]) -> pl.Series:
    """A column of names with each distinct name changed; unknown ones stay unknown."""
    unique = column.drop_nulls().unique()
    changed = [change(text) for text in unique.cast(pl.String).to_list()]
    codes = unique.to_physical()
    place = np.zeros(int(codes.max() or 0) + 1, np.uint32)  # type: ignore[arg-type]  # whole numbers
    place[codes.to_numpy()] = np.arange(unique.len())
    known = column.is_not_null()
    at = pl.Series(place[column.to_physical().fill_null(0).to_numpy()]).set(~known, None)
    return pl.Series(column.name, changed, dtype=pl.Categorical).gather(at)


def told(trace: Trace, ids: pl.Series, column: str) -> pl.Series:
    """A column of the operators' arguments for these slices."""
    return arguments_of(trace, "op_args", ids, column)[column]


def input_shapes(trace: Trace, ids: pl.Series) -> pl.Series:
    """Shapes of the inputs as torch's tables tell them apart: a list of tensors is `[]`."""
    shapes = recoded(told(trace, ids, "input_shapes"), _plain_shapes)
    untold = shapes.is_null()
    return shapes.clone().scatter(untold.arg_true(), pl.Series(["[]"], dtype=shapes.dtype))


def _plain_shapes(text: str) -> str:
    try:
        shapes = json.loads(text)
    except ValueError:
        return text
    if not isinstance(shapes, list):
        return text
    return json.dumps([[] if _is_nested(shape) else shape for shape in shapes])


def _is_nested(shape: object) -> bool:
    return isinstance(shape, list) and any(isinstance(size, list) for size in shape)


def stacks(trace: Trace, ids: pl.Series, frames: int) -> pl.Series:
    """The innermost frames of each slice, joined by `;`: as written, else from Python frames.

    A backward node and what runs within it have the stack of the forward operator. Python frames
    have that of their caller.
    """
    nothing = pl.Series([None], dtype=Name).new_from_index(0, ids.len())
    if not trace.frame_args.height and not trace.op_args["call_stack"].is_not_null().any():
        return nothing
    forward = _forward(trace, ids)
    written = recoded(told(trace, forward, "call_stack"), lambda text: _cut(text, frames))
    return written.zip_with(written.is_not_null(), _frame_stacks(trace, forward, frames))


def _cut(stack: str, frames: int) -> str:
    entries = [entry for entry in stack.replace("\n", ";").split(";") if entry.strip()]
    return ";".join([entry for entry in entries if _is_wanted(entry)][:frames])


def _is_wanted(entry: str) -> bool:
    return not any(file in entry and name in entry for file, name in _UNWANTED)


def _forward(trace: Trace, ids: pl.Series) -> pl.Series:
    """For slices in a backward node: the forward operator, if it is known; else they themselves."""
    forward = np.full(trace.slices.height, NONE, np.int64)
    known = trace.op_args.select("id", "forward").drop_nulls()
    forward[known["id"].to_numpy()] = known["forward"].cast(pl.Int64).to_numpy()
    around = _autograd_rows(trace)
    parent = parents(trace)
    inner = np.flatnonzero((parent != NONE) & (forward == NONE))
    inner = inner[around[parent[inner]]]
    inner = inner[_named_by(trace, inner, parent[inner])]
    forward[inner] = forward[parent[inner]]  # a node without a number: its row knows
    forward[around] = NONE
    own = ids.cast(pl.Int64).to_numpy()
    node = nearest(parent, forward != NONE, own)
    return pl.Series("id", np.where(node == NONE, own, forward[node]), dtype=pl.UInt32)


def _autograd_rows(trace: Trace) -> NDArray[np.bool_]:
    """Rows of autograd's own around nodes: they run where `backward` was called."""
    found = np.zeros(trace.slices.height, bool)
    found[filter_by_name(trace.slices, names.is_backward_node)["id"].to_numpy()] = True
    return found


def _named_by(trace: Trace, inner: Ints, outer: Ints) -> NDArray[np.bool_]:
    """Whether the outer slice's name ends with the inner's."""
    name = trace.slices["name"]
    ends = pl.DataFrame({"outer": name.gather(outer), "inner": name.gather(inner)}).select(
        pl.col("outer").cast(pl.String).str.ends_with(pl.lit(" ") + pl.col("inner").cast(pl.String))
    )
    return ends.to_series().to_numpy()


def _frame_stacks(trace: Trace, ids: pl.Series, frames: int) -> pl.Series:
    """The names of the Python frames around each slice, innermost first."""
    caller, wanted = callers(trace), matches_name(trace.slices, _is_wanted)
    around = arguments_of(trace, "op_args", ids, "frame")["frame"].cast(pl.Int64)
    own = ids.cast(pl.Int64).to_numpy()
    here = nearest(caller, wanted, np.where(around.is_null(), caller[own], around.fill_null(NONE)))
    parts = [here]
    while len(parts) < frames and (here != NONE).any():
        here = nearest(caller, wanted, np.where(here == NONE, NONE, caller[here]))
        parts.append(here)
    return _joined_names(trace.slices["name"], parts)


def _joined_names(name: pl.Series, parts: list[Ints]) -> pl.Series:
    """The names of the slices at the same place of each part, joined by `;`; null if none."""
    columns = [
        name.gather(pl.Series(part).set(pl.Series(part == NONE), None).cast(pl.UInt32)).alias(
            str(n)
        )
        for n, part in enumerate(parts)
    ]
    inverse, first = grouped(pl.DataFrame(columns))
    distinct = pl.DataFrame([column.gather(first).cast(pl.String) for column in columns])
    text = distinct.select(pl.concat_str(pl.all(), separator=";", ignore_nulls=True)).to_series()
    return text.set(text == "", None).cast(Name).gather(inverse)
