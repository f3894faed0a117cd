"""Finds the Python source line of each operator, from recorded lines, stacks or frames.

A recording by selftime has the executing lines. Traces of 2021 have them in `Call stack`, with
absolute paths. Later traces have only the line where a function is defined, in `Call stack` and in
Python frames: the innermost frame of the user's own code is taken, else of a library's, and marked
`definition`. A library's function that intercepts operators hands them on, so its caller counts. A
backward operator has the line of its forward operator, but what adds to the gradients of parameters
has none of these: whole buckets of gradients are reduced from within it.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names, schema
from selftime.ingest.recorded_facts import recorded_line_table
from selftime.names.tensor_operators import intercepts_operators
from selftime.nesting import NO_SLICE, nearest_ancestor

_FRAME_KINDS_BY_PREFERENCE: Final = ("user", "library", "handler")
"""Kinds of the Python frames that give an operator its source line; user code is preferred."""


def source_lines_of_operators(
    metadata: Mapping[str, Any], slices: pl.DataFrame, ops: pl.DataFrame, frames: pl.DataFrame
) -> pl.DataFrame:
    """Returns the table `lines`, with one row for each operator whose source line is known."""
    saved = _table_in_schema_of_lines(recorded_line_table(metadata, ops))
    stacked = _lines_from_call_stacks(metadata, ops, frames)
    framed = _lines_from_python_frames(slices, ops, frames)
    found = pl.concat([saved, stacked, framed]).unique("id", keep="first", maintain_order=True)
    return pl.concat([found, _lines_of_backward_operators(slices, ops, found)]).sort("id")


def _lines_from_call_stacks(
    metadata: Mapping[str, Any], ops: pl.DataFrame, frames: pl.DataFrame
) -> pl.DataFrame:
    with_stack = ops.filter(pl.col("call_stack").is_not_null()).select("id", "call_stack")
    is_old = "baseTimeNanoseconds" not in metadata or "selftime_clock" in metadata
    executing = not frames.height and is_old
    how = "stack" if executing else "definition"
    unique = with_stack["call_stack"].unique()
    chosen = {text: _preferred_frame(text) for text in unique.cast(pl.String).to_list()}
    answers = [(text, f.file, f.line, f.function) for text, f in chosen.items() if f is not None]
    texts = pl.DataFrame(
        answers,
        schema={
            "call_stack": pl.String,
            "file": pl.String,
            "line": pl.Int32,
            "function": pl.String,
        },
        orient="row",
    )
    found = with_stack.with_columns(pl.col("call_stack").cast(pl.String)).join(
        texts, on="call_stack"
    )
    return _table_in_schema_of_lines(found.with_columns(how=pl.lit(how)))


def _preferred_frame(call_stack: str) -> names.Frame | None:
    """Returns the innermost user frame of a call stack, or else the innermost library frame."""
    entries = call_stack.replace("\n", ";").split(";")
    known = {text: frame for text in entries if (frame := names.parse_frame(text)) is not None}
    for kind in _FRAME_KINDS_BY_PREFERENCE:
        for text, frame in known.items():
            if _frame_kind(text, frame) == kind:
                return frame
    return None


def _frame_kind(text: str, frame: names.Frame) -> str:
    """Returns the frame's origin; `handler` if it is a library's that intercepts operators."""
    is_handler = frame.origin == "library" and intercepts_operators(text)
    return "handler" if is_handler else frame.origin


def _lines_from_python_frames(
    slices: pl.DataFrame, ops: pl.DataFrame, frames: pl.DataFrame
) -> pl.DataFrame:
    if not frames.height:
        return schema.LINES.empty()
    framed = slices["name"].gather(frames["id"])
    unique = framed.unique()
    parsed = {text: names.parse_frame(text) for text in unique.cast(pl.String).to_list()}
    caller = np.full(slices.height, NO_SLICE, np.int64)
    caller[frames["id"].to_numpy()] = frames["caller"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    inner = ops["frame"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    found = np.full(inner.size, NO_SLICE, np.int64)
    for kind in _FRAME_KINDS_BY_PREFERENCE:
        texts = [
            text for text, frame in parsed.items() if frame and _frame_kind(text, frame) == kind
        ]
        wanted = np.zeros(slices.height, bool)
        wanted[frames["id"].filter(framed.cast(pl.String).is_in(texts)).to_numpy()] = True
        found = np.where(found == NO_SLICE, nearest_ancestor(caller, wanted, inner), found)
    table = pl.DataFrame({"id": ops["id"], "frame": found}).filter(pl.col("frame") != NO_SLICE)
    name = slices["name"].gather(table["frame"].cast(pl.UInt32)).cast(pl.String)
    answers = pl.DataFrame(
        [(text, frame.file, frame.line, frame.function) for text, frame in parsed.items() if frame],
        schema={"name": pl.String, "file": pl.String, "line": pl.Int32, "function": pl.String},
        orient="row",
    )
    return _table_in_schema_of_lines(
        table.with_columns(name=name)
        .join(answers, on="name")
        .with_columns(how=pl.lit("definition"))
    )


def _lines_of_backward_operators(
    slices: pl.DataFrame, ops: pl.DataFrame, lines_so_far: pl.DataFrame
) -> pl.DataFrame:
    """Returns backward operators' source lines: those of the matching forward operators."""
    forward = np.full(slices.height, NO_SLICE, np.int64)
    known = ops.filter(pl.col("forward").is_not_null())
    forward[known["id"].to_numpy()] = known["forward"].cast(pl.Int64).to_numpy()
    named = slices["name"].gather(ops["id"])
    adds = [t for t in named.unique().cast(pl.String).to_list() if names.accumulates_gradient(t)]
    forward[ops["id"].filter(named.is_in(adds)).to_numpy()] = NO_SLICE
    parent = slices["parent"].cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    without = (
        ops.select("id").join(lines_so_far, on="id", how="anti")["id"].cast(pl.Int64).to_numpy()
    )
    node = nearest_ancestor(parent, forward != NO_SLICE, without)
    table = pl.DataFrame({"own": without, "node": node}).filter(pl.col("node") != NO_SLICE)
    table = table.with_columns(id=pl.Series(forward[table["node"].to_numpy()], dtype=pl.UInt32))
    return _table_in_schema_of_lines(
        table.join(lines_so_far, on="id").with_columns(id=pl.col("own"))
    )


def _table_in_schema_of_lines(table: pl.DataFrame) -> pl.DataFrame:
    """Returns a table with the columns of the table `lines`; module-level code has a null line."""
    whole_file = (pl.col("function") == "<module>") & (pl.col("how") == "definition")
    table = table.with_columns(line=pl.when(~whole_file.fill_null(value=False)).then("line"))
    columns = [pl.col(column.name).cast(column.dtype) for column in schema.LINES.columns]
    return table.select(columns)
