"""Writes the arguments of events as JSON, under the names that Kineto gives them."""

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec
import numpy as np
import polars as pl

from selftime.rewrite.event_times import MAX_TIME_WITH_TENTHS_NS
from selftime.trace import Trace

_NS_PER_US: Final = 1_000


KinetoNames: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs (column of a table of slice arguments, Kineto's name of the argument)."""
_COLUMNS_AND_KINETO_NAMES_BY_TABLE: Final[dict[str, KinetoNames]] = {
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
"""Columns and Kineto's argument names, by the name of the trace's table with slice arguments."""
_COLUMNS_WITH_JSON_LISTS: Final = frozenset(
    {"input_shapes", "input_types", "input_strides", "concrete_inputs", "kernel_arguments"}
)
"""Names of text columns that usually contain a JSON list."""
_COLUMN_OF_KERNEL_GRID_AS_JSON_LIST: Final = "grid"
"""Column that holds JSON lists in only one table, that of compiled kernels' arguments."""


def encode_json_strings(texts: pl.Series) -> pl.Series:
    """Returns texts as JSON strings; null stays null."""
    distinct = texts.cast(pl.String).unique().drop_nulls()
    encoded = [msgspec.json.encode(text).decode() for text in distinct]
    return _replace_distinct_texts(texts, distinct, encoded)


def encode_json_lists_or_strings(texts: pl.Series) -> pl.Series:
    """Returns each text unchanged if it is a JSON list, else as a JSON string."""
    distinct_texts = texts.cast(pl.String).unique().drop_nulls()
    return _replace_distinct_texts(
        texts, distinct_texts, [_encode_json_list_or_string(text) for text in distinct_texts]
    )


def _encode_json_list_or_string(text: str) -> str:
    if text.startswith("["):
        try:
            msgspec.json.decode(text.encode(), type=list)
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            return text
    return msgspec.json.encode(text).decode()


def _replace_distinct_texts(
    texts: pl.Series, distinct: pl.Series, replacements: list[str]
) -> pl.Series:
    """Returns the texts with each `distinct[i]` replaced by `replacements[i]`; null stays null."""
    if not replacements:
        return pl.repeat(None, texts.len(), dtype=pl.String, eager=True)
    new_texts = pl.Series(replacements, dtype=pl.String)
    return texts.cast(pl.String).replace_strict(
        distinct, new_texts, default=None, return_dtype=pl.String
    )


def json_member_expression(key: str, value: pl.Expr) -> pl.Expr:
    """Returns a Polars expression for `"key":value`; null if the value is null."""
    return pl.concat_str(pl.lit(f"{msgspec.json.encode(key).decode()}:"), value)


def json_number_expression(column: pl.Expr) -> pl.Expr:
    """Returns a Polars expression for a number as JSON; null if it is NaN or infinite."""
    return pl.when(column.is_finite()).then(column).cast(pl.String)


def json_triple_expression(column: pl.Expr) -> pl.Expr:
    """Returns a Polars expression for three integers as a JSON list; null stays null."""
    parts = [column.arr.get(at, null_on_oob=True).cast(pl.String) for at in range(3)]
    return pl.concat_str(pl.lit("["), pl.concat_str(parts, separator=","), pl.lit("]"))


def decimal_microseconds_expression(nanoseconds: pl.Expr) -> pl.Expr:
    """Returns a Polars expression that writes ns as decimal microseconds, such as `1.5`.

    Rounded to ns they are exact. A fourth decimal stands where `rewrite.event_times` says why.
    """
    magnitude, sign = (
        nanoseconds.abs(),
        pl.when(nanoseconds < 0).then(pl.lit("-")).otherwise(pl.lit("")),
    )
    fraction_ns = magnitude % _NS_PER_US
    shown_ns = (magnitude / float(_NS_PER_US) * float(_NS_PER_US)).floor().cast(pl.Int64)
    is_short = (magnitude < MAX_TIME_WITH_TENTHS_NS) & (shown_ns < magnitude)
    fraction = pl.concat_str(
        pl.lit("."),
        fraction_ns.cast(pl.String).str.zfill(3),
        pl.when(is_short).then(pl.lit("1")).otherwise(pl.lit("")),
    )
    return pl.concat_str(
        sign,
        (magnitude // _NS_PER_US).cast(pl.String),
        pl.when(fraction_ns > 0).then(fraction).otherwise(pl.lit("")),
    )


def join_json_members(members: list[pl.Expr]) -> pl.Expr:
    """Returns a Polars expression that joins `"key":value` texts by commas, without nulls."""
    return pl.concat_str(members, separator=",", ignore_nulls=True)


class SliceArguments:
    """The arguments of a trace's slices under Kineto's names, for one range of slices at a time."""

    def __init__(self, trace: Trace) -> None:
        self._tables = {
            name: _sorted_by_slice_id(table) for name, table in _nonempty_argument_tables(trace)
        }

    def arguments_as_json(self, first_slice: int, end_slice: int) -> pl.Series:
        """Returns each slice's arguments as JSON members without braces; null if it has none.

        >>> from selftime.testing import sketch
        >>> SliceArguments(sketch("gpu 7 | a")).arguments_as_json(0, 1).item()
        '"device":0,"stream":7'
        """
        members = pl.DataFrame({"id": np.arange(first_slice, end_slice, dtype=np.uint32)})
        for name, table in self._argument_rows_of_slices(first_slice, end_slice):
            table_members = pl.DataFrame(
                {"id": table["id"], name: _argument_json_members(name, table)}
            )
            members = members.join(table_members, on="id", how="left", maintain_order="left")
        pieces = members.drop("id")
        if not pieces.width:
            return pl.repeat(None, end_slice - first_slice, dtype=pl.String, eager=True)
        text = pl.concat_str(pl.all(), separator=",", ignore_nulls=True)
        return pieces.select(pl.when(text != "").then(text)).to_series()

    def argument_values(
        self, first_slice: int, end_slice: int
    ) -> Iterator[tuple[str, pl.Series, pl.Series]]:
        """Yields for each argument (Kineto's name, its values, ids of the slices that have it)."""
        for name, table in self._argument_rows_of_slices(first_slice, end_slice):
            for column, kineto_name in _COLUMNS_AND_KINETO_NAMES_BY_TABLE[name]:
                is_known = table[column].is_not_null()
                if is_known.any():
                    yield kineto_name, table[column].filter(is_known), table["id"].filter(is_known)

    def _argument_rows_of_slices(
        self, first_slice: int, end_slice: int
    ) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yields (table name, rows) of each argument table with rows for the range of slices."""
        for name, table in self._tables.items():
            first, last = np.searchsorted(table["id"].to_numpy(), [first_slice, end_slice]).tolist()
            if last > first:
                yield name, table.slice(first, last - first)


def _nonempty_argument_tables(trace: Trace) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yields the name and rows of each of the trace's tables of arguments that is not empty."""
    for name in _COLUMNS_AND_KINETO_NAMES_BY_TABLE:
        table: pl.DataFrame = getattr(trace, name)
        if table.height:
            yield name, _with_python_id_of_caller(table) if name == "frame_args" else table


def _with_python_id_of_caller(frames: pl.DataFrame) -> pl.DataFrame:
    """Returns Python frames with a column `python_parent`: Kineto's `Python id` of the caller."""
    callers = frames.select(caller="id", python_parent="python_id")
    return frames.join(callers, on="caller", how="left", maintain_order="left")


def _sorted_by_slice_id(table: pl.DataFrame) -> pl.DataFrame:
    return table if table["id"].is_sorted() else table.sort("id")


def _argument_json_members(table_name: str, table: pl.DataFrame) -> pl.Series:
    """Returns each table row as JSON members `"key":value`, separated by commas."""
    texts = table.with_columns(
        _column_as_json_texts(table_name, table[column])
        for column, _ in _COLUMNS_AND_KINETO_NAMES_BY_TABLE[table_name]
        if table[column].dtype in (pl.Categorical, pl.String)
    )
    members = [
        json_member_expression(key, _json_value_expression(texts, column))
        for column, key in _COLUMNS_AND_KINETO_NAMES_BY_TABLE[table_name]
    ]
    return texts.select(join_json_members(members)).to_series()


def _column_as_json_texts(table_name: str, column: pl.Series) -> pl.Series:
    """Returns a text column as JSON: lists if the column contains lists, else strings."""
    is_list = column.name in _COLUMNS_WITH_JSON_LISTS or (table_name, column.name) == (
        "compiled_args",
        _COLUMN_OF_KERNEL_GRID_AS_JSON_LIST,
    )
    return (encode_json_lists_or_strings if is_list else encode_json_strings)(column).alias(
        column.name
    )


def _json_value_expression(table: pl.DataFrame, column: str) -> pl.Expr:
    """Returns a Polars expression for the values of a column as JSON."""
    dtype, value = table[column].dtype, pl.col(column)
    if dtype == pl.String:
        return value
    if isinstance(dtype, pl.Array):
        return json_triple_expression(value)
    return json_number_expression(value) if dtype.is_float() else value.cast(pl.String)
