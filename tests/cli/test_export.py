"""The command `selftime export`."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from selftime.cli import app
from selftime.reports.export import EXPORTS
from selftime.testing.simulated_jobs import simulate_job

EVENTS: list[dict[str, Any]] = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 20.5},
    {"ph": "X", "cat": "cpu_op", "name": "a\x1b[2Jb", "pid": 1, "tid": 1, "ts": 40, "dur": 1},
]


def say(*words: str) -> Result:
    return CliRunner().invoke(app, ["export", *words], env={"COLUMNS": "80"})


def refused(done: Result) -> str:
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.pt.trace.json").write_text(json.dumps({"traceEvents": EVENTS}))
    return tmp_path


@pytest.fixture
def job(here: Path) -> Path:
    (here / "job").mkdir()
    for rank, data in simulate_job(ranks=2, steps=3).traces.items():
        (here / "job" / f"rank{rank}.json.gz").write_bytes(gzip.compress(data))
    return here / "job"


def test_the_help_names_every_format() -> None:
    told = " ".join(say("--help").stdout.split())
    assert "chrome, perfetto, speedscope, folded, parquet, csv or xlsx." in told
    assert list(EXPORTS) == ["chrome", "perfetto", "speedscope", "folded", "parquet", "csv", "xlsx"]


@pytest.mark.parametrize("to", EXPORTS)
def test_every_format_has_a_name_of_its_own(to: str, here: Path) -> None:
    if to == "xlsx":
        pytest.importorskip("xlsxwriter", reason="needs XlsxWriter")
    done = say("one.pt.trace.json", "--to", to)
    assert done.exit_code == 0, done.output
    place = "one" + EXPORTS[to].suffix if EXPORTS[to].suffix else f"one-{to}"
    assert (here / place).exists()
    assert done.stdout.startswith(f"{place}: ")
    assert "exists already" in refused(say("one.pt.trace.json", "--to", to))
    assert say("one.pt.trace.json", "--to", to, "-o", place).exit_code == 0


def test_what_was_written_is_told(here: Path) -> None:
    done = say("one.pt.trace.json", "--to", "speedscope", "-o", "a.json")
    size = (here / "a.json").stat().st_size
    assert done.stdout == f"a.json: {size} B; 2 slices, 1 profiles\n"


def test_what_was_written_as_json(here: Path) -> None:
    done = say("one.pt.trace.json", "--to", "folded", "-o", "a", "--format", "json")
    assert json.loads(done.stdout) == {
        "format": "selftime.export/1",
        "to": "folded",
        "outputs": [
            {
                "path": "one.pt.trace.json",
                "output": "a",
                "files": [],
                "bytes": (here / "a").stat().st_size,
                "written": {"stacks": 2, "ns": 21500},
                "left_out": {},
            }
        ],
    }


def test_the_input_is_not_overwritten(here: Path) -> None:
    line = refused(say("one.pt.trace.json", "--to", "perfetto", "-o", "one.pt.trace.json"))
    assert "is the trace itself" in line
    assert json.loads((here / "one.pt.trace.json").read_text())["traceEvents"] == EVENTS


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--to", "nonesuch"), "there is no format `nonesuch`; there are chrome, perfetto"),
        (("--to", "chrome", "--weight", "host"), "`weight` is no option of `chrome`, only of"),
        (("--to", "chrome", "--view", "steps"), "`views` is no option of `chrome`, only of"),
        (("--to", "csv", "--view", "nonesuch"), "there is no view `nonesuch`"),
        (("--to", "chrome", "-o", "no/such/folder.json"), "cannot be written"),
    ],
)
@pytest.mark.usefixtures("here")
def test_what_cannot_be_is_one_sentence(words: tuple[str, ...], why: str) -> None:
    assert why in refused(say("one.pt.trace.json", *words))


def test_a_trace_that_is_not_there(here: Path) -> None:
    assert "nonesuch.json" in refused(say("nonesuch.json", "--to", "chrome"))
    assert sorted(path.name for path in here.iterdir()) == ["one.pt.trace.json"]


@pytest.mark.usefixtures("here")
def test_views_are_written_in_place_of_tables() -> None:
    done = say("one.pt.trace.json", "--to", "parquet", "-o", "out", "--view", "operators")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "operators.parquet",
        "tables.json",
    ]
    assert pl.read_parquet("out/operators.parquet")["name"].to_list() == ["aten::mm", "a\x1b[2Jb"]


@pytest.mark.parametrize("to", ["chrome", "csv"])
def test_each_trace_of_a_job_has_its_own_file(to: str, job: Path) -> None:
    done = say(str(job), "--to", to, "-o", "out")
    assert done.exit_code == 0, done.output
    ending = EXPORTS[to].suffix
    assert sorted(path.name for path in Path("out").iterdir()) == [
        f"rank0{ending}",
        f"rank1{ending}",
    ]
    assert len(done.stdout.splitlines()) == 2


def test_one_trace_of_a_job(job: Path) -> None:
    assert say(str(job), "--to", "chrome", "-o", "out", "--trace", "rank1").exit_code == 0
    assert [path.name for path in Path("out").iterdir()] == ["rank1.json.gz"]
    assert "no trace in" in refused(say(str(job), "--to", "chrome", "--trace", "rank7"))


def test_perfetto_takes_all_ranks_of_a_job(job: Path) -> None:
    done = say(str(job), "--to", "perfetto", "--format", "json")
    [told] = json.loads(done.stdout)["outputs"]
    assert told["output"] == "job.pftrace"
    assert told["written"]["traces"] == 2
    [one] = json.loads(
        say(str(job), "--to", "perfetto", "--trace", "rank1", "-o", "a", "--format", "json").stdout
    )["outputs"]
    assert 0 < one["written"]["slices"] < told["written"]["slices"]


def test_speedscope_takes_all_ranks_of_a_job(job: Path) -> None:
    done = say(str(job), "--to", "speedscope", "-o", "x.json")
    assert done.exit_code == 0, done.output
    profiles = json.loads(Path("x.json").read_text())["profiles"]
    assert {one["name"].partition(":")[0] for one in profiles} == {"rank 0", "rank 1"}
    assert len({(one["startValue"], one["endValue"]) for one in profiles}) == 1


@pytest.mark.parametrize("to", ["chrome", "folded", "parquet", "csv", "xlsx"])
def test_a_file_is_not_made_a_folder_of_files(to: str, job: Path) -> None:
    """What names a file becomes one, or nothing."""
    name = f"x{EXPORTS[to].suffix or '.' + to}"
    told = refused(say(str(job), "--to", to, "-o", name))
    assert f"`{name}` names one file, and `{to}` writes each of the 2 traces" in told
    assert not Path(name).exists()


@pytest.mark.parametrize("to", ["chrome", "folded", "xlsx"])
def test_of_one_trace_of_a_job_the_file_is_written(to: str, job: Path) -> None:
    if to == "xlsx":
        pytest.importorskip("xlsxwriter", reason="needs XlsxWriter")
    name = f"x{EXPORTS[to].suffix}"
    done = say(str(job), "--to", to, "-o", name, "--trace", "rank1")
    assert done.exit_code == 0, done.output
    assert Path(name).is_file()


def test_a_damaged_trace_says_so(here: Path) -> None:
    whole = (here / "one.pt.trace.json").read_text()
    (here / "cut.json").write_text(whole[:-20])
    done = say("cut.json", "--to", "chrome")
    assert done.exit_code == 0
    assert "`cut.json` is damaged" in done.stderr
    assert (here / "cut.json.gz").exists()


def test_names_do_not_reach_the_terminal(here: Path) -> None:
    (here / "a\x1b[2Jb.json").write_text((here / "one.pt.trace.json").read_text())
    assert "\x1b" not in say("a\x1b[2Jb.json", "--to", "folded").output


def test_of_several_recordings_the_folder_is_told(job: Path) -> None:
    done = say(str(job), "--to", "folded", "-o", "x")
    assert done.exit_code == 0, done.output
    assert f"`{job}` holds 2 recordings; each is written below `x/`" in done.stderr
    one = say(str(job), "--to", "folded", "-o", "one", "--trace", "rank0")
    assert "recordings" not in one.stderr
