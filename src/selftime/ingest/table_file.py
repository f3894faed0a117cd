"""Write tables to one file in Arrow's memory layout, and read them by memory mapping.

A column is stored as its Arrow buffers: the validity bits and the values. Each buffer begins at a
multiple of 64 bytes, so that a mapped file is used in place: nothing is copied, and the system can
drop pages that are not used again when memory is short. Strings are stored once for all tables, in
the list `texts`; a text column holds indices into it.
"""

import mmap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import nanoarrow
import numpy as np
import polars as pl
from isal import isal_zlib

from selftime import schema

_ALIGNED: Final = 64
"""Alignment of buffers in bytes: what Arrow requires, and the size of a cache line."""

_CArray: TypeAlias = Any  # nanoarrow's arrays and schemas are untyped
_CSchema: TypeAlias = Any


class Buffers(msgspec.Struct, array_like=True, frozen=True):
    """A column's place in the file: its length and offset in rows, its buffers and child arrays."""

    length: int
    offset: int
    buffers: list[tuple[int, int]]
    """The first byte and the size of each buffer, in bytes."""
    children: list["Buffers"] = []


class Layout(msgspec.Struct, frozen=True):
    """What is needed to read a file of tables: size in bytes, CRC-32, strings and columns."""

    size: int
    checksum: int
    texts: list[str]
    tables: dict[str, dict[str, Buffers]]


def write_tables(path: Path, tables: Mapping[str, pl.DataFrame]) -> Layout:
    """Write tables to a new file, and return their layout.

    Raises:
        OSError: The file cannot be written.
    """
    texts, tables = _with_string_indices(tables)
    with path.open("xb") as file:
        draft = _Draft(file)
        laid = {
            name: {column.name: draft.append(_arrow_export(column)) for column in table}
            for name, table in tables.items()
        }
    return Layout(draft.size, draft.checksum, texts, laid)


def read_tables(path: Path, layout: Layout) -> dict[str, pl.DataFrame]:
    """Returns every table of `schema.TABLES`, its columns backed by the mapped file.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file differs from the one that was written.
        KeyError: A table or column of the schema is missing.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(data) != layout.size or isal_zlib.crc32(data) != layout.checksum:
        raise ValueError("the tables do not agree with their checksum")
    mapped, texts = memoryview(data), _Strings(layout.texts)
    tables = {}
    for name, table in schema.TABLES.items():
        laid = layout.tables[name]
        tables[name] = pl.DataFrame(
            [
                texts.decode(_read_column(mapped, laid[column], _stored_dtype(dtype)), dtype).alias(
                    column
                )
                for column, dtype in table.dtypes.items()
            ]
        )
    return tables


class _Draft:
    """A file of tables that is being written, buffer by buffer."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = 0
        self.checksum = 0
        self._write(b"\0" * _ALIGNED)  # an empty file cannot be mapped

    def append(self, array: _CArray) -> Buffers:
        buffers = [self._append_buffer(memoryview(buffer)) for buffer in array.view().buffers]
        children = [self.append(child) for child in array.children]
        return Buffers(array.length, array.offset, buffers, children)

    def _append_buffer(self, buffer: memoryview) -> tuple[int, int]:
        begin = self.size
        if buffer.nbytes:
            self._write(buffer.cast("B"))
            self._write(b"\0" * (-self.size % _ALIGNED))
        return begin, buffer.nbytes

    def _write(self, part: "memoryview | bytes") -> None:
        self._file.write(part)
        self.checksum = isal_zlib.crc32(part, self.checksum)
        self.size += len(part)


def _arrow_export(column: pl.Series) -> _CArray:
    """Returns a column as one contiguous Arrow array."""
    stream = nanoarrow.c_array_stream(column.rechunk())
    for array in stream:
        return array
    raise AssertionError("a column of no chunk")


def _read_column(data: memoryview, laid: Buffers, dtype: Any) -> pl.Series:
    form = nanoarrow.c_array_stream(pl.Series(dtype=dtype)).get_schema()
    return pl.Series(_arrow_array(data, laid, form))


def _arrow_array(data: memoryview, laid: Buffers, form: _CSchema) -> _CArray:
    """Returns an Arrow array whose buffers are slices of the mapped file."""
    children = [
        _arrow_array(data, inner, each)
        for inner, each in zip(laid.children, form.children, strict=True)
    ]
    buffers = [data[begin : begin + size] if size else None for begin, size in laid.buffers]
    try:
        return nanoarrow.c_array_from_buffers(
            form, laid.length, buffers, offset=laid.offset, children=children
        )
    except RuntimeError as error:
        raise ValueError("a column does not lie within the file") from error


def _is_text(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def _stored_dtype(dtype: Any) -> Any:
    """Returns the dtype of a column in the file: text columns are stored as string indices."""
    return pl.UInt32() if _is_text(_dtype_instance(dtype)) else dtype


def _dtype_instance(dtype: Any) -> pl.DataType:
    found: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return found


def _with_string_indices(
    tables: Mapping[str, pl.DataFrame],
) -> tuple[list[str], dict[str, pl.DataFrame]]:
    """Returns the distinct strings of all tables, and the tables with indices into them."""
    coded = {
        name: table.with_columns(
            pl.col(column).cast(schema.Name).to_physical()
            for column, dtype in table.schema.items()
            if _is_text(dtype)
        )
        for name, table in tables.items()
    }
    columns = {
        name: [column for column, dtype in table.schema.items() if _is_text(dtype)]
        for name, table in tables.items()
    }
    used = _distinct_codes(coded[name][column] for name in columns for column in columns[name])
    texts = pl.Series(used, dtype=pl.UInt32).cat.to(schema.Name).cast(pl.String).to_list()
    places = np.zeros(int(used.max(initial=0)) + 1, np.uint32)
    places[used] = np.arange(len(used), dtype=np.uint32)
    place = pl.Series(places)
    return texts, {
        name: table.with_columns(
            place.gather(table[column]).alias(column) for column in columns[name]
        )
        for name, table in coded.items()
    }


def _distinct_codes(columns: Iterable[pl.Series]) -> np.ndarray:
    """Returns the sorted distinct codes of the columns, by a boolean array over the codes."""
    seen = np.zeros(0, bool)
    for column in columns:
        codes = column.drop_nulls().to_numpy()
        if codes.size and (last := int(codes.max())) >= seen.size:
            seen = np.pad(seen, (0, last + 1 - seen.size))
        seen[codes] = True
    return np.flatnonzero(seen).astype(np.uint32)


class _Strings:
    """The strings of a file, with the codes that this process's Polars gives them."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = pl.Series(texts, dtype=pl.String)
        self._named = self._texts.cast(schema.Name)  # Polars frees the codes with their last user
        self._codes = self._named.to_physical()
        self._as_written = bool((self._codes == pl.arange(len(texts), eager=True)).all())

    def decode(self, column: pl.Series, dtype: Any) -> pl.Series:
        """Returns a stored column as its declared dtype: string indices become strings.

        If this process codes strings in the file's order, the stored codes are used without a copy.
        """
        dtype = _dtype_instance(dtype)
        if not _is_text(dtype):
            return column
        if not isinstance(dtype, pl.Categorical):
            return self._texts.gather(column).cast(dtype)
        codes = column if self._as_written else self._codes.gather(column)
        return codes.cat.to(dtype)
