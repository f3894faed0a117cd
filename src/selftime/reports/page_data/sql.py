"""Describes what an SQL query can read, and its result, as JSON for the web page."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import polars as pl

from selftime.reports.page_data.table_queries import RowQuery, prepare_table
from selftime.schema import Column
from selftime.sql import TABLES, VIEW_NAMES
from selftime.sql.error_place import QueryPlace
from selftime.sql.examples import EXAMPLES
from selftime.sql.limited_query import QueryResult
from selftime.trace import Trace
from selftime.units import Unit
from selftime.views import VIEWS

_UNITS_BY_NAME_ENDING: Final[Mapping[str, Unit]] = {
    "_ns": "ns",
    "_bytes": "bytes",
    "_flops": "flops",
    "_share": "ratio",
}
"""Units of a result's columns of numbers by the end of their names: the query's author says so."""


def schema_data(trace: Trace) -> dict[str, Any]:
    """Returns the tables and views that a query of a trace can read, and example queries."""
    return {
        "relations": [*_tables_data(trace), *_views_data()],
        "examples": [
            {"question": one.question, "query": one.text, "chart": one.chart} for one in EXAMPLES
        ],
    }


def result_json(result: QueryResult, seconds: float) -> bytes:
    """Returns a query's result as JSON: its columns, as many rows as an answer holds, and facts."""
    columns = tuple(
        Column(name, dtype, unit_of_column(name, dtype), "", nullable=True)
        for name, dtype in result.table.schema.items()
    )
    page = prepare_table(result.table, columns).page_json(RowQuery(), view="sql", options={})
    return msgspec.json.encode(
        {
            "columns": [_column_data(column) for column in columns],
            "page": msgspec.Raw(page),
            "row_count": result.row_count,
            "seconds": round(seconds, 3),
        }
    )


def failure_json(sentence: str, place: QueryPlace | None) -> bytes:
    """Returns why a query has no result as JSON: a sentence, and the part of the query it names."""
    told = None if place is None else place._asdict()
    return msgspec.json.encode({"error": sentence, "place": told})


def _tables_data(trace: Trace) -> Iterator[dict[str, Any]]:
    """Yields the JSON object of each table, by its name in a query."""
    tables = trace.tables()
    for name, table in TABLES.items():
        rows = tables[name].height if name in tables else 1
        in_query = f"tables.{name}" if name in VIEWS else name
        yield _relation_data(in_query, "table", table.doc, table.columns, rows)


def _views_data() -> Iterator[dict[str, Any]]:
    """Yields the JSON object of each view, by its name in a query."""
    for in_query, name in VIEW_NAMES.items():
        view = VIEWS[name]
        yield _relation_data(in_query, "view", view.title, view.columns, None)


def _relation_data(
    name: str, kind: str, doc: str, columns: tuple[Column, ...], rows: int | None
) -> dict[str, Any]:
    described = [_column_data(column) for column in columns]
    return {"name": name, "kind": kind, "doc": doc, "rows": rows, "columns": described}


def _column_data(column: Column) -> dict[str, Any]:
    """Returns a column as the page's JSON object `SqlColumn`."""
    return {
        "name": column.name,
        "type": _type_word(column.dtype),
        "unit": column.unit,
        "doc": column.doc,
        "nullable": column.nullable,
        "labels": {},
    }


def _type_word(dtype: pl.DataType | type[pl.DataType]) -> str:
    """Returns what the values of a column are, in a word."""
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "number"
    if dtype == pl.Boolean:
        return "flag"
    return "list" if dtype.is_nested() else "text"


def unit_of_column(name: str, dtype: pl.DataType) -> Unit:
    """Returns the unit of a result's column: as its name ends, otherwise none."""
    if not dtype.is_numeric():
        return "flag" if dtype == pl.Boolean else "text"
    endings = (unit for ending, unit in _UNITS_BY_NAME_ENDING.items() if name.endswith(ending))
    return next(endings, "id")
