"""What operators are told apart by, beyond their name: shapes, Python stacks, source lines."""

import json
from typing import Final

import numpy as np
import polars as pl

from selftime.nesting import NONE
from selftime.trace import Trace

__all__ = ["input_shapes", "source_lines", "stacks"]

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

    A backward operator has the stack of its forward operator.
    """
    forward = _forward(trace, ids)
    told = _joined(trace.op_args.select("id", "call_stack"), forward)["call_stack"]
    unique = told.drop_nulls().unique().cast(pl.String)
    cut = {text: _cut(text, frames) for text in unique.to_list()}
    written = told.cast(pl.String).replace(cut)
    return written.fill_null(_frame_stacks(trace, forward, frames))


def _cut(stack: str, frames: int) -> str:
    entries = [entry for entry in stack.replace("\n", ";").split(";") if entry.strip()]
    wanted = [e for e in entries if not any(file in e and name in e for file, name in _UNWANTED)]
    return ";".join(wanted[:frames])


def _forward(trace: Trace, ids: pl.Series) -> pl.Series:
    """Each slice's forward operator, its own or that of the backward operator around it."""
    forward = np.full(trace.slices.height, NONE, np.int64)
    known = trace.op_args.filter(pl.col("forward").is_not_null())
    forward[known["id"].to_numpy()] = known["forward"].cast(pl.Int64).to_numpy()
    parent = trace.slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    own = ids.cast(pl.Int64).to_numpy()
    at, found = own.copy(), own.copy()
    climbing = np.arange(own.size)
    while climbing.size:
        here = forward[at[climbing]]
        found[climbing[here != NONE]] = here[here != NONE]
        climbing = climbing[here == NONE]
        at[climbing] = parent[at[climbing]]
        climbing = climbing[at[climbing] != NONE]
    return pl.Series("id", found, dtype=pl.UInt32)


def _frame_stacks(trace: Trace, ids: pl.Series, frames: int) -> pl.Series:
    """The names of the Python frames around each slice, innermost first."""
    caller = np.full(trace.slices.height, NONE, np.int64)
    known = trace.frame_args.filter(pl.col("caller").is_not_null())
    caller[known["id"].to_numpy()] = known["caller"].cast(pl.Int64).to_numpy()
    at = _joined(trace.op_args.select("id", "frame"), ids)["frame"].cast(pl.Int64).fill_null(NONE)
    here = at.to_numpy()
    parts = []
    for _ in range(frames):
        place = pl.Series(here, dtype=pl.Int64)
        name = trace.slices["name"].gather(place.set(place == NONE, None).cast(pl.UInt32))
        parts.append(name.cast(pl.String))
        here = np.where(here == NONE, NONE, caller[here])
    joined = pl.DataFrame({f"frame{n}": part for n, part in enumerate(parts)})
    if not parts:
        return pl.Series([None] * ids.len(), dtype=pl.String)
    text = joined.select(pl.concat_str(pl.all(), separator=";", ignore_nulls=True)).to_series()
    return text.set(text == "", None)


def _joined(table: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    asked = pl.DataFrame({"id": ids.cast(pl.UInt32)})
    return asked.join(table, on="id", how="left", maintain_order="left")
