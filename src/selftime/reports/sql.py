"""What a query answers, for people and for programs. The JSON form is `selftime.sql/1`.

What a query computes has no declared unit, so that nothing is scaled: times are nanoseconds, sizes
bytes, as the columns that they are computed from declare (docs/formats.md).
"""

import json
from typing import Any, Final

import polars as pl

from selftime.reports.tables.table import as_text
from selftime.reports.tables.tabular import known
from selftime.schema import Column

FORMAT: Final = "selftime.sql/1"
"""The name and version of the JSON form."""
_DIGITS: Final = 4
"""Of a fraction below 1 that a terminal shows."""
_PLACES: Final = 3
"""After the point, of larger numbers there."""


def as_json(answer: pl.DataFrame, text: str) -> str:
    """The query, the answer's columns with their Polars dtypes, and a row a line, in ASCII."""
    head = {
        "format": FORMAT,
        "query": text,
        "columns": [{"name": name, "dtype": str(kind)} for name, kind in answer.schema.items()],
    }
    rows = ",\n  ".join(_line(row) for row in known(answer).iter_rows(named=True))
    opening = json.dumps(head, indent=1, allow_nan=False).removesuffix("\n}")
    listed = f"[\n  {rows}\n ]" if rows else "[]"
    return f'{opening},\n "rows": {listed}\n}}\n'


def as_table(
    answer: pl.DataFrame, *, width: int, rows: int | None = None, colour: bool = False
) -> str:
    """The answer as a terminal shows it, unknown values as dashes."""
    columns = tuple(
        Column(name, kind, "id" if kind.is_numeric() else "text", "", True)
        for name, kind in answer.schema.items()
    )
    shown = known(answer).with_columns(
        _rounded(pl.selectors.float()), pl.selectors.by_dtype(pl.Null).cast(pl.String)
    )
    unknown = [name for name in shown.columns if 0 < shown.height == shown[name].null_count()]
    shown = shown.with_columns(pl.lit("-").alias(name) for name in unknown)
    choose = "name fewer in the query"
    return as_text(shown, columns, width=width, rows=rows, colour=colour, choose=choose)


def _rounded(numbers: pl.Expr) -> pl.Expr:
    fraction = numbers.abs() < 1
    return pl.when(fraction).then(numbers.round_sig_figs(_DIGITS)).otherwise(numbers.round(_PLACES))


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, allow_nan=False, default=str).replace("\x7f", "\\u007f")
