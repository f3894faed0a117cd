"""Every table of a trace as a file of its own."""

import json
from pathlib import Path
from typing import Final

import polars as pl
import pytest
from hypothesis import given
from polars.testing import assert_frame_equal
from tests.reports.export.drawn import everything, traces

from selftime.errors import SelftimeError, UsageError
from selftime.reports.export import export
from selftime.schema import TABLES
from selftime.trace import Trace

KINDS: Final = ("parquet", "csv")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_recorded_gives_every_table_with_its_columns(kind: str, tmp_path: Path) -> None:
    told = export(Trace(), tmp_path / "out", to=kind)
    assert told.files == [*(f"{name}.{kind}" for name in TABLES), "tables.json"]
    assert sorted(told.files) == sorted(path.name for path in (tmp_path / "out").iterdir())
    read = pl.read_parquet if kind == "parquet" else pl.read_csv
    for name, table in TABLES.items():
        assert read(tmp_path / "out" / f"{name}.{kind}").columns == list(table.dtypes)


def test_parquet_holds_the_tables_as_they_are(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    export(trace, tmp_path / "out", to="parquet")
    for name, table in trace.tables().items():
        found = pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        assert_frame_equal(found, table, categorical_as_str=True)


@given(traces())
def test_drawn_tables_stay_what_they_are(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    export(trace, folder, to="parquet")
    found = pl.read_parquet(folder / "slices.parquet")
    assert_frame_equal(found, trace.slices, categorical_as_str=True)


def test_parquet_says_what_its_columns_are(tmp_path: Path) -> None:
    export(Trace(), tmp_path, to="parquet")
    told = pl.read_parquet_metadata(tmp_path / "slices.parquet")
    assert told["format"] == "selftime.tables/1"
    columns = {column["name"]: column for column in json.loads(told["columns"])}
    assert columns["duration"]["unit"] == "ns"
    assert columns["duration"]["nullable"]


def test_the_listing_holds_what_stands_beside_the_events(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    export(trace, tmp_path / "out", to="csv")
    told = json.loads((tmp_path / "out" / "tables.json").read_text())
    assert told["format"] == "selftime.tables/1"
    assert told["origin_ns"] == 1_712_000_000_000_000_000
    assert told["metadata"]["schemaVersion"] == 1
    assert told["tables"]["slices"]["rows"] == trace.slices.height
    assert told["tables"]["slices"]["columns"][4]["unit"] == "instant"


def test_csv_has_harmless_cells(tmp_path: Path) -> None:
    export(everything(tmp_path / "trace.json"), tmp_path / "out", to="csv")
    slices = pl.read_csv(tmp_path / "out" / "slices.csv")
    assert "'=1+1" in slices["name"].to_list()
    assert "[4, 2, 1]" in pl.read_csv(tmp_path / "out" / "device_args.csv")["grid"].to_list()


def test_csv_that_is_written_in_parts_is_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = everything(tmp_path / "trace.json")
    export(trace, tmp_path / "whole", to="csv")
    monkeypatch.setattr("selftime.reports.export.tables._ROWS_PER_CSV_WRITE", 3)
    export(trace, tmp_path / "parts", to="csv")
    for name in TABLES:
        whole, parts = (tmp_path / folder / f"{name}.csv" for folder in ("whole", "parts"))
        assert parts.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_views_in_place_of_the_tables(kind: str, tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    told = export(trace, tmp_path / "out", to=kind, views=("operators", "kernels"))
    assert told.files == [f"operators.{kind}", f"kernels.{kind}", "tables.json"]
    assert told.written["kernels"] == trace.view("kernels").height


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file; name a folder"):
        export(Trace(), tmp_path / "file", to="csv")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SelftimeError, match=r"cannot be written: .*; choose another path"):
        export(Trace(), tmp_path / "file" / "below", to="csv")
