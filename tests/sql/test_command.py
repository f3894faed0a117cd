"""`selftime sql` answers what Python answers, for people and for programs."""

import json
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest
from tests.compare.programs import Program, record
from typer.testing import CliRunner, Result

import selftime
from selftime.cli import app

TOTALS = "select name, sum(duration) as total from slices group by name order by total desc"


@pytest.fixture
def place(tmp_path: Path) -> str:
    record(Program(), tmp_path, "one")
    return str(tmp_path / "one.json")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["sql", *words], env={"COLUMNS": "80"})


def test_a_program_reads_the_query_the_columns_and_the_rows(place: str) -> None:
    done = run(place, TOTALS, "--format", "json")
    told = json.loads(done.stdout)
    assert (told["format"], told["query"]) == ("selftime.sql/1", TOTALS)
    assert told["columns"] == [
        {"name": "name", "dtype": "String"},
        {"name": "total", "dtype": "Int64"},
    ]
    trace = selftime.load(place)
    assert told["rows"] == trace.sql(TOTALS).to_dicts()
    assert done.stdout == run(place, TOTALS, "--format", "json").stdout
    assert done.stdout.isascii()


def test_an_empty_answer_is_json_too(place: str) -> None:
    told = json.loads(run(place, "select id from slices where false", "--format", "json").stdout)
    assert told["rows"] == []


def test_people_read_whole_numbers_and_dashes(place: str) -> None:
    text = "select 1234567890 as n, 0.00001234567 as f, 1234.56789 as g, null as u, 0 as z"
    done = run(place, text)
    header, row = done.stdout.splitlines()
    assert header.split() == ["n", "f", "g", "u", "z"]
    assert row.split() == ["1234567890", "1.235e-05", "1234.568", "-", "0"]


def test_what_a_terminal_does_not_hold_is_told(place: str) -> None:
    done = run(place, "select * from operators", "--rows", "1")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "more rows: `--rows 0` shows all" in done.stdout
    assert "name fewer in the query" in " ".join(done.stdout.split())


def test_files_are_written_by_their_endings(place: str, tmp_path: Path) -> None:
    for ending in ("csv", "json", "parquet"):
        assert run(place, TOTALS, "-o", str(tmp_path / f"out.{ending}")).exit_code == 0
    there = pl.read_parquet(BytesIO((tmp_path / "out.parquet").read_bytes()))
    assert there.equals(selftime.load(place).sql(TOTALS))
    assert pl.read_csv(tmp_path / "out.csv").height == there.height
    refused = run(place, TOTALS, "-o", str(tmp_path / "out.xlsx"))
    assert refused.exit_code == 2
    assert "is not a format; add `--format` with one of table" in refused.output


def test_a_view_with_options_is_named_by_let(place: str) -> None:
    done = run(place, "select count(*) as n from x", "--let", "x=operators top=2")
    assert done.stdout.split() == ["n", "2"]
    refused = run(place, "select 1", "--let", "operators")
    assert refused.exit_code == 2
    assert "write `--let NAME=VIEW`" in refused.output


def test_of_a_folder_each_row_tells_its_trace(tmp_path: Path) -> None:
    record(Program(), tmp_path, "one")
    record(Program(seed=1), tmp_path, "two")
    text = "select distinct trace from slices order by trace"
    done = run(str(tmp_path), text, "--format", "csv", "--trace", ".json")
    assert done.stdout.split() == ["trace", "one.json", "two.json"]
    assert run(str(tmp_path), text, "--trace", "two").exit_code == 2  # one trace has no such column


def test_a_wrong_query_is_one_sentence_and_status_2(place: str) -> None:
    done = run(place, "select * from nothing_like_it")
    assert done.exit_code == 2
    assert done.stderr == (
        "Error: there is no table and no view `nothing_like_it`; ask `show tables` for all\n"
    )


def test_names_that_would_act_in_a_terminal_are_written_out(tmp_path: Path) -> None:
    record(Program(operators={"aten::mm\x1b[31m\n": 50.0}), tmp_path, "bad")
    done = run(str(tmp_path / "bad.json"), 'select distinct name as "n\x1b" from slices')
    assert "\x1b" not in done.output
    assert "\\x1b" in done.output
