"""What operators are told apart by, beyond their name: shapes, Python stacks, source lines."""

import json
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.nesting import NONE, nearest
from selftime.trace import Trace
from selftime.views.accounts.named import whose_name

__all__ = ["input_shapes", "source_lines", "stacks"]

Ints = NDArray[np.int64]

_UNWANTED: Final = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
)
"""Frames of autograd's own entry that torch's stacks leave out."""


def input_shapes(trace: Trace, ids: pl.Series) -> pl.Series:
    """Shapes of the inputs as torch's tables tell them apart: a list of tensors is `[]`."""
    told = _joined(trace.op_args.select("id", "input_shapes"), ids)["input_shapes"]
    unique = told.drop_nulls().unique().cast(pl.String)
    plain = {text: _plain_shapes(text) for text in unique.to_list()}
    return told.cast(pl.String).fill_null("[]").replace(plain)


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


def source_lines(trace: Trace, ids: pl.Series) -> pl.DataFrame:
    """File, line, function, and how they are known, for each slice; null where unknown."""
    return _joined(trace.lines, ids).with_columns(pl.col("file", "function", "how").cast(pl.String))


def stacks(trace: Trace, ids: pl.Series, frames: int) -> pl.Series:
    """The innermost frames of each slice, joined by `;`: as written, else from Python frames.

    A backward node and what runs within it have the stack of the forward operator. Python frames
    have that of their caller.
    """
    forward = _forward(trace, ids)
    told = _joined(trace.op_args.select("id", "call_stack"), forward)["call_stack"]
    unique = told.drop_nulls().unique().cast(pl.String)
    cut = {text: _cut(text, frames) for text in unique.to_list()}
    written = told.cast(pl.String).replace(cut)
    return written.fill_null(_frame_stacks(trace, forward, frames))


def _cut(stack: str, frames: int) -> str:
    entries = [entry for entry in stack.replace("\n", ";").split(";") if entry.strip()]
    return ";".join([entry for entry in entries if _is_wanted(entry)][:frames])


def _is_wanted(entry: str) -> bool:
    return not any(file in entry and name in entry for file, name in _UNWANTED)


def _forward(trace: Trace, ids: pl.Series) -> pl.Series:
    """For slices in a backward node: the forward operator, if it is known; else they themselves."""
    forward = np.full(trace.slices.height, NONE, np.int64)
    known = trace.op_args.filter(pl.col("forward").is_not_null())
    forward[known["id"].to_numpy()] = known["forward"].cast(pl.Int64).to_numpy()
    around = _autograd_rows(trace)
    parent = trace.slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
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
    found[whose_name(trace.slices, names.is_backward_node)["id"].to_numpy()] = True
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
    caller = np.full(trace.slices.height, NONE, np.int64)
    known = trace.frame_args.filter(pl.col("caller").is_not_null())
    caller[known["id"].to_numpy()] = known["caller"].cast(pl.Int64).to_numpy()
    wanted = np.zeros(trace.slices.height, bool)
    wanted[whose_name(trace.slices, _is_wanted)["id"].to_numpy()] = True
    around = _joined(trace.op_args.select("id", "frame"), ids)["frame"].cast(pl.Int64)
    own = ids.cast(pl.Int64).to_numpy()
    here = nearest(caller, wanted, np.where(around.is_null(), caller[own], around.fill_null(NONE)))
    parts: list[pl.Series] = []
    while len(parts) < frames and (here != NONE).any():
        place = pl.Series(here, dtype=pl.Int64)
        name = trace.slices["name"].gather(place.set(place == NONE, None).cast(pl.UInt32))
        parts.append(name.cast(pl.String).alias(f"frame{len(parts)}"))
        here = nearest(caller, wanted, np.where(here == NONE, NONE, caller[here]))
    if not parts:
        return pl.Series([None] * ids.len(), dtype=pl.String)
    joined = pl.DataFrame(parts).select(pl.concat_str(pl.all(), separator=";", ignore_nulls=True))
    text = joined.to_series()
    return text.set(text == "", None)


def _joined(table: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    asked = pl.DataFrame({"id": ids.cast(pl.UInt32)})
    return asked.join(table, on="id", how="left", maintain_order="left")
