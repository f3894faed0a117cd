"""Exports every table of a trace, or chosen views, to a folder of Parquet or CSV files.

The file `tables.json` beside them, format `selftime.tables/1` (docs/formats.md), describes each
column, and holds the trace's time origin and its other top-level keys.
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
from selftime.output_file import STDOUT_NAME, make_folder, open_output, report_output_errors
from selftime.reports.export.export_format import Export, ExportOptions, ExportResult
from selftime.reports.tables.tabular import as_csv, column_description_data
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views import find_view

FORMAT: Final = "selftime.tables/1"
"""Name and version of the format of `tables.json`, which describes the exported tables."""
_ROWS_PER_CSV_WRITE: Final = 1 << 18
"""Number of rows that are converted to CSV text and written at a time, to limit memory."""
_TABLE_DESCRIPTIONS_FILE_NAME: Final = "tables.json"
"""Name of the file in the exported folder that describes the tables."""


def write(suffix: str, trace: Trace, output: Path, options: ExportOptions) -> ExportResult:
    """Writes the tables to a folder, one file each; creates the folder if it does not exist.

    Raises:
        UsageError: `output` is a file, or there is no such view.
        SelftimeError: The folder cannot be written.
    """
    result, descriptions = ExportResult(), {}
    tables = list(names_columns_and_tables_to_export(trace, options.views))
    with report_output_errors(output), ExitStack() as files:
        if str(output) == STDOUT_NAME:
            raise UsageError("the tables are several files; name a folder for them with `-o`")
        if output.exists() and not output.is_dir():
            raise UsageError(f"`{output}` is a file; name a folder for the tables with `-o`")
        make_folder(output)
        # All files are moved into place when the block ends, the listing last.
        description_file = files.enter_context(open_output(output / _TABLE_DESCRIPTIONS_FILE_NAME))
        for index, (name, doc, columns, make_table) in enumerate(tables):
            table = make_table()
            file = files.enter_context(open_output(output / f"{name}.{suffix}"))
            _TABLE_WRITER_BY_SUFFIX[suffix](table, file, columns)
            file.flush()
            result.size += os.fstat(file.fileno()).st_size
            result.files.append(f"{name}.{suffix}")
            result.written[name] = table.height
            descriptions[name] = {
                "doc": doc,
                "rows": table.height,
                "columns": [column_description_data(column) for column in columns],
            }
            options.progress(index + 1, len(tables))
        description_file.write(_table_descriptions_json(trace, descriptions).encode())
        description_file.flush()
        result.size += os.fstat(description_file.fileno()).st_size
        result.files.append(_TABLE_DESCRIPTIONS_FILE_NAME)
    return result


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


def names_columns_and_tables_to_export(
    trace: Trace, views: tuple[str, ...]
) -> Iterator[tuple[str, str, tuple[Column, ...], Callable[[], pl.DataFrame]]]:
    """Yields (name, description, columns, function that computes the table) for each table."""
    for name in views:
        view = find_view(name)
        yield name, view.title, view.columns, partial(view, trace)
    for name, table in () if views else trace.tables().items():
        table_schema = schema.TABLES[name]
        yield name, table_schema.doc, table_schema.columns, partial(_return_table_unchanged, table)


def _return_table_unchanged(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the given table unchanged."""
    return table


def _table_descriptions_json(trace: Trace, descriptions: Mapping[str, Any]) -> str:
    """Returns the content of `tables.json`, which describes the exported tables, in ASCII."""
    document = {
        "format": FORMAT,
        "origin_ns": trace.origin,
        "tables": descriptions,
        "metadata": dict(trace.metadata),
    }
    return json.dumps(document, indent=1, default=str) + "\n"


def _write_table_as_parquet(
    table: pl.DataFrame, file: IO[bytes], columns: tuple[Column, ...]
) -> None:
    """Writes a table as Parquet, with a description of the columns in the file's metadata."""
    metadata = {
        "format": FORMAT,
        "columns": json.dumps([column_description_data(column) for column in columns]),
    }
    table.write_parquet(file, metadata=metadata)


def _write_table_as_csv(table: pl.DataFrame, file: IO[bytes], _columns: tuple[Column, ...]) -> None:
    """Writes a table as CSV, a batch of rows at a time."""
    file.write(as_csv(table.head(0)).encode())
    for first in range(0, table.height, _ROWS_PER_CSV_WRITE):
        _, _, rows = as_csv(table.slice(first, _ROWS_PER_CSV_WRITE)).partition("\n")
        file.write(rows.encode())


_TABLE_WRITER_BY_SUFFIX: Final = {"parquet": _write_table_as_parquet, "csv": _write_table_as_csv}
"""Functions that write a table to an open file, by the suffix of the file's name."""
