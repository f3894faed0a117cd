"""Tables as CSV, JSON and Parquet hold them."""

import csv
import json
from io import BytesIO, StringIO

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from selftime.reports.tables.tabular import as_csv, as_json, as_parquet
from selftime.schema import Column, NameType

COLUMNS = (
    Column("name", NameType, "name", "The name."),
    Column("time", pl.Int64, "ns", "How long.", nullable=True),
    Column("share", pl.Float64, "ratio", "Of all.", nullable=True),
    Column("busy", pl.Boolean, "flag", "Whether it was busy."),
    Column("shape", pl.List(pl.Int64), "text", "The shape.", nullable=True),
)
SCHEMA = {column.name: column.dtype for column in COLUMNS}


def table(*rows: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA, orient="row")


def cells(page: str) -> list[list[str]]:
    return list(csv.reader(StringIO(page)))


def test_an_empty_table_is_its_header() -> None:
    assert as_csv(table()) == "name,time,share,busy,shape\n"
    assert json.loads(as_json(table(), COLUMNS, view="v", options={}))["rows"] == []


def test_csv_keeps_numbers_exact_and_unknowns_empty() -> None:
    page = as_csv(table(("a", 9007199254740993, 0.1, True, [2, 3]), ("b", None, None, False, None)))
    assert page == (
        'name,time,share,busy,shape\na,9007199254740993,0.1,true,"[2, 3]"\nb,,,false,\n'
    )


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_csv_holds_no_formula(name: str) -> None:
    [_, [cell, *_]] = cells(as_csv(table((name, 1, 1.0, True, None))))
    assert cell.startswith("'")


def test_a_negative_number_is_no_formula() -> None:
    [_, row] = cells(as_csv(table(("a", -1, -0.5, True, [-1]))))
    assert row[1:] == ["-1", "-0.5", "true", "[-1]"]


def test_names_that_csv_must_quote_come_back() -> None:
    names = ['say "hi"', "a,b", "std::map<a, b>", "日本", ""]
    [_, *rows] = cells(as_csv(table(*((name, 1, 1.0, True, None) for name in names))))
    assert [row[0] for row in rows] == names


def test_csv_shows_controls() -> None:
    [_, row] = cells(as_csv(table(("a\x1b[31m\nb", 1, 1.0, True, None))))
    assert row[0] == "a\\x1b[31m\\nb"


def test_json_tells_what_its_columns_mean() -> None:
    rows = table(
        ("a\x7f\u202e", 2**53 + 1, float("nan"), True, [1]), ("b", None, 0.25, False, None)
    )
    page = as_json(rows, COLUMNS, view="v", options={"sort": None, "by": "shape"})
    document = json.loads(page)
    assert list(document) == ["format", "view", "options", "columns", "rows"]
    assert document["format"] == "selftime.view/1"
    assert list(document["options"]) == ["by", "sort"]
    assert document["columns"][1] == {
        "name": "time",
        "unit": "ns",
        "doc": "How long.",
        "nullable": True,
    }
    assert document["rows"] == [
        {"name": "a\x7f\u202e", "time": 2**53 + 1, "share": None, "busy": True, "shape": [1]},
        {"name": "b", "time": None, "share": 0.25, "busy": False, "shape": None},
    ]
    assert page.isascii()
    assert "\x7f" not in page


def test_parquet_keeps_types() -> None:
    rows = table(("a", 1, 0.5, True, [1]), ("b", None, None, False, None))
    assert_frame_equal(pl.read_parquet(BytesIO(as_parquet(rows))), rows)
