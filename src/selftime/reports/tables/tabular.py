"""Writes a view's table as CSV, JSON or Parquet.

The JSON form is `selftime.view/1` (docs/formats.md). CSV cells that a spreadsheet would run as a
formula get an apostrophe before them.
"""

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final

import polars as pl

from selftime.reports.plain import escape_control_characters
from selftime.schema import Column

FORMAT: Final = "selftime.view/1"
"""Name and version of the JSON form of a view's table."""

_FIRST_CHARACTERS_OF_FORMULAS: Final = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)
"""Characters that start a formula in spreadsheets, also the full-width ones of East Asia."""
_SET_OF_FIRST_CHARACTERS_OF_FORMULAS: Final = frozenset(_FIRST_CHARACTERS_OF_FORMULAS)
"""Characters that start a formula in spreadsheets, as a set."""
_SPREADSHEET_CELL_SEPARATOR: Final = ";"
"""Character that separates cells in spreadsheets of countries with decimal commas."""
_CHARACTERS_IGNORED_BEFORE_FORMULA: Final = ' "'
"""Characters before a formula that some spreadsheets skip."""


def nan_and_infinity_as_null(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the table with NaN and infinity replaced by null, as JSON cannot hold them."""
    numbers = pl.selectors.float()
    return table.with_columns(pl.when(numbers.is_finite()).then(numbers))


def as_csv(table: pl.DataFrame) -> str:
    """Returns the table as CSV with a header; null is an empty cell, an empty text is `""`."""
    return pl.DataFrame(
        [_column_as_csv_cells(column) for column in nan_and_infinity_as_null(table)]
    ).write_csv()


def as_json(
    table: pl.DataFrame,
    columns: tuple[Column, ...],
    *,
    view: str,
    options: Mapping[str, Any],
) -> str:
    """Returns the table as JSON with descriptions of its columns, one row per line, in ASCII."""
    header = {
        "format": FORMAT,
        "view": view,
        "options": dict(sorted(options.items())),
        "columns": [column_description_data(column) for column in columns],
    }
    rows = ",\n  ".join(
        _table_row_as_json(row) for row in nan_and_infinity_as_null(table).iter_rows(named=True)
    )
    opening = json.dumps(header, indent=1, allow_nan=False).removesuffix("\n}")
    return (
        f'{opening},\n "rows": [\n  {rows}\n ]\n}}\n' if rows else f'{opening},\n "rows": []\n}}\n'
    )


def as_parquet(table: pl.DataFrame) -> bytes:
    """Returns the table as the bytes of a Parquet file."""
    buffer = BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def column_description_data(column: Column) -> dict[str, Any]:
    """Returns the description of a column as a JSON object: name, unit, doc, nullable."""
    return {
        "name": column.name,
        "unit": column.unit,
        "doc": column.doc,
        "nullable": column.nullable,
    }


def _table_row_as_json(row: dict[str, Any]) -> str:
    """Returns a row as a JSON object in ASCII."""
    return json.dumps(row, allow_nan=False).replace("\x7f", "\\u007f")


def _column_as_csv_cells(column: pl.Series) -> pl.Series:
    """Returns the column with nested values as JSON text, and with formulas escaped."""
    if column.dtype.is_nested():
        return _map_non_null_values(column, lambda value: json.dumps(value, default=str))
    if column.dtype in (pl.Categorical, pl.Enum, pl.String):
        return _map_non_null_values(column.cast(pl.String), _escape_spreadsheet_formulas)
    return column


def _map_non_null_values(column: pl.Series, convert: Callable[[Any], str]) -> pl.Series:
    """Returns a text column in which a function converted each value that is not null."""
    if column.dtype == pl.String:
        replacements = {
            text: converted
            for text in column.unique()
            if text and (converted := convert(text)) != text
        }
        return column.replace(replacements) if replacements else column
    texts = [None if value is None else convert(value) for value in column.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


def _escape_spreadsheet_formulas(text: str) -> str:
    """Puts an apostrophe before each part of the text that a spreadsheet would run as a formula."""
    if not _SET_OF_FIRST_CHARACTERS_OF_FORMULAS.isdisjoint(text):
        text = _SPREADSHEET_CELL_SEPARATOR.join(
            map(_escape_cell_if_formula, text.split(_SPREADSHEET_CELL_SEPARATOR))
        )
    return escape_control_characters(text)


def _escape_cell_if_formula(cell: str) -> str:
    """Returns a cell with an apostrophe before it if a spreadsheet would run it as a formula."""
    is_formula = cell.lstrip(_CHARACTERS_IGNORED_BEFORE_FORMULA).startswith(
        _FIRST_CHARACTERS_OF_FORMULAS
    )
    return f"'{cell}" if is_formula else cell
