"""Exports every table of a trace, or chosen views, to one Excel workbook, a sheet each.

Texts are written as texts: none becomes a formula, a link or a number. What a sheet cannot hold as
it is: more than 1,048,575 rows, which is refused; an integer of more than 15 digits, which is
written as a text; a text of more than 32,767 characters, which is cut.
"""

import json
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import polars as pl

from selftime.errors import MissingDependency, UsageError
from selftime.reports.export.export_format import Export, ExportOptions, ExportResult
from selftime.reports.export.tables import names_columns_and_tables_to_export
from selftime.reports.plain import escape_control_characters
from selftime.reports.tables.tabular import nan_and_infinity_as_null
from selftime.reports.trace_file import open_file_writer
from selftime.schema import Column
from selftime.trace import Trace

MAX_ROWS_OF_SHEET: Final = (1 << 20) - 1
"""Largest number of rows that a sheet holds below its header."""
_MAX_CHARACTERS_OF_CELL: Final = (1 << 15) - 1
_MAX_EXACT_INTEGER: Final = 10**15 - 1
"""Largest integer of which a spreadsheet shows every digit."""
_COLUMN_WIDTHS: Final = (8, 60)
"""Smallest and largest width of a column, in characters."""
_ROWS_THAT_SET_THE_WIDTH: Final = 1_000
_DESCRIPTIONS_SHEET: Final = "columns"
"""Name of the first sheet, which says what each column of the others is."""
_BYTES_PER_READ: Final = 1 << 20
_TIME_OF_CREATION: Final = datetime(1980, 1, 1, tzinfo=timezone.utc)
"""What stands in the file as the time of its creation, so that equal tables give equal files."""
_WORKBOOK_OPTIONS: Final = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}


def write(trace: Trace, output: Path, options: ExportOptions) -> ExportResult:
    """Writes the tables to one workbook.

    Raises:
        MissingDependency: XlsxWriter is not installed.
        UsageError: A table has more rows than a sheet, there is no such view, or `output` is the
            trace's own file or a folder.
        SelftimeError: The file cannot be written.
    """
    result = ExportResult()
    tables = [
        (name, columns, make_table())
        for name, _, columns, make_table in names_columns_and_tables_to_export(trace, options.views)
    ]
    for name, _, table in tables:
        if table.height > MAX_ROWS_OF_SHEET:
            raise UsageError(
                f"the table `{name}` has {table.height:,} rows, and a sheet of a workbook holds "
                f"{MAX_ROWS_OF_SHEET:,}; write it with `--to parquet`, or a view with `--view`"
            )
    with (
        open_file_writer(output, trace.source) as write_bytes,
        TemporaryDirectory(prefix="selftime-") as folder,
    ):
        path = Path(folder) / "tables.xlsx"
        sheets = _Workbook(path, folder)
        sheets.add_descriptions([(name, columns) for name, columns, _ in tables])
        for number, (name, columns, table) in enumerate(tables, 1):
            sheets.add_table(name, columns, table)
            result.written[name] = table.height
            options.progress(number, len(tables))
        sheets.close()
        with path.open("rb") as file:
            while part := file.read(_BYTES_PER_READ):
                write_bytes(part)
    result.size = write_bytes.size
    result.record_left_out("ends of texts longer than 32,767 characters", sheets.cut_count)
    return result


XLSX: Final = Export(
    "xlsx",
    "Excel, LibreOffice: every table, a sheet each",
    ".xlsx",
    write,
    frozenset({"views"}),
)


class _Workbook:
    """A workbook that is written sheet by sheet and row by row, so that memory stays small."""

    def __init__(self, path: Path, folder: str) -> None:
        try:
            from xlsxwriter import Workbook  # noqa: PLC0415 - an optional package
        except ImportError as error:
            raise MissingDependency(
                "`xlsx` needs XlsxWriter, which is not installed: install the extra `xlsx` of "
                "selftime (README, Install), or write the tables with `--to csv`"
            ) from error
        self._workbook: Any = Workbook(str(path), {**_WORKBOOK_OPTIONS, "tmpdir": folder})
        self._workbook.set_properties({"created": _TIME_OF_CREATION})
        self._head = self._workbook.add_format({"bold": True})
        self.cut_count = 0
        """Number of texts that were too long for a cell, and were cut."""

    def add_descriptions(self, tables: list[tuple[str, tuple[Column, ...]]]) -> None:
        """Adds the sheet that says what each column is."""
        rows = [
            {"table": name, "column": column.name, "unit": column.unit, "what": column.doc}
            for name, columns in tables
            for column in columns
        ]
        dtypes = dict.fromkeys(("table", "column", "unit", "what"), pl.String)
        self._add_sheet(_DESCRIPTIONS_SHEET, pl.DataFrame(rows, schema=dtypes))

    def add_table(self, name: str, columns: tuple[Column, ...], table: pl.DataFrame) -> None:
        """Adds a sheet with a table; a header stays in sight and can filter."""
        order = [column.name for column in columns if column.name in table.columns]
        self._add_sheet(name, nan_and_infinity_as_null(table.select(order)))

    def _add_sheet(self, name: str, table: pl.DataFrame) -> None:
        sheet = self._workbook.add_worksheet(name)
        sheet.freeze_panes(1, 0)
        if table.width:
            sheet.autofilter(0, 0, table.height, table.width - 1)
        for number, column in enumerate(table):
            sheet.set_column(number, number, _width_of_column(column))
        sheet.write_row(0, 0, table.columns, self._head)
        for row, values in enumerate(table.iter_rows(), 1):
            for number, value in enumerate(values):
                self._write_cell(sheet, row, number, value)

    def _write_cell(self, sheet: Any, row: int, column: int, value: object) -> None:
        if value is None:
            return
        if isinstance(value, bool):
            sheet.write_boolean(row, column, value)
        elif isinstance(value, int | float) and abs(value) <= _MAX_EXACT_INTEGER:
            sheet.write_number(row, column, value)
        else:
            text = escape_control_characters(_text_of_value(value))
            if len(text) > _MAX_CHARACTERS_OF_CELL:
                text = text[: _MAX_CHARACTERS_OF_CELL - 1] + "\u2026"
                self.cut_count += 1
            sheet.write_string(row, column, text)

    def close(self) -> None:
        self._workbook.close()


def _text_of_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _width_of_column(column: pl.Series) -> int:
    """Returns a width in which most values of a column can be read."""
    texts = [_text_of_value(value) for value in column.head(_ROWS_THAT_SET_THE_WIDTH).drop_nulls()]
    longest = max(map(len, [column.name, *texts]), default=0) + 2
    return min(max(longest, _COLUMN_WIDTHS[0]), _COLUMN_WIDTHS[1])
