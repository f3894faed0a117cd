"""A trace's tables as a workbook: every cell what it is, and no text more than a text."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import polars as pl
import pytest
from tests.reports.export.drawn import HOSTILE, everything, read

from selftime.errors import MissingDependency, UsageError
from selftime.reports.export import export
from selftime.reports.export.workbook import MAX_ROWS_OF_SHEET
from selftime.schema import TABLES
from selftime.trace import Trace

MAIN: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
Cell = str | float | bool | None


@pytest.fixture(autouse=True)
def _needs_xlsxwriter() -> None:
    pytest.importorskip("xlsxwriter", reason="needs XlsxWriter")


def sheets_of(path: Path) -> dict[str, ET.Element]:
    """The XML of each sheet, by its name."""
    with ZipFile(path) as file:
        book = ET.fromstring(file.read("xl/workbook.xml"))  # noqa: S314 - our own file
        names = [sheet.attrib["name"] for sheet in book.iter(f"{MAIN}sheet")]
        texts = [file.read(f"xl/worksheets/sheet{n}.xml") for n in range(1, len(names) + 1)]
    return dict(zip(names, map(ET.fromstring, texts), strict=True))


def cell_of(one: ET.Element) -> Cell:
    kind = one.attrib.get("t", "n")
    if kind == "inlineStr":
        text = "".join(part.text or "" for part in one.iter(f"{MAIN}t"))
        return re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), text)
    value = one.findtext(f"{MAIN}v")
    assert value is not None
    return bool(int(value)) if kind == "b" else float(value)


def rows_of(sheet: ET.Element) -> list[dict[str, Cell]]:
    """Each row by the letters of its columns."""
    return [
        {one.attrib["r"].rstrip("0123456789"): cell_of(one) for one in row.iter(f"{MAIN}c")}
        for row in sheet.iter(f"{MAIN}row")
    ]


def test_nothing_recorded_gives_every_table_with_its_header(tmp_path: Path) -> None:
    export(Trace(), tmp_path / "a.xlsx", to="xlsx")
    sheets = sheets_of(tmp_path / "a.xlsx")
    assert list(sheets) == ["columns", *TABLES]
    for name, table in TABLES.items():
        [head] = rows_of(sheets[name])
        assert list(head.values()) == list(table.dtypes)


def test_cells_are_those_of_the_table(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    told = export(trace, tmp_path / "a.xlsx", to="xlsx")
    head, *rows = rows_of(sheets_of(tmp_path / "a.xlsx")["slices"])
    letter = {name: key for key, name in head.items()}
    assert told.written["slices"] == len(rows) == trace.slices.height
    for name in ("id", "start", "duration", "launch"):
        assert [row.get(letter[name]) for row in rows] == trace.slices[name].to_list()
    grids = rows_of(sheets_of(tmp_path / "a.xlsx")["device_args"])
    assert json.dumps([4, 2, 1]) in grids[1].values()


def test_a_name_is_a_text_whatever_it_looks_like(tmp_path: Path) -> None:
    names = [*HOSTILE, "=1+1", "@SUM(A1)", "http://example.invalid/", "mailto:a@b", "1e5", "{=1}"]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 1}
        for at, name in enumerate(names)
    ]
    export(read(tmp_path / "trace.json", events), tmp_path / "a.xlsx", to="xlsx")
    with ZipFile(tmp_path / "a.xlsx") as file:
        text = b"".join(map(file.read, file.namelist())).decode()
    assert not re.search("<f[ >]|hyperlink|externalLink|ddeLink", text)
    sheet = rows_of(sheets_of(tmp_path / "a.xlsx")["slices"])
    assert {"=1+1", "@SUM(A1)", "http://example.invalid/", "1e5"} <= {
        cell for row in sheet for cell in row.values() if isinstance(cell, str)
    }


def test_integers_that_a_spreadsheet_would_round_are_texts(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    address = 140_000_000_000_000_001_234
    memory = trace.memory.with_columns(address=pl.lit(address >> 8, dtype=pl.Int64))
    export(replace(trace, memory=memory), tmp_path / "a.xlsx", to="xlsx")
    cells = [
        cell for row in rows_of(sheets_of(tmp_path / "a.xlsx")["memory"]) for cell in row.values()
    ]
    assert str(address >> 8) in cells


def test_the_header_stays_in_sight_and_columns_are_wide_enough(tmp_path: Path) -> None:
    export(everything(tmp_path / "trace.json"), tmp_path / "a.xlsx", to="xlsx")
    for sheet in sheets_of(tmp_path / "a.xlsx").values():
        [pane] = sheet.iter(f"{MAIN}pane")
        assert (pane.attrib["state"], pane.attrib["ySplit"]) == ("frozen", "1")
        widths = [float(column.attrib["width"]) for column in sheet.iter(f"{MAIN}col")]
        assert all(8 <= width < 62 for width in widths)
        assert widths


def test_views_in_place_of_the_tables(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    export(trace, tmp_path / "a.xlsx", to="xlsx", views=("operators", "kernels"))
    assert list(sheets_of(tmp_path / "a.xlsx")) == ["columns", "operators", "kernels"]


def test_equal_tables_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.xlsx", "b.xlsx"):
        export(Trace(), tmp_path / name, to="xlsx")
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


def test_more_rows_than_a_sheet_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_ROWS_OF_SHEET == 1_048_575
    trace = everything(tmp_path / "trace.json")
    monkeypatch.setattr("selftime.reports.export.workbook.MAX_ROWS_OF_SHEET", 3)
    with pytest.raises(
        UsageError, match=r"the table `slices` has .* rows, and a sheet .* holds 3;"
    ):
        export(trace, tmp_path / "a.xlsx", to="xlsx")
    assert not (tmp_path / "a.xlsx").exists()


def test_a_text_that_is_too_long_is_cut_and_told(tmp_path: Path) -> None:
    event = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "n" * 40_000,
        "pid": 1,
        "tid": 1,
        "ts": 1,
        "dur": 1,
    }
    trace = read(tmp_path / "trace.json", [event])
    told = export(trace, tmp_path / "a.xlsx", to="xlsx")
    assert told.left_out == {"ends of texts longer than 32,767 characters": 1}
    cells = [
        cell for row in rows_of(sheets_of(tmp_path / "a.xlsx")["slices"]) for cell in row.values()
    ]
    assert max(len(cell) for cell in cells if isinstance(cell, str)) == 32_767


def test_without_xlsxwriter_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingDependency, match="install the extra `xlsx`"):
        export(Trace(), tmp_path / "a.xlsx", to="xlsx")
    assert not (tmp_path / "a.xlsx").exists()
