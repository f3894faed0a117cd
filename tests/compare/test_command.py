"""`selftime compare` prints what Python tells, for people and for programs."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.compare.programs import Program, record
from typer.testing import CliRunner, Result

from selftime.cli import app
from selftime.compare import TABLES

SLOWER = {"aten::addmm": 440.0, "aten::relu": 50.0, "aten::gelu\x1b[31m": 20.0}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    for name, program in (
        ("before", Program()),
        ("after", replace(Program(), operators=SLOWER, seed=1)),
    ):
        record(program, tmp_path, name)
    return str(tmp_path / "before.json"), str(tmp_path / "after.json")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["compare", *words], env={"COLUMNS": "80"})


def test_people_read_steps_then_what_changed(pair: tuple[str, str]) -> None:
    done = run(*pair)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Device step time: ")
    assert "slower" in lines[0]
    [title] = [number for number, line in enumerate(lines) if line.startswith("MODULES")]
    assert lines[title + 2].startswith("aten::addmm")
    assert lines[title + 2].endswith("slower")
    assert "\x1b" not in done.stdout


def test_of_a_recording_and_itself_nothing_is_told(pair: tuple[str, str]) -> None:
    done = run(pair[0], pair[0])
    assert " ".join(done.stdout.split()).count("no difference beyond chance") == 2
    assert done.stdout.count("no rows") == 4


def test_programs_read_all_tables(pair: tuple[str, str]) -> None:
    done = run(*pair, "--format", "json")
    told = json.loads(done.stdout)
    assert told["format"] == "selftime.comparison/1"
    assert (told["before"], told["after"], told["metric"]) == (*pair, "device")
    assert list(told["tables"]) == list(TABLES)
    for name, table in told["tables"].items():
        assert [column["name"] for column in table["columns"]] == list(TABLES[name].dtypes)
        assert all(list(row) == list(TABLES[name].dtypes) for row in table["rows"])
    assert done.stdout.isascii()


@pytest.mark.parametrize("table", list(TABLES))
def test_a_table_as_csv(table: str, pair: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = run(*pair, "--format", "csv", "--table", table, "-o", str(out))
    assert done.exit_code == 0, done.output
    assert pl.read_csv(out).columns == list(TABLES[table].dtypes)


def test_of_jobs_the_same_rank_is_compared(tmp_path: Path) -> None:
    for side, ranks in (("before", (1, 2)), ("after", (2, 3))):
        (tmp_path / side).mkdir()
        for rank in ranks:
            info = {"distributedInfo": {"rank": rank, "world_size": 4}}
            program = replace(Program(), metadata=info, seed=rank + 10 * (side == "after"))
            record(program, tmp_path / side, f"rank{rank}")
    sides = [str(tmp_path / side) for side in ("before", "after")]
    done = run(*sides, "--format", "json")
    assert "Comparing rank 2" in done.stderr
    told = json.loads(done.stdout)
    assert [Path(told[side]).name for side in ("before", "after")] == ["rank2.json"] * 2
    refused = run(*sides, "--rank", "1")
    assert refused.exit_code == 2
    assert "there is no trace of rank 1 in both" in refused.stderr
    assert "has the ranks 1, 2" in refused.stderr


def test_several_recordings_stand_side_by_side(pair: tuple[str, str]) -> None:
    done = run(*pair, pair[0])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    named = f"1{pair[0]}2{pair[1]}3{pair[0]}"  # long paths are wrapped
    assert "".join(done.stdout.split()).startswith(named)
    [device] = [line.split() for line in lines if line.startswith("device_ms")]
    assert "slower" in device
    assert " ".join(device).count("slower") == 1  # the third is the first again
    told = json.loads(run(*pair, pair[0], "--format", "json").stdout)
    assert (told["format"], told["recordings"]) == (
        "selftime.comparisons/1",
        [*pair, pair[0]],
    )
    rows = [row for row in told["tables"]["measures"]["rows"] if row["measure"] == "operators"]
    assert [(row["recording"], row["difference"]) for row in rows] == [(1, None), (2, 0), (3, 0)]
    assert run(*pair, pair[0], "--format", "csv").stdout.startswith("measure,recording,value")
    for words in (("--metric", "host"), ("--format", "html", "-o", "a.html")):
        refused = run(*pair, pair[0], *words)
        assert (refused.exit_code, "for two recordings" in refused.stderr) == (2, True)


@pytest.mark.parametrize("words", [(), ("--rows", "0"), ("--rows", "2")])
def test_rows_of_csv(words: tuple[str, ...], pair: tuple[str, str]) -> None:
    """All of a table, if no number is given."""
    whole = run(*pair, "--format", "csv").stdout.splitlines()
    assert len(whole) > 4
    done = run(*pair, "--format", "csv", *words)
    assert done.stdout.splitlines() == (whole[:3] if "2" in words else whole)
