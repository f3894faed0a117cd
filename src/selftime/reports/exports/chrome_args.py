"""The arguments of events in Kineto's spelling, from the tables that hold them."""

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec
import numpy as np
import polars as pl

from selftime.trace import Trace

_PER_US: Final = 1_000


Spelled: TypeAlias = tuple[tuple[str, str], ...]
"""Columns and what Kineto calls them."""
_ARGUMENTS: Final[dict[str, Spelled]] = {
    "op_args": (
        ("external_id", "External id"),
        ("sequence", "Sequence number"),
        ("forward_thread", "Fwd thread id"),
        ("input_shapes", "Input Dims"),
        ("input_types", "Input type"),
        ("input_strides", "Input Strides"),
        ("concrete_inputs", "Concrete Inputs"),
        ("call_stack", "Call stack"),
    ),
    "compiled_args": (
        ("backend", "kernel_backend"),
        ("kernel_file", "kernel_file"),
        ("kernel_hash", "kernel_hash"),
        ("kernel_arguments", "kernel_kwargs"),
        ("grid", "grid"),
        ("warps", "num_warps"),
        ("stages", "num_stages"),
    ),
    "call_args": (
        ("correlation", "correlation"),
        ("external_id", "External id"),
        ("bytes", "bytes"),
    ),
    "frame_args": (
        ("python_id", "Python id"),
        ("python_parent", "Python parent id"),
        ("module_id", "Python module id"),
    ),
    "device_args": (
        ("device", "device"),
        ("stream", "stream"),
        ("correlation", "correlation"),
        ("external_id", "External id"),
        ("grid", "grid"),
        ("block", "block"),
        ("registers", "registers per thread"),
        ("shared_memory", "shared memory"),
        ("blocks_per_sm", "blocks per SM"),
        ("warps_per_sm", "warps per SM"),
        ("occupancy", "est. achieved occupancy %"),
        ("bytes", "bytes"),
        ("bandwidth", "memory bandwidth (GB/s)"),
        ("graph", "graph id"),
        ("graph_node", "graph node id"),
        ("kind", "kind"),
    ),
    "collective_args": (
        ("collective", "Collective name"),
        ("dtype", "dtype"),
        ("in_elements", "In msg nelems"),
        ("out_elements", "Out msg nelems"),
        ("group_size", "Group size"),
        ("group", "Process Group Name"),
        ("group_description", "Process Group Description"),
        ("group_ranks", "Process Group Ranks"),
        ("sequence", "Seq"),
        ("rank", "Rank"),
        ("source", "Src Rank"),
        ("destination", "Dst Rank"),
    ),
    "sync_args": (
        ("kind", "cuda_sync_kind"),
        ("device", "device"),
        ("stream", "stream"),
        ("correlation", "correlation"),
        ("event", "wait_on_cuda_event_id"),
        ("waits_on_stream", "wait_on_stream"),
        ("recorded_by", "wait_on_cuda_event_record_corr_id"),
    ),
}
_LISTS: Final = frozenset(
    {"input_shapes", "input_types", "input_strides", "concrete_inputs", "kernel_arguments"}
)
"""Columns of text that hold lists in JSON as a rule."""
_GRID_AS_WRITTEN: Final = "grid"


def quoted(texts: pl.Series) -> pl.Series:
    """Names as JSON strings; null stays null."""
    distinct = texts.cast(pl.String).unique().drop_nulls()
    told = [msgspec.json.encode(text).decode() for text in distinct]
    return _mapped(texts, distinct, told)


def raw_or_quoted(texts: pl.Series) -> pl.Series:
    """Texts that hold a JSON list as that list, others as JSON strings."""
    distinct = texts.cast(pl.String).unique().drop_nulls()
    return _mapped(texts, distinct, [_raw_or_quoted(text) for text in distinct])


def _raw_or_quoted(text: str) -> str:
    if text.startswith("["):
        try:
            msgspec.json.decode(text.encode(), type=list)
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            return text
    return msgspec.json.encode(text).decode()


def _mapped(texts: pl.Series, distinct: pl.Series, told: list[str]) -> pl.Series:
    if not told:
        return pl.repeat(None, texts.len(), dtype=pl.String, eager=True)
    new = pl.Series(told, dtype=pl.String)
    return texts.cast(pl.String).replace_strict(distinct, new, default=None, return_dtype=pl.String)


def member(key: str, value: pl.Expr) -> pl.Expr:
    """`"key":value`; null where the value is."""
    return pl.concat_str(pl.lit(f"{msgspec.json.encode(key).decode()}:"), value)


def number(column: pl.Expr) -> pl.Expr:
    """A number as JSON; null where it is none."""
    return pl.when(column.is_finite()).then(column).cast(pl.String)


def triple(column: pl.Expr) -> pl.Expr:
    """Three integers as a JSON list; null stays null."""
    parts = [column.arr.get(at, null_on_oob=True).cast(pl.String) for at in range(3)]
    return pl.concat_str(pl.lit("["), pl.concat_str(parts, separator=","), pl.lit("]"))


def microseconds(nanoseconds: pl.Expr) -> pl.Expr:
    """Integer nanoseconds as decimal microseconds, exactly; whole ones without a fraction."""
    size, sign = nanoseconds.abs(), pl.when(nanoseconds < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    rest = size % _PER_US
    fraction = pl.concat_str(pl.lit("."), rest.cast(pl.String).str.zfill(3))
    return pl.concat_str(
        sign,
        (size // _PER_US).cast(pl.String),
        pl.when(rest > 0).then(fraction).otherwise(pl.lit("")),
    )


def joined(pieces: list[pl.Expr]) -> pl.Expr:
    """The members that are known, with commas between them."""
    return pl.concat_str(pieces, separator=",", ignore_nulls=True)


class Arguments:
    """Hands out the arguments of one batch of slices after the other."""

    def __init__(self, trace: Trace) -> None:
        self._tables = {name: _sorted(table) for name, table in _told(trace)}

    def texts(self, low: int, high: int) -> pl.Series:
        """The members of each slice's `args` from one to another as JSON; null if there are none.

        >>> from selftime.testing import sketch
        >>> Arguments(sketch("gpu 7 | a")).texts(0, 1).item()
        '"device":0,"stream":7'
        """
        found = pl.DataFrame({"id": np.arange(low, high, dtype=np.uint32)})
        for name, table in self._within(low, high):
            told = pl.DataFrame({"id": table["id"], name: _members(name, table)})
            found = found.join(told, on="id", how="left", maintain_order="left")
        pieces = found.drop("id")
        if not pieces.width:
            return pl.repeat(None, high - low, dtype=pl.String, eager=True)
        text = pl.concat_str(pl.all(), separator=",", ignore_nulls=True)
        return pieces.select(pl.when(text != "").then(text)).to_series()

    def columns(self, low: int, high: int) -> Iterator[tuple[str, pl.Series, pl.Series]]:
        """Kineto's name of each argument, its values that are known, and whose they are."""
        for name, table in self._within(low, high):
            for column, key in _ARGUMENTS[name]:
                known = table[column].is_not_null()
                if known.any():
                    yield key, table[column].filter(known), table["id"].filter(known)

    def _within(self, low: int, high: int) -> Iterator[tuple[str, pl.DataFrame]]:
        for name, table in self._tables.items():
            first, last = np.searchsorted(table["id"].to_numpy(), [low, high]).tolist()
            if last > first:
                yield name, table.slice(first, last - first)


def _told(trace: Trace) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each table of arguments, without what reading links."""
    for name in _ARGUMENTS:
        table: pl.DataFrame = getattr(trace, name)
        if table.height:
            yield name, _with_parents(table) if name == "frame_args" else table


def _with_parents(frames: pl.DataFrame) -> pl.DataFrame:
    """Frames with the recorder's number of their caller."""
    callers = frames.select(caller="id", python_parent="python_id")
    return frames.join(callers, on="caller", how="left", maintain_order="left")


def _sorted(table: pl.DataFrame) -> pl.DataFrame:
    return table if table["id"].is_sorted() else table.sort("id")


def _members(name: str, table: pl.DataFrame) -> pl.Series:
    """The members of some slices that their table tells."""
    texts = table.with_columns(
        _text(name, table[column])
        for column, _ in _ARGUMENTS[name]
        if table[column].dtype in (pl.Categorical, pl.String)
    )
    pieces = [member(key, _value(texts, column)) for column, key in _ARGUMENTS[name]]
    return texts.select(joined(pieces)).to_series()


def _text(name: str, column: pl.Series) -> pl.Series:
    is_list = column.name in _LISTS or (name, column.name) == ("compiled_args", _GRID_AS_WRITTEN)
    return (raw_or_quoted if is_list else quoted)(column).alias(column.name)


def _value(table: pl.DataFrame, column: str) -> pl.Expr:
    dtype, told = table[column].dtype, pl.col(column)
    if dtype == pl.String:
        return told
    if isinstance(dtype, pl.Array):
        return triple(told)
    return number(told) if dtype.is_float() else told.cast(pl.String)
