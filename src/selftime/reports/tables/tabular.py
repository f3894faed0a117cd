"""Any view's table as a file or a pipe wants it: CSV, JSON, Parquet.

The JSON form is `selftime.view/1` (docs/formats.md). Names are data: a cell of CSV that a
spreadsheet would run as a formula is written with an apostrophe before it.
"""

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final

import polars as pl

from selftime.reports.plain import escaped
from selftime.schema import Column

FORMAT: Final = "selftime.view/1"
"""The name and version of the JSON form."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet begins to compute at; in East Asian ones the full-width signs, too."""
_FORMULA_SIGNS: Final = frozenset(_FORMULA)
_ELSEWHERE: Final = ";"
"""What separates cells for spreadsheets of countries that write decimals with a comma."""
_IGNORED: Final = ' "'
"""What stands before a formula without making it a text, to one spreadsheet or another."""


def known(table: pl.DataFrame) -> pl.DataFrame:
    """The table with null where a number is none: neither JSON nor a reader can use NaN."""
    numbers = pl.selectors.float()
    return table.with_columns(pl.when(numbers.is_finite()).then(numbers))


def as_csv(table: pl.DataFrame) -> str:
    """The table with a header line; an unknown value is an empty cell, an empty text is `""`."""
    return pl.DataFrame([_cells(column) for column in known(table)]).write_csv()


def as_json(
    table: pl.DataFrame,
    columns: tuple[Column, ...],
    *,
    view: str,
    options: Mapping[str, Any],
) -> str:
    """The table with what its columns mean, one row a line, in ASCII."""
    head = {
        "format": FORMAT,
        "view": view,
        "options": dict(sorted(options.items())),
        "columns": [described(column) for column in columns],
    }
    rows = ",\n  ".join(_line(row) for row in known(table).iter_rows(named=True))
    opening = json.dumps(head, indent=1, allow_nan=False).removesuffix("\n}")
    return (
        f'{opening},\n "rows": [\n  {rows}\n ]\n}}\n' if rows else f'{opening},\n "rows": []\n}}\n'
    )


def as_parquet(table: pl.DataFrame) -> bytes:
    """The table with its types."""
    page = BytesIO()
    table.write_parquet(page)
    return page.getvalue()


def described(column: Column) -> dict[str, Any]:
    """What a column means, as a JSON object."""
    return {
        "name": column.name,
        "unit": column.unit,
        "doc": column.doc,
        "nullable": column.nullable,
    }


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, allow_nan=False).replace("\x7f", "\\u007f")


def _cells(column: pl.Series) -> pl.Series:
    """The column as CSV can hold it, each different text looked at once."""
    if column.dtype.is_nested():
        return _mapped(column, lambda value: json.dumps(value, default=str))
    if column.dtype in (pl.Categorical, pl.Enum, pl.String):
        return _mapped(column.cast(pl.String), _harmless)
    return column


def _mapped(column: pl.Series, write: Callable[[Any], str]) -> pl.Series:
    if column.dtype == pl.String:
        changed = {text: new for text in column.unique() if text and (new := write(text)) != text}
        return column.replace(changed) if changed else column
    texts = [None if value is None else write(value) for value in column.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


def _harmless(text: str) -> str:
    """The text as one cell that is no formula, nor several of which one is."""
    if not _FORMULA_SIGNS.isdisjoint(text):
        text = _ELSEWHERE.join(map(_inert, text.split(_ELSEWHERE)))
    return escaped(text)


def _inert(cell: str) -> str:
    begins = cell.lstrip(_IGNORED).startswith(_FORMULA)
    return f"'{cell}" if begins else cell
