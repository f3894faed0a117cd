"""Find the source line of each operator, by the best evidence in the file.

A recording by selftime has the executing lines. Traces of 2021 have them in `Call stack`, with
absolute paths. Later traces have only the line where a function is defined, in `Call stack` and in
Python frames: the innermost frame of the user's own code is taken, and marked `definition`. A
backward operator has the line of its forward operator, but what adds to the gradients of parameters
has none of these: whole buckets of gradients are reduced from within it.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names, schema
from selftime.ingest.facts import line_table
from selftime.nesting import NONE, nearest

_ANSWERS: Final = ("user", "library")
"""Origins of the frames that give a line: the user's code first, then a library's."""


def operator_lines(
    metadata: Mapping[str, Any], slices: pl.DataFrame, ops: pl.DataFrame, frames: pl.DataFrame
) -> pl.DataFrame:
    """Returns the table `lines`, one row for each operator whose line is known."""
    saved = _declared(line_table(metadata, ops))
    stacked = _from_call_stacks(metadata, ops, frames)
    framed = _from_frames(slices, ops, frames)
    found = pl.concat([saved, stacked, framed]).unique("id", keep="first", maintain_order=True)
    return pl.concat([found, _backward(slices, ops, found)]).sort("id")


def _from_call_stacks(
    metadata: Mapping[str, Any], ops: pl.DataFrame, frames: pl.DataFrame
) -> pl.DataFrame:
    with_stack = ops.filter(pl.col("call_stack").is_not_null()).select("id", "call_stack")
    executing = not frames.height and "baseTimeNanoseconds" not in metadata
    how = "stack" if executing else "definition"
    unique = with_stack["call_stack"].unique()
    chosen = {text: _choose(text) for text in unique.cast(pl.String).to_list()}
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
    return _declared(found.with_columns(how=pl.lit(how)))


def _choose(stack: str) -> names.Frame | None:
    """Returns the innermost frame of user code, else of a library; stacks begin innermost."""
    frames = [names.frame(entry) for entry in stack.replace("\n", ";").split(";")]
    known = [frame for frame in frames if frame is not None]
    for origin in _ANSWERS:
        for frame in known:
            if frame.origin == origin:
                return frame
    return None


def _from_frames(slices: pl.DataFrame, ops: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    if not frames.height:
        return schema.LINES.empty()
    framed = slices["name"].gather(frames["id"])
    unique = framed.unique()
    parsed = {text: names.frame(text) for text in unique.cast(pl.String).to_list()}
    caller = np.full(slices.height, NONE, np.int64)
    caller[frames["id"].to_numpy()] = frames["caller"].cast(pl.Int64).fill_null(NONE).to_numpy()
    inner = ops["frame"].cast(pl.Int64).fill_null(NONE).to_numpy()
    found = np.full(inner.size, NONE, np.int64)
    for origin in _ANSWERS:
        texts = [text for text, frame in parsed.items() if frame and frame.origin == origin]
        wanted = np.zeros(slices.height, bool)
        wanted[frames["id"].filter(framed.cast(pl.String).is_in(texts)).to_numpy()] = True
        found = np.where(found == NONE, nearest(caller, wanted, inner), found)
    table = pl.DataFrame({"id": ops["id"], "frame": found}).filter(pl.col("frame") != NONE)
    name = slices["name"].gather(table["frame"].cast(pl.UInt32)).cast(pl.String)
    answers = pl.DataFrame(
        [(text, frame.file, frame.line, frame.function) for text, frame in parsed.items() if frame],
        schema={"name": pl.String, "file": pl.String, "line": pl.Int32, "function": pl.String},
        orient="row",
    )
    return _declared(
        table.with_columns(name=name)
        .join(answers, on="name")
        .with_columns(how=pl.lit("definition"))
    )


def _backward(slices: pl.DataFrame, ops: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of backward operators, from the forward operator of their node."""
    forward = np.full(slices.height, NONE, np.int64)
    known = ops.filter(pl.col("forward").is_not_null())
    forward[known["id"].to_numpy()] = known["forward"].cast(pl.Int64).to_numpy()
    named = slices["name"].gather(ops["id"])
    adds = [t for t in named.unique().cast(pl.String).to_list() if names.accumulates_gradient(t)]
    forward[ops["id"].filter(named.is_in(adds)).to_numpy()] = NONE
    parent = slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()
    without = ops.select("id").join(found, on="id", how="anti")["id"].cast(pl.Int64).to_numpy()
    node = nearest(parent, forward != NONE, without)
    table = pl.DataFrame({"own": without, "node": node}).filter(pl.col("node") != NONE)
    table = table.with_columns(id=pl.Series(forward[table["node"].to_numpy()], dtype=pl.UInt32))
    return _declared(table.join(found, on="id").with_columns(id=pl.col("own")))


def _declared(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the table with the declared columns; a module's definition has no line."""
    whole_file = (pl.col("function") == "<module>") & (pl.col("how") == "definition")
    table = table.with_columns(line=pl.when(~whole_file.fill_null(value=False)).then("line"))
    columns = [pl.col(column.name).cast(column.dtype) for column in schema.LINES.columns]
    return table.select(columns)
