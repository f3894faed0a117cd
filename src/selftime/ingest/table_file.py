"""Stores tables in one file of Arrow buffers, and reads them by memory mapping.

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

_BUFFER_ALIGNMENT_BYTES: Final = 64
"""Each buffer in the file begins at a multiple of this many bytes, as Arrow requires."""

_ArrowCArray: TypeAlias = Any  # nanoarrow's arrays and schemas are untyped
_ArrowCSchema: TypeAlias = Any


class ColumnBuffers(msgspec.Struct, array_like=True, frozen=True):
    """Where a column is stored in the file: rows, first row, buffers, and child columns."""

    length: int
    offset: int
    buffers: list[tuple[int, int]]
    """The byte offset and the size in bytes of each buffer."""
    children: "list[ColumnBuffers]" = []  # Python 3.10 does not read `list["ColumnBuffers"]`


class TableFileLayout(msgspec.Struct, frozen=True):
    """Describes a file of tables: its size in bytes, CRC-32, strings, and columns by table."""

    size: int
    checksum: int
    texts: list[str]
    tables: dict[str, dict[str, ColumnBuffers]]


def write_tables(path: Path, tables: Mapping[str, pl.DataFrame]) -> TableFileLayout:
    """Writes tables to a new file, and returns their layout.

    Raises:
        OSError: The file cannot be written.
    """
    texts, tables = _replace_strings_by_indices(tables)
    with path.open("xb") as file:
        writer = _TableFileWriter(file)
        laid = {
            name: {
                column.name: writer.write_array(_arrow_array_of_column(column)) for column in table
            }
            for name, table in tables.items()
        }
    return TableFileLayout(writer.size, writer.checksum, texts, laid)


def read_tables(path: Path, layout: TableFileLayout) -> dict[str, pl.DataFrame]:
    """Returns the tables in a file by name; their columns use the memory of the mapped file.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file differs from the one that was written.
        KeyError: A table or column of the schema is missing.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(data) != layout.size or isal_zlib.crc32(data) != layout.checksum:
        raise ValueError("the tables do not agree with their checksum")
    mapped, strings = memoryview(data), _StoredStrings(layout.texts)
    tables = {}
    for name, table in schema.TABLES.items():
        laid = layout.tables[name]
        tables[name] = pl.DataFrame(
            [
                strings.decode_column(
                    _read_column(mapped, laid[column], _stored_dtype(dtype)), dtype
                ).alias(column)
                for column, dtype in table.dtypes.items()
            ]
        )
    return tables


class _TableFileWriter:
    """Appends the Arrow buffers of columns to a file, and computes the file's CRC-32."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = 0
        self.checksum = 0
        self._write_bytes(b"\0" * _BUFFER_ALIGNMENT_BYTES)  # an empty file cannot be mapped

    def write_array(self, array: _ArrowCArray) -> ColumnBuffers:
        buffers = [self._write_buffer(memoryview(buffer)) for buffer in array.view().buffers]
        children = [self.write_array(child) for child in array.children]
        return ColumnBuffers(array.length, array.offset, buffers, children)

    def _write_buffer(self, buffer: memoryview) -> tuple[int, int]:
        begin = self.size
        if buffer.nbytes:
            self._write_bytes(buffer.cast("B"))
            self._write_bytes(b"\0" * (-self.size % _BUFFER_ALIGNMENT_BYTES))
        return begin, buffer.nbytes

    def _write_bytes(self, data: "memoryview | bytes") -> None:
        self._file.write(data)
        self.checksum = isal_zlib.crc32(data, self.checksum)
        self.size += len(data)


def _arrow_array_of_column(column: pl.Series) -> _ArrowCArray:
    """Returns a column as one contiguous Arrow array."""
    stream = nanoarrow.c_array_stream(column.rechunk())
    for array in stream:
        return array
    raise AssertionError("Arrow exported a column without data")


def _read_column(mapped_file: memoryview, buffers: ColumnBuffers, dtype: Any) -> pl.Series:
    arrow_schema = nanoarrow.c_array_stream(pl.Series(dtype=dtype)).get_schema()
    return pl.Series(_arrow_array_in_file(mapped_file, buffers, arrow_schema))


def _arrow_array_in_file(
    mapped_file: memoryview, buffers: ColumnBuffers, arrow_schema: _ArrowCSchema
) -> _ArrowCArray:
    """Returns an Arrow array whose buffers are slices of the mapped file."""
    children = [
        _arrow_array_in_file(mapped_file, inner, each)
        for inner, each in zip(buffers.children, arrow_schema.children, strict=True)
    ]
    memory = [
        mapped_file[begin : begin + size] if size else None for begin, size in buffers.buffers
    ]
    try:
        return nanoarrow.c_array_from_buffers(
            arrow_schema, buffers.length, memory, offset=buffers.offset, children=children
        )
    except RuntimeError as error:
        raise ValueError("a column's buffers reach beyond the end of the file") from error


def _is_text_dtype(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def _stored_dtype(dtype: Any) -> Any:
    """Returns the dtype with which a column is stored: UInt32 string indices for text columns."""
    return pl.UInt32() if _is_text_dtype(_as_dtype_instance(dtype)) else dtype


def _as_dtype_instance(dtype: Any) -> pl.DataType:
    found: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return found


def _replace_strings_by_indices(
    tables: Mapping[str, pl.DataFrame],
) -> tuple[list[str], dict[str, pl.DataFrame]]:
    """Returns the distinct strings of all tables, and the tables with indices of the strings."""
    coded = {
        name: table.with_columns(
            pl.col(column).cast(schema.NameType).to_physical()
            for column, dtype in table.schema.items()
            if _is_text_dtype(dtype)
        )
        for name, table in tables.items()
    }
    columns = {
        name: [column for column, dtype in table.schema.items() if _is_text_dtype(dtype)]
        for name, table in tables.items()
    }
    used = _distinct_string_codes(
        coded[name][column] for name in columns for column in columns[name]
    )
    texts = pl.Series(used, dtype=pl.UInt32).cat.to(schema.NameType).cast(pl.String).to_list()
    places = np.zeros(int(used.max(initial=0)) + 1, np.uint32)
    places[used] = np.arange(len(used), dtype=np.uint32)
    place = pl.Series(places)
    return texts, {
        name: table.with_columns(
            place.gather(table[column]).alias(column) for column in columns[name]
        )
        for name, table in coded.items()
    }


def _distinct_string_codes(columns: Iterable[pl.Series]) -> np.ndarray:
    """Returns the distinct codes that Polars' categorical columns contain, in ascending order."""
    seen = np.zeros(0, bool)
    for column in columns:
        codes = column.drop_nulls().to_numpy()
        if codes.size and (last := int(codes.max())) >= seen.size:
            seen = np.pad(seen, (0, last + 1 - seen.size))
        seen[codes] = True
    return np.flatnonzero(seen).astype(np.uint32)


class _StoredStrings:
    """The strings of a table file, and the codes that Polars currently gives to them."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = pl.Series(texts, dtype=pl.String)
        self._named = self._texts.cast(
            schema.NameType
        )  # Polars frees the codes with their last user
        self._codes = self._named.to_physical()
        self._as_written = bool((self._codes == pl.arange(len(texts), eager=True)).all())

    def decode_column(self, column: pl.Series, dtype: Any) -> pl.Series:
        """Returns a stored column as its declared dtype: string indices become strings.

        If Polars codes the strings in the file's order, the stored codes are used without a copy.
        """
        dtype = _as_dtype_instance(dtype)
        if not _is_text_dtype(dtype):
            return column
        if not isinstance(dtype, pl.Categorical):
            return self._texts.gather(column).cast(dtype)
        codes = column if self._as_written else self._codes.gather(column)
        return codes.cat.to(dtype)
