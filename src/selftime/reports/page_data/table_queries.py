"""Searches, filters and sorts a view's table for the page, and returns a range of its rows.

The JSON form is `Page` of `frontend/src/data/api.ts` (docs/formats.md). Integers that JavaScript
cannot hold exactly are written as texts, NaN and infinity as null; texts are dictionary-encoded.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import polars as pl

from selftime.errors import UsageError
from selftime.reports.tables.tabular import nan_and_infinity_as_null
from selftime.schema import Column

MAX_RESPONSE_BYTES: Final = 5_000_000
"""Largest size of a response in bytes; the page requests further rows separately."""

FilterOperator: TypeAlias = Literal["is", "has", "from", "to"]
"""Comparison of a filter: equal (`is`), contains (`has`), at least (`from`), at most (`to`)."""

FILTER_OPERATORS: Final[tuple[str, ...]] = get_args(FilterOperator)
"""All comparisons of a filter: equal (`is`), contains (`has`), at least (`from`), at most
(`to`)."""

_BOOLEAN_FILTER_WORDS: Final = {
    "true": True,
    "yes": True,
    "1": True,
    "false": False,
    "no": False,
    "0": False,
}
"""Texts that a filter on a boolean column accepts, with their values."""
_MAX_CELL_TEXT_CHARACTERS: Final = 1 << 14
"""Largest number of characters of a text in a table cell; the rest is cut, so that a row always
fits."""
_MAX_JAVASCRIPT_INTEGER: Final = 1 << 53
"""Largest integer that JavaScript's numbers represent exactly."""
_MIN_BYTES_OF_CELL_IN_JSON: Final = len("0,")
"""Smallest size of a cell in JSON, in bytes."""
_MAX_ABS_NUMBER_IN_QUERY: Final = 1 << 62
"""Largest absolute value of a number in a filter or in a range of rows."""
_ROWS_ENCODED_TO_ESTIMATE_ROW_SIZE: Final = 256
"""Number of rows that are encoded first, to estimate the size of a row in bytes."""


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """A condition on one table column; texts are compared without regard to case."""

    column: str
    op: FilterOperator
    value: str


@dataclass(frozen=True, slots=True)
class RowQuery:
    """A query of a table by the web page: filters, searched text, sort order, rows and columns."""

    sort: str = ""
    """Column to sort by, `-` before it for descending order; empty keeps the view's order."""
    find: str = ""
    """Text that a row must contain in at least one column; empty selects every row."""
    where: tuple[ColumnFilter, ...] = ()
    """Conditions that a row must all meet."""
    start: int = 0
    """Number of matching rows to skip."""
    rows: int | None = None
    """Largest number of rows to return; None means as many as fit in a response."""
    columns: tuple[str, ...] = ()
    """Names of the columns to return; empty returns all."""


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """A view's table prepared for fast queries; texts are stored as alphabetical positions."""

    table: pl.DataFrame
    """Table as the view returned it."""
    columns: tuple[Column, ...]
    cells: pl.DataFrame
    """Table in which each text is replaced by its position in `texts`."""
    texts: Mapping[str, pl.Series] = field(default_factory=dict)
    """Sorted distinct texts of each text column, by column name."""
    sums: tuple[str, ...] = ()
    """Names of the columns whose sum is meaningful."""

    def matching_rows(self, query: RowQuery) -> pl.Series:
        """Returns the indices of the rows that match the query, in the requested order."""
        conditions = [self._expression_for_filter(column_filter) for column_filter in query.where]
        if query.find:
            conditions.append(self._expression_for_search(query.find))
        rows = self.cells.with_row_index("\0row")
        if query.sort:
            name = query.sort.removeprefix("-")
            self._raise_if_no_column(name)
            ordered = rows.lazy().filter(*conditions).select("\0row", name)
            descending = query.sort.startswith("-")
            ordered = ordered.sort(
                name, descending=descending, nulls_last=True, maintain_order=True
            )
            return ordered.select("\0row").collect()["\0row"]
        return rows.lazy().filter(*conditions).select("\0row").collect()["\0row"]

    def selected_columns(self, query: RowQuery) -> list[str]:
        """Returns the names of the requested columns; all if the query names none."""
        for name in query.columns:
            self._raise_if_no_column(name)
        return list(query.columns or self.cells.columns)

    def page_json(
        self,
        query: RowQuery,
        *,
        view: str,
        options: Mapping[str, Any],
        missing_data: Sequence[str] = (),
        max_bytes: int = MAX_RESPONSE_BYTES,
    ) -> bytes:
        """Returns the matching rows as JSON, as many as fit in `max_bytes` bytes."""
        cells = self.cells.select(self.selected_columns(query))
        rows = self.matching_rows(query)
        header = {
            "view": view,
            "options": dict(sorted(options.items())),
            "all": self.table.height,
            "total": len(rows),
            "totals": self.column_sums_of_rows(rows),
            "lacks": list(missing_data),
        }
        start = min(max(query.start, 0), len(rows))
        requested = (
            len(rows) if query.rows is None else min(max(query.rows, 0), _MAX_ABS_NUMBER_IN_QUERY)
        )
        fitting_rows = rows.slice(
            start, _max_number_of_fitting_rows(requested, cells.width, max_bytes)
        )
        sample_json = self._encode_page_as_json(
            header, start, cells[fitting_rows.head(_ROWS_ENCODED_TO_ESTIMATE_ROW_SIZE)]
        )
        if len(fitting_rows) <= _ROWS_ENCODED_TO_ESTIMATE_ROW_SIZE and len(sample_json) < max_bytes:
            return sample_json
        row_count = _estimated_number_of_fitting_rows(
            len(fitting_rows),
            len(sample_json) / min(len(fitting_rows), _ROWS_ENCODED_TO_ESTIMATE_ROW_SIZE),
            max_bytes,
        )
        while True:
            page = self._encode_page_as_json(header, start, cells[fitting_rows.head(row_count)])
            if len(page) < max_bytes or row_count <= 1:
                return page
            row_count = max(
                1,
                min(
                    row_count - 1,
                    _estimated_number_of_fitting_rows(row_count, len(page) / row_count, max_bytes),
                ),
            )

    def column_sums_of_rows(self, row_indices: pl.Series) -> dict[str, int | float | None]:
        """Returns the sums over the given rows of the columns whose sum is meaningful."""
        values = self.cells.select(self.sums)
        if len(row_indices) < values.height:
            values = values[row_indices]
        return {name: _sum_of_column(values[name]) for name in self.sums}

    def _encode_page_as_json(
        self, header: Mapping[str, Any], start: int, cells: pl.DataFrame
    ) -> bytes:
        """Returns rows as JSON: the header, the first row's index, and each column's values."""
        columns = {name: self._column_json(cells[name]) for name in cells.columns}
        return msgspec.json.encode(
            {**header, "from": start, "rows": cells.height, "columns": columns}
        )

    def _column_json(self, column: pl.Series) -> dict[str, Any]:
        """Returns a column as JSON: its values; for texts, distinct texts and an index per row."""
        texts = self.texts.get(column.name)
        if texts is None:
            return {"values": _numbers_for_json(column)}
        text_positions = column.to_list()
        used_positions = [
            position for position in dict.fromkeys(text_positions) if position is not None
        ]
        codes: dict[int | None, int | None] = {
            position: number for number, position in enumerate(used_positions)
        }
        codes[None] = None
        return {
            "codes": [codes[position] for position in text_positions],
            "texts": [_shorten_cell_text(text) for text in texts[used_positions]],
        }

    def _raise_if_no_column(self, name: str) -> None:
        """Raises a UsageError if there is no column of that name."""
        if name not in self.cells.columns:
            known_names = ", ".join(self.cells.columns)
            raise UsageError(f"there is no column `{name}`; there are {known_names}")

    def _expression_for_filter(self, column_filter: ColumnFilter) -> pl.Expr:
        """Returns a Polars expression that is true for the rows that meet a filter's condition."""
        self._raise_if_no_column(column_filter.column)
        column = pl.col(column_filter.column)
        texts = self.texts.get(column_filter.column)
        if column_filter.op == "is" and column_filter.value == "":
            empty_positions = [] if texts is None else _positions_of_true(texts == "")
            return column.is_null() | column.is_in(empty_positions)
        if texts is not None:
            return column.is_in(
                _positions_of_true(_mask_of_texts_meeting_filter(texts, column_filter))
            )
        if self.cells.schema[column_filter.column] == pl.Boolean:
            return column == _parse_filter_boolean(column_filter)
        return _expression_for_number_filter(column, column_filter)

    def _expression_for_search(self, searched_text: str) -> pl.Expr:
        """Returns an expression that is true for rows with the searched text in any text column."""
        lower = searched_text.lower()
        matches = [
            pl.col(name).is_in(
                _positions_of_true(texts.str.to_lowercase().str.contains(lower, literal=True))
            )
            for name, texts in self.texts.items()
        ]
        return pl.any_horizontal(pl.lit(value=False), *matches)


def prepare_table(
    table: pl.DataFrame, columns: Sequence[Column], *, sums: tuple[str, ...] = ()
) -> PreparedTable:
    """Returns a view's table prepared for queries; `sums` names the columns that can be summed."""
    selected = nan_and_infinity_as_null(table.select(column.name for column in columns))
    text_columns = [
        _column_as_texts(column) for column in selected if _is_shown_as_text(column.dtype)
    ]
    texts = _sorted_distinct_texts_by_column(pl.DataFrame(text_columns))
    cells = selected.with_columns(
        _positions_in_sorted_texts(column, texts[column.name]) for column in text_columns
    )
    return PreparedTable(table, tuple(columns), cells, texts, sums)


def _is_shown_as_text(dtype: pl.DataType) -> bool:
    """Returns whether values of this dtype are shown as text, not as numbers or booleans."""
    return not (dtype.is_numeric() or dtype == pl.Boolean)


def _column_as_texts(column: pl.Series) -> pl.Series:
    """Returns the column as texts, with lists and other nested values as JSON."""
    if not column.dtype.is_nested():
        return column.cast(pl.String)
    texts = [
        None if value is None else json.dumps(_series_as_list_or_value(value), default=str)
        for value in column.to_list()
    ]
    return pl.Series(column.name, texts, dtype=pl.String)


def _series_as_list_or_value(value: Any) -> Any:
    """Returns a series as a list, and any other value unchanged."""
    return value.to_list() if isinstance(value, pl.Series) else value


def _sorted_distinct_texts_by_column(text_columns: pl.DataFrame) -> dict[str, pl.Series]:
    """Returns the sorted distinct texts of each column, by column name."""
    if not text_columns.width:
        return {}
    [texts] = text_columns.select(pl.all().drop_nulls().unique().sort().implode()).iter_rows(
        named=True
    )
    return {name: pl.Series(name, values, dtype=pl.String) for name, values in texts.items()}


def _positions_in_sorted_texts(column: pl.Series, texts: pl.Series) -> pl.Series:
    """Returns the position of each text of a column among the column's sorted distinct texts."""
    return column.cast(pl.Enum(texts)).to_physical().cast(pl.UInt32)


def _positions_of_true(mask: pl.Series) -> list[int]:
    return mask.arg_true().to_list()


def _mask_of_texts_meeting_filter(texts: pl.Series, column_filter: ColumnFilter) -> pl.Series:
    """Returns for each text whether it meets the condition of the filter."""
    lower, value = texts.str.to_lowercase(), column_filter.value.lower()
    match column_filter.op:
        case "is":
            return lower == value
        case "has":
            return lower.str.contains(value, literal=True)
    name, op = column_filter.column, column_filter.op
    raise UsageError(f"`{name}` is a text column; filter it with `is` or `has`, not `{op}`")


def _expression_for_number_filter(column: pl.Expr, column_filter: ColumnFilter) -> pl.Expr:
    """Returns a Polars expression that is true for the numbers that meet a filter's condition."""
    match column_filter.op:
        case "has":
            return column.cast(pl.String).str.contains(column_filter.value.lower(), literal=True)
        case "from":
            return column >= _parse_filter_number(column_filter)
        case "to":
            return column <= _parse_filter_number(column_filter)
    return column == _parse_filter_number(column_filter)


def _parse_filter_boolean(column_filter: ColumnFilter) -> bool:
    """Returns the filter's value as true or false."""
    if column_filter.op != "is" or column_filter.value.lower() not in _BOOLEAN_FILTER_WORDS:
        raise UsageError(
            f"`{column_filter.column}` is a column of `true` and `false`; filter it with `is`"
        )
    return _BOOLEAN_FILTER_WORDS[column_filter.value.lower()]


def _parse_filter_number(column_filter: ColumnFilter) -> int | float:
    """Returns the filter's value as an int if possible, else as a float."""
    for kind in (int, float):
        try:
            value = kind(column_filter.value)
        except ValueError:
            continue
        if abs(value) <= _MAX_ABS_NUMBER_IN_QUERY:  # false for NaN
            return value
    raise UsageError(
        f"`{column_filter.column}` is compared with `{column_filter.value[:40]}`; write a number"
    )


def _numbers_for_json(column: pl.Series) -> list[Any]:
    """Returns numbers for JSON; integers that JavaScript cannot represent become texts."""
    values = column.to_list()
    if not column.dtype.is_integer():
        return values
    smallest: Any = column.min()
    largest: Any = column.max()
    if smallest is None or (
        smallest >= -_MAX_JAVASCRIPT_INTEGER and largest <= _MAX_JAVASCRIPT_INTEGER
    ):
        return values
    return [
        value
        if value is None or -_MAX_JAVASCRIPT_INTEGER <= value <= _MAX_JAVASCRIPT_INTEGER
        else str(value)
        for value in values
    ]


def _shorten_cell_text(text: str) -> str:
    """Returns the text; one of over 16,384 characters is cut at the end."""
    if len(text) <= _MAX_CELL_TEXT_CHARACTERS:
        return text
    cut_count = len(text) - _MAX_CELL_TEXT_CHARACTERS
    return f"{text[:_MAX_CELL_TEXT_CHARACTERS]}… ({cut_count:,} more characters)"


def _sum_of_column(column: pl.Series) -> int | float | None:
    """Returns a column's sum, as a float if too large for JavaScript; None if all are null."""
    if column.null_count() == len(column):
        return None
    if not column.dtype.is_integer():
        return float(column.sum())
    total = int(column.cast(pl.Int128).sum())
    return total if abs(total) <= _MAX_JAVASCRIPT_INTEGER else float(total)


def _max_number_of_fitting_rows(requested_rows: int, column_count: int, max_page_bytes: int) -> int:
    """Returns an upper bound of the rows that fit in a response, from the smallest cell size."""
    return min(
        requested_rows, max_page_bytes // (_MIN_BYTES_OF_CELL_IN_JSON * max(1, column_count))
    )


def _estimated_number_of_fitting_rows(row_count: int, row_bytes: float, max_bytes: int) -> int:
    """Returns how many rows of mean size `row_bytes` fit in 90 % of `max_bytes`, at least 1."""
    return max(1, min(row_count, int(0.9 * max_bytes / max(row_bytes, 1))))
