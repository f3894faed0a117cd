"""Tables on disk are what was written, in whatever process, and lie where they are mapped."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import nanoarrow
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from selftime import schema
from selftime.ingest.table_file import TableFileLayout, read_tables, write_tables

ROWS = 1000


def filled(column: schema.Column, draw: np.random.Generator) -> pl.Series:
    """A column of any values of its type, unknown here and there where that is allowed."""
    numbers = draw.integers(0, 100, ROWS)
    dtype = column.dtype() if isinstance(column.dtype, type) else column.dtype
    if isinstance(dtype, pl.Enum):
        values = pl.Series([dtype.categories[int(n) % len(dtype.categories)] for n in numbers])
    elif isinstance(dtype, pl.String | pl.Categorical):
        values = pl.Series([f"{column.name} {n}\n\N{SNOWMAN}" for n in numbers])
    elif isinstance(dtype, pl.Array):
        values = pl.Series(draw.integers(0, 100, (ROWS, dtype.size)))
    elif isinstance(dtype, pl.Boolean):
        values = pl.Series(numbers > 50)
    else:
        values = pl.Series(numbers)
    values = values.cast(dtype).alias(column.name)
    known = pl.Series(draw.integers(0, 2, ROWS) > 0) if column.nullable else pl.Series([True])
    return pl.select(pl.when(known).then(values).alias(column.name)).to_series()


@pytest.fixture(scope="module")
def tables() -> dict[str, pl.DataFrame]:
    draw = np.random.default_rng(7)
    return {
        name: pl.DataFrame([filled(column, draw) for column in table.columns])
        for name, table in schema.TABLES.items()
    }


def assert_same(found: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    assert list(found) == list(expected)
    for name, table in expected.items():
        assert found[name].schema == table.schema
        assert_frame_equal(found[name], table, categorical_as_str=True)


def whole(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    return tables


def empty(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    return {name: table.clear() for name, table in tables.items()}


def a_part(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Rows that begin within a byte of the bits of what is known, in two pieces."""
    return {
        name: pl.concat([table[3:21], table[333:]], rechunk=False) for name, table in tables.items()
    }


@pytest.mark.parametrize("some", [whole, empty, a_part])
def test_what_is_read_is_what_was_written(
    some: Callable[[dict[str, pl.DataFrame]], dict[str, pl.DataFrame]],
    tables: dict[str, pl.DataFrame],
    tmp_path: Path,
) -> None:
    expected = some(tables)
    layout = write_tables(tmp_path / "tables", expected)
    told = msgspec.convert(msgspec.to_builtins(layout), TableFileLayout)
    assert_same(read_tables(tmp_path / "tables", told), expected)


READING = """
import sys
from pathlib import Path
import msgspec, polars as pl
from selftime.ingest.table_file import TableFileLayout, read_tables
before = pl.Series(sys.argv[2:], dtype=pl.Categorical)
told = msgspec.json.decode(Path(sys.argv[1] + ".json").read_bytes(), type=TableFileLayout)
for name, table in read_tables(Path(sys.argv[1]), told).items():
    print(name, table.with_columns(pl.col(pl.Categorical).cast(pl.String)).hash_rows().sum())
"""


@pytest.mark.parametrize("numbered", [[], ["another", "name 7\n\N{SNOWMAN}"]])
def test_a_process_that_numbers_texts_otherwise(
    numbered: list[str], tables: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    layout = write_tables(tmp_path / "tables", tables)
    (tmp_path / "tables.json").write_bytes(msgspec.json.encode(layout))
    told = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", READING, str(tmp_path / "tables"), *numbered],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    expected = {
        name: table.with_columns(pl.col(pl.Categorical).cast(pl.String)).hash_rows().sum()
        for name, table in tables.items()
    }
    assert told.stdout.splitlines() == [f"{name} {total}" for name, total in expected.items()]


def test_columns_lie_in_the_mapped_file(tables: dict[str, pl.DataFrame], tmp_path: Path) -> None:
    """Where memory is, the system tells: every column of numbers is within the file's mapping."""
    layout = write_tables(tmp_path / "tables", tables)
    read = read_tables(tmp_path / "tables", layout)
    [(begin, end)] = [
        tuple(int(bound, 16) for bound in line.split()[0].split("-"))
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(str(tmp_path / "tables"))
    ]
    numbers = [
        column
        for table in read.values()
        for column in table
        if column.dtype.is_numeric() or isinstance(column.dtype, pl.Array)
    ]
    assert len(numbers) > 50
    for column in numbers:
        [array] = nanoarrow.c_array_stream(column)
        assert begin <= address_of(array) < end, column.name


def address_of(array: Any) -> int:
    """Where the values of a column, or of what is in it, lie."""
    if array.n_children:
        return address_of(array.child(0))
    *_, values = array.view().buffers
    return np.frombuffer(values, np.uint8).ctypes.data


@pytest.mark.parametrize("damage", ["shorter", "longer", "other", "empty"])
def test_another_file_is_not_read(
    damage: str, tables: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    path = tmp_path / "tables"
    layout = write_tables(path, tables)
    data = path.read_bytes()
    path.write_bytes(
        {
            "shorter": data[:-1],
            "longer": data + b"\0",
            "other": bytes([data[0] ^ 1]) + data[1:],
            "empty": b"",
        }[damage]
    )
    with pytest.raises(ValueError, match=r"checksum|empty"):
        read_tables(path, layout)


def test_a_layout_beyond_the_file_is_refused(
    tables: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    layout = write_tables(tmp_path / "tables", tables)
    told = msgspec.to_builtins(layout)
    told["tables"]["slices"]["start"][0] += 1  # one row more than there are bytes
    with pytest.raises(ValueError, match="beyond the end of the file"):
        read_tables(tmp_path / "tables", msgspec.convert(told, TableFileLayout))
