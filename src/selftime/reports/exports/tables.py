"""Every table of a trace, or some views of it, as files of a folder: Parquet or CSV.

Beside them `tables.json`, format `selftime.tables/1` (docs/formats.md), says what each column is,
and holds what stands beside the events: the trace's zero of time, and its other keys.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import polars as pl

from selftime import schema
from selftime.errors import SelftimeError, UsageError
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
    if output.exists() and not output.is_dir():
        raise UsageError(f"`{output}` is a file; name a folder for the tables with `-o`")
    told, listed = Told(), {}
    tables = list(_tables(trace, asked.views))
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output, prefix=".selftime-") as draft:
            for done, (name, doc, columns, ask) in enumerate(tables):
                table = ask()
                _WRITERS[kind](table, Path(draft) / f"{name}.{kind}", columns)
                told.files.append(f"{name}.{kind}")
                told.written[name] = table.height
                listed[name] = {
                    "doc": doc,
                    "rows": table.height,
                    "columns": [described(column) for column in columns],
                }
                asked.progress(done + 1, len(tables))
            (Path(draft) / _LISTING).write_text(_listing(trace, listed), encoding="utf-8")
            told.files.append(_LISTING)
            for name in told.files:
                (Path(draft) / name).replace(output / name)
    except OSError as error:
        why = error.strerror or error
        raise SelftimeError(
            f"`{output}` cannot be written: {why}; choose another place with `-o`"
        ) from error
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


def _write_parquet(table: pl.DataFrame, file: Path, columns: tuple[Column, ...]) -> None:
    """The table with its types; its own metadata says what its columns are."""
    told = {"format": FORMAT, "columns": json.dumps([described(column) for column in columns])}
    table.write_parquet(file, metadata=told)


def _write_csv(table: pl.DataFrame, file: Path, _columns: tuple[Column, ...]) -> None:
    with file.open("w", encoding="utf-8", newline="") as text:
        text.write(as_csv(table.head(0)))
        for low in range(0, table.height, _ROWS):
            _, _, rows = as_csv(table.slice(low, _ROWS)).partition("\n")
            text.write(rows)


_WRITERS: Final = {"parquet": _write_parquet, "csv": _write_csv}
