"""Tables of columns in one file, laid down as they lie in memory and read by mapping.

A column is its buffers in Arrow's layout of fixed width: the bits of what is known, and the values.
Each begins at a multiple of 64 bytes, so that a mapped file is used in place: nothing is copied,
and pages that no question touches again go when memory is short. Text is kept once for all tables,
in the list `texts`; columns of text hold its places.
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
"""Bytes: what Arrow asks of buffers, and a line of every processor's cache."""

_CArray: TypeAlias = Any  # nanoarrow's arrays and schemas are untyped
_CSchema: TypeAlias = Any


class Buffers(msgspec.Struct, array_like=True, frozen=True):
    """Where a column lies: rows, rows to pass over, begin and bytes of each buffer, and inside."""

    length: int
    offset: int
    buffers: list[tuple[int, int]]
    children: list["Buffers"] = []


class Layout(msgspec.Struct, frozen=True):
    """What is needed to read a file of tables: its bytes, their CRC-32, its texts and columns."""

    size: int
    checksum: int
    texts: list[str]
    tables: dict[str, dict[str, Buffers]]


def write_tables(path: Path, tables: Mapping[str, pl.DataFrame]) -> Layout:
    """Lay tables down in a new file.

    Raises:
        OSError: The file cannot be written.
    """
    texts, tables = _by_place(tables)
    with path.open("xb") as file:
        draft = _Draft(file)
        laid = {
            name: {column.name: draft.lay(_exported(column)) for column in table}
            for name, table in tables.items()
        }
    return Layout(draft.size, draft.checksum, texts, laid)


def read_tables(path: Path, layout: Layout) -> dict[str, pl.DataFrame]:
    """Every table of `schema.TABLES`, its columns in place in the mapped file.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not the one that was laid down.
        KeyError: A table or column of the schema is missing.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(data) != layout.size or isal_zlib.crc32(data) != layout.checksum:
        raise ValueError("the tables do not agree with their checksum")
    mapped, texts = memoryview(data), _Texts(layout.texts)
    tables = {}
    for name, table in schema.TABLES.items():
        laid = layout.tables[name]
        tables[name] = pl.DataFrame(
            [
                texts.told(_mapped(mapped, laid[column], _kept_as(dtype)), dtype).alias(column)
                for column, dtype in table.dtypes.items()
            ]
        )
    return tables


class _Draft:
    """A file that is being written, one buffer after the other."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = 0
        self.checksum = 0
        self._write(b"\0" * _ALIGNED)  # an empty file cannot be mapped

    def lay(self, array: _CArray) -> Buffers:
        buffers = [self._lay(memoryview(buffer)) for buffer in array.view().buffers]
        children = [self.lay(child) for child in array.children]
        return Buffers(array.length, array.offset, buffers, children)

    def _lay(self, buffer: memoryview) -> tuple[int, int]:
        begin = self.size
        if buffer.nbytes:
            self._write(buffer.cast("B"))
            self._write(b"\0" * (-self.size % _ALIGNED))
        return begin, buffer.nbytes

    def _write(self, part: "memoryview | bytes") -> None:
        self._file.write(part)
        self.checksum = isal_zlib.crc32(part, self.checksum)
        self.size += len(part)


def _exported(column: pl.Series) -> _CArray:
    """A column's Arrow array, in one piece."""
    stream = nanoarrow.c_array_stream(column.rechunk())
    for array in stream:
        return array
    raise AssertionError("a column of no chunk")


def _mapped(data: memoryview, laid: Buffers, dtype: Any) -> pl.Series:
    form = nanoarrow.c_array_stream(pl.Series(dtype=dtype)).get_schema()
    return pl.Series(_array(data, laid, form))


def _array(data: memoryview, laid: Buffers, form: _CSchema) -> _CArray:
    """An Arrow array whose buffers are parts of the mapped file."""
    children = [
        _array(data, inner, each) for inner, each in zip(laid.children, form.children, strict=True)
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


def _kept_as(dtype: Any) -> Any:
    """The type of a column in the file: text is kept as places in the list of texts."""
    return pl.UInt32() if _is_text(_instance(dtype)) else dtype


def _instance(dtype: Any) -> pl.DataType:
    found: pl.DataType = dtype() if isinstance(dtype, type) else dtype
    return found


def _by_place(tables: Mapping[str, pl.DataFrame]) -> tuple[list[str], dict[str, pl.DataFrame]]:
    """The texts of all tables in the order of their codes, and the tables with places in it."""
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
    used = _distinct(coded[name][column] for name in columns for column in columns[name])
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


def _distinct(columns: Iterable[pl.Series]) -> np.ndarray:
    """The codes in any of some columns, in order: by marks, since codes are dense and rows many."""
    seen = np.zeros(0, bool)
    for column in columns:
        codes = column.drop_nulls().to_numpy()
        if codes.size and (last := int(codes.max())) >= seen.size:
            seen = np.pad(seen, (0, last + 1 - seen.size))
        seen[codes] = True
    return np.flatnonzero(seen).astype(np.uint32)


class _Texts:
    """The texts of a file, as this process numbers them."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = pl.Series(texts, dtype=pl.String)
        self._named = self._texts.cast(schema.Name)  # Polars forgets its numbers with the last user
        self._codes = self._named.to_physical()
        self._as_written = bool((self._codes == pl.arange(len(texts), eager=True)).all())

    def told(self, column: pl.Series, dtype: Any) -> pl.Series:
        """A column as its type says: of text in the place of places, else as it is.

        In a process that numbers texts as the file does, the codes are used where they lie.
        """
        dtype = _instance(dtype)
        if not _is_text(dtype):
            return column
        if not isinstance(dtype, pl.Categorical):
            return self._texts.gather(column).cast(dtype)
        codes = column if self._as_written else self._codes.gather(column)
        return codes.cat.to(dtype)
