"""Writes the result of an SQL query as text, or in the JSON form `selftime.sql/1`.

Results have no declared unit, so values are not scaled: times are in nanoseconds and sizes in
bytes, like the columns that they are computed from (docs/formats.md).
"""

import json
from typing import Any, Final

import polars as pl

from selftime.reports.tables.tabular import nan_and_infinity_as_null
from selftime.reports.tables.text_table import as_text
from selftime.schema import Column

FORMAT: Final = "selftime.sql/1"
"""Name and version of the JSON form of a query's result."""
_SIGNIFICANT_DIGITS_IN_TEXT_TABLE: Final = 4
"""Number of significant digits with which a terminal shows numbers below 1."""
_MAX_DECIMAL_PLACES_IN_TEXT_TABLE: Final = 3
"""Largest number of decimals with which a terminal shows numbers of 1 or more."""


def as_json(result: pl.DataFrame, sql_query: str) -> str:
    """Returns a query and its result as ASCII JSON: columns with dtypes, and one row per line."""
    header = {
        "format": FORMAT,
        "query": sql_query,
        "columns": [{"name": name, "dtype": str(dtype)} for name, dtype in result.schema.items()],
    }
    rows = ",\n  ".join(
        _result_row_as_json(row) for row in nan_and_infinity_as_null(result).iter_rows(named=True)
    )
    opening = json.dumps(header, indent=1, allow_nan=False).removesuffix("\n}")
    rows_json = f"[\n  {rows}\n ]" if rows else "[]"
    return f'{opening},\n "rows": {rows_json}\n}}\n'


def as_table(
    result: pl.DataFrame, *, width: int, rows: int | None = None, colour: bool = False
) -> str:
    """Returns a query's result as a text table for a terminal, with null values as dashes."""
    columns = tuple(
        Column(name, dtype, "id" if dtype.is_numeric() else "text", "", True)
        for name, dtype in result.schema.items()
    )
    shown = nan_and_infinity_as_null(result).with_columns(
        _round_numbers_for_terminal(pl.selectors.float()),
        pl.selectors.by_dtype(pl.Null).cast(pl.String),
    )
    unknown_columns = [
        name for name in shown.columns if 0 < shown.height == shown[name].null_count()
    ]
    shown = shown.with_columns(pl.lit("-").alias(name) for name in unknown_columns)
    columns_hint = "name fewer in the query"
    return as_text(shown, columns, width=width, rows=rows, colour=colour, columns_hint=columns_hint)


def _round_numbers_for_terminal(numbers: pl.Expr) -> pl.Expr:
    """Returns a Polars expression that rounds numbers for display in a terminal."""
    fraction = numbers.abs() < 1
    return (
        pl.when(fraction)
        .then(numbers.round_sig_figs(_SIGNIFICANT_DIGITS_IN_TEXT_TABLE))
        .otherwise(numbers.round(_MAX_DECIMAL_PLACES_IN_TEXT_TABLE))
    )


def _result_row_as_json(row: dict[str, Any]) -> str:
    """Returns a row as an ASCII JSON object; values without a JSON form become strings."""
    return json.dumps(row, allow_nan=False, default=str).replace("\x7f", "\\u007f")
