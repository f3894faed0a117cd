"""Writes a view's table as text for a terminal, with units.

Numbers are never cut, and sentences are wrapped. Columns that are unknown or zero in all rows are
left out. If the others do not fit the width, names are cut in the middle, then the last columns are
left out and listed below the table, except for the column that the rows are sorted by.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from selftime import units
from selftime.reports.plain import cut_text_middle, plain
from selftime.reports.tables.tabular import nan_and_infinity_as_null
from selftime.reports.terminal import render_as_text
from selftime.schema import Column

_MAX_COLUMN_NAMES_IN_NOTE: Final = 6
"""Largest number of columns that a note below the table lists by name."""

_UNITS_OF_SEVERAL_WIDTHS: Final = ("ns", "instant", "bytes")
"""Units of columns whose amounts are written in units of one to three letters."""
_COLUMN_GAP_CHARACTERS: Final = 2
"""Number of spaces between two columns."""
_MIN_NAME_COLUMN_WIDTH: Final = 22
"""Smallest width in characters of a column of names; if it does not fit, columns are left out."""


@dataclass(frozen=True, slots=True)
class _TextColumn:
    """A column of a text table: its name, alignment and cells."""

    name: str
    cells: tuple[str, ...]
    is_number: bool
    folds: bool
    """Whether cells are sentences, wrapped over several lines; cells with names are cut instead."""

    @property
    def heading(self) -> str:
        """The column's name; if wider than the cells, in two lines, split at an underscore."""
        widest = max((cell_len(cell) for cell in self.cells), default=0)
        words = self.name.split("_")
        if cell_len(self.name) <= widest or len(words) == 1:
            return self.name
        splits = (("_".join(words[:n]) + "_", "_".join(words[n:])) for n in range(1, len(words)))
        return "\n".join(min(splits, key=lambda lines: max(map(cell_len, lines))))

    @property
    def full_width(self) -> int:
        """Number of characters that the column needs to show its cells and heading in full."""
        return max(cell_len(text) for text in (*self.heading.split("\n"), *self.cells))

    @property
    def min_width(self) -> int:
        """Smallest width of the column in characters; cells that contain names may be cut to it."""
        return self.full_width if self.is_number else min(self.full_width, _MIN_NAME_COLUMN_WIDTH)


def as_text(  # noqa: PLR0913 - keyword arguments
    table: pl.DataFrame,
    columns: tuple[Column, ...],
    *,
    width: int,
    rows: int | None = None,
    colour: bool = False,
    root: str | None = None,
    columns_hint: str = "choose with `--columns`",
) -> str:
    """Returns the first rows of a table as text for a terminal, and notes on omitted data.

    All rows are shown if `rows` is None. Files below `root` are relative to it. `columns_hint`
    tells the reader how to see columns that do not fit.
    """
    table = _with_relative_file_column(nan_and_infinity_as_null(table), root)
    table, columns = _with_values_in_units_of_rows(table, columns)
    shown_rows = table if rows is None else table.head(rows)
    zero_columns = [c.name for c in columns if _is_zero_in_all_rows(table[c.name], c)]
    shown_columns = [
        c for c in columns if c.name not in zero_columns and _is_empty_or_has_values(table[c.name])
    ]
    text_columns = [_format_column_as_text(shown_rows[c.name], c) for c in shown_columns]
    fitting = _fitting_columns(text_columns, width, _name_of_sort_column(table, columns))
    rich_table = _rich_table(fitting, _column_widths_in_characters(fitting, width))
    left_out = [column.name for column in text_columns if column not in fitting]
    notes = _notes_on_what_table_omits(
        table.height - shown_rows.height, zero_columns, left_out, columns_hint
    )
    if not table.height:
        notes = ["no rows"]
    return render_as_text(
        rich_table, *(Text(note, style="dim") for note in notes), width=width, colour=colour
    )


def _with_relative_file_column(table: pl.DataFrame, root: str | None) -> pl.DataFrame:
    """Returns the table with paths in the column `file` relative to the folder `root`."""
    if root is None or "file" not in table.columns:
        return table
    return table.with_columns(pl.col("file").cast(pl.String).str.strip_prefix(f"{root}/"))


def _with_values_in_units_of_rows(
    table: pl.DataFrame, columns: tuple[Column, ...]
) -> tuple[pl.DataFrame, tuple[Column, ...]]:
    """Returns the table with each `value` written in the `unit` of its row, without that column.

    So one duration has one form, whether it is a row's value or stands in a column of durations.
    """
    if not {"value", "unit"} <= set(table.columns):
        return table, columns
    pairs = zip(table["value"].to_list(), table["unit"].to_list(), strict=True)
    written = pl.Series(
        "value",
        [None if value is None else units.text_with_unit(value, unit) for value, unit in pairs],
        dtype=pl.String,
    )
    return table.with_columns(written), tuple(c for c in columns if c.name != "unit")


def _is_quantity_column(column: Column) -> bool:
    """Returns whether the column's unit is a quantity, such as time, not a name, text or id."""
    return column.unit not in ("name", "text", "sentence", "id", "flag", "instant")


def _is_zero_in_all_rows(values: pl.Series, column: Column) -> bool:
    """Returns whether the column is a quantity that is 0 in every row with a value."""
    known_values = values.drop_nulls()
    return (
        _is_quantity_column(column) and known_values.len() > 0 and bool((known_values == 0).all())
    )


def _is_empty_or_has_values(column: pl.Series) -> bool:
    """Returns whether the column has no rows, or has a value that is not null."""
    return column.is_empty() or column.null_count() < column.len()


def _format_column_as_text(values: pl.Series, column: Column) -> _TextColumn:
    """Returns a column with its values as text in their unit."""
    written = (units.value_text(value, column.unit) for value in values.to_list())
    cells = [plain(units.truncate_middle(text)) for text in written]
    if column.unit in _UNITS_OF_SEVERAL_WIDTHS:
        cells = _with_units_of_equal_width(cells)
    is_number = column.unit not in ("name", "text", "sentence")
    return _TextColumn(plain(column.name), tuple(cells), is_number, column.unit == "sentence")


def _with_units_of_equal_width(cells: list[str]) -> list[str]:
    """Returns amounts with spaces after shorter units, so that the digits stand in line.

    >>> _with_units_of_equal_width(["1.50 s", "84.0 µs", "-"])
    ['1.50 s ', '84.0 µs', '-']
    """
    amounts = [cell.partition(" ") for cell in cells]
    width = max((len(unit) for _, _, unit in amounts), default=0)
    return [f"{n}{space}{unit.ljust(width)}" if unit else n for n, space, unit in amounts]


def _name_of_sort_column(table: pl.DataFrame, columns: tuple[Column, ...]) -> str | None:
    """Returns the first quantity column that is in descending order; None if there is none."""
    for column in columns:
        values = table[column.name].drop_nulls()
        if (
            _is_quantity_column(column)
            and values.n_unique() > 1
            and values.is_sorted(descending=True)
        ):
            return column.name
    return None


def _fitting_columns(
    columns: list[_TextColumn], width: int, sort_column: str | None
) -> list[_TextColumn]:
    """Returns the first columns that fit in `width` characters, always with the sort column."""
    required = [column for column in columns[1:] if column.name == sort_column]
    remaining_width = width - sum(_COLUMN_GAP_CHARACTERS + column.min_width for column in required)
    fitting = columns[:1]
    for column in columns[1:]:
        if column.name != sort_column:
            if (
                sum(_COLUMN_GAP_CHARACTERS + fitting_column.min_width for fitting_column in fitting)
                + column.min_width
                > remaining_width
            ):
                break
            fitting = [*fitting, column]
    return [column for column in columns if column in fitting or column in required]


def _column_widths_in_characters(columns: list[_TextColumn], width: int) -> list[int]:
    """Returns column widths in characters: number columns in full, name columns share the rest."""
    remaining_width = (
        width
        - _COLUMN_GAP_CHARACTERS * (len(columns) - 1)
        - sum(c.full_width for c in columns if c.is_number)
    )
    name_columns = sorted((c for c in columns if not c.is_number), key=lambda c: c.full_width)
    widths_of_names: dict[str, int] = {}
    for index, column in enumerate(name_columns):
        widths_of_names[column.name] = max(
            1, min(column.full_width, remaining_width // (len(name_columns) - index))
        )
        remaining_width -= widths_of_names[column.name]
    return [widths_of_names.get(column.name, column.full_width) for column in columns]


def _rich_table(columns: list[_TextColumn], widths: list[int]) -> Table:
    rich_table = Table(
        box=None, padding=(0, _COLUMN_GAP_CHARACTERS, 0, 0), pad_edge=False, header_style="bold"
    )
    for column, column_width in zip(columns, widths, strict=True):
        heading = "\n".join(
            cut_text_middle(line, column_width) for line in column.heading.split("\n")
        )
        rich_table.add_column(
            Text(heading),
            width=column_width,
            justify="right" if column.is_number else "left",
            vertical="top",
            no_wrap=not column.folds,
            overflow="fold" if column.folds else "crop",
        )
    cut_cells = [
        s.cells if s.folds else [cut_text_middle(c, column_width) for c in s.cells]
        for s, column_width in zip(columns, widths, strict=True)
    ]
    for row in zip(*cut_cells, strict=True):
        rich_table.add_row(*(Text(cell) for cell in row))
    return rich_table


def _notes_on_what_table_omits(
    more_rows: int, zero_columns: list[str], left_out: list[str], columns_hint: str
) -> list[str]:
    """Returns notes about columns that are zero, rows that are not shown, and columns left out."""
    notes = []
    if zero_columns:
        notes.append(f"columns of zeros only: {_shortened_list_of_column_names(zero_columns)}")
    if more_rows:
        notes.append(f"{more_rows:,} more rows: `--rows 0` shows all")
    if left_out:
        names = _shortened_list_of_column_names(left_out)
        notes.append(f"columns that do not fit: {names} ({columns_hint})")
    return notes


def _shortened_list_of_column_names(names: list[str]) -> str:
    """Returns the first column names as text, with the number of names that are left out."""
    if len(names) <= _MAX_COLUMN_NAMES_IN_NOTE:
        return ", ".join(names)
    first_names = ", ".join(names[:_MAX_COLUMN_NAMES_IN_NOTE])
    return f"{first_names} and {len(names) - _MAX_COLUMN_NAMES_IN_NOTE} more"
