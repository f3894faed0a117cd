"""Every table of a trace, or some views of it, as files of a folder: Parquet or CSV.

Beside them `tables.json`, format `selftime.tables/1` (docs/formats.md), says what each column is,
and holds what stands beside the events: the trace's zero of time, and its other keys.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import polars as pl

from selftime import schema
from selftime.errors import UsageError
from selftime.output_file import make_folder, open_output, told_in_a_sentence
from selftime.reports.exports.base import Asked, Export, Told
from selftime.reports.tables.tabular import as_csv, described
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views import find

FORMAT: Final = "selftime.tables/1"
_ROWS: Final = 1 << 18
"""Rows that are held as the text of CSV at once."""
_LISTING: Final = "tables.json"


def write(kind: str, trace: Trace, output: Path, asked: Asked) -> Told:
    """Write the tables to a folder, which is made if it is not there.

    Raises:
        UsageError: `output` is a file, or a view is not there.
        SelftimeError: It cannot be written.
    """
    told, listed = Told(), {}
    tables = list(_tables(trace, asked.views))
    with told_in_a_sentence(output), ExitStack() as files:
        if output.exists() and not output.is_dir():
            raise UsageError(f"`{output}` is a file; name a folder for the tables with `-o`")
        make_folder(output)
        # They take their places together when the block ends, the listing as the last.
        listing = files.enter_context(open_output(output / _LISTING))
        for done, (name, doc, columns, ask) in enumerate(tables):
            table = ask()
            file = files.enter_context(open_output(output / f"{name}.{kind}"))
            _WRITERS[kind](table, file, columns)
            file.flush()
            told.size += os.fstat(file.fileno()).st_size
            told.files.append(f"{name}.{kind}")
            told.written[name] = table.height
            listed[name] = {
                "doc": doc,
                "rows": table.height,
                "columns": [described(column) for column in columns],
            }
            asked.progress(done + 1, len(tables))
        listing.write(_listing(trace, listed).encode())
        listing.flush()
        told.size += os.fstat(listing.fileno()).st_size
        told.files.append(_LISTING)
    return told


PARQUET: Final = Export(
    "parquet",
    "Polars, pandas, DuckDB, Spark: every table, in a folder",
    "",
    partial(write, "parquet"),
    frozenset({"views"}),
)
CSV: Final = Export(
    "csv",
    "spreadsheets and anything else: every table, in a folder",
    "",
    partial(write, "csv"),
    frozenset({"views"}),
)


def _tables(
    trace: Trace, views: tuple[str, ...]
) -> Iterator[tuple[str, str, tuple[Column, ...], Callable[[], pl.DataFrame]]]:
    """Name, sentence, columns, and what gives the table: a view is asked for when it is written."""
    for name in views:
        view = find(name)
        yield name, view.title, view.columns, partial(view, trace)
    for name, table in () if views else trace.tables().items():
        declared = schema.TABLES[name]
        yield name, declared.doc, declared.columns, partial(_same, table)


def _same(table: pl.DataFrame) -> pl.DataFrame:
    return table


def _listing(trace: Trace, listed: Mapping[str, Any]) -> str:
    """What is in the folder, as JSON in ASCII."""
    told = {
        "format": FORMAT,
        "origin_ns": trace.origin,
        "tables": listed,
        "metadata": dict(trace.metadata),
    }
    return json.dumps(told, indent=1, default=str) + "\n"


def _write_parquet(table: pl.DataFrame, file: IO[bytes], columns: tuple[Column, ...]) -> None:
    """The table with its types; its own metadata says what its columns are."""
    told = {"format": FORMAT, "columns": json.dumps([described(column) for column in columns])}
    table.write_parquet(file, metadata=told)


def _write_csv(table: pl.DataFrame, file: IO[bytes], _columns: tuple[Column, ...]) -> None:
    file.write(as_csv(table.head(0)).encode())
    for low in range(0, table.height, _ROWS):
        _, _, rows = as_csv(table.slice(low, _ROWS)).partition("\n")
        file.write(rows.encode())


_WRITERS: Final = {"parquet": _write_parquet, "csv": _write_csv}
