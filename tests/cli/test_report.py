"""`selftime report` writes one file, whole or not at all, and never over what it reads."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from selftime.cli import app

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}


def say(*words: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, words)])


def write(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    event = {**EVENT, "dur": 1 + len(list(path.parent.iterdir()))}  # no two traces are the same
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(tmp_path / "trace.json")


def test_it_is_written_where_one_is_told(trace: Path, tmp_path: Path) -> None:
    done = say(trace, "-o", tmp_path / "one.html")
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert done.stderr == f"selftime: report written to {tmp_path / 'one.html'}\n"
    assert (tmp_path / "one.html").read_text().startswith("<!doctype html>")


@pytest.mark.sweep
def test_it_is_written_here_if_one_does_not_say(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert say(trace).exit_code == 0
    assert [path.name for path in Path.cwd().iterdir()] == ["report.html"]


@pytest.mark.sweep
def test_twice_is_the_same_to_the_byte(trace: Path, tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        say(trace, "-o", tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_stdout_takes_it_too(trace: Path) -> None:
    done = say(trace, "-o", "-")
    assert done.stdout.startswith("<!doctype html>")
    assert done.stderr == ""


@pytest.mark.sweep
def test_an_older_report_is_replaced(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text("old")
    assert say(trace, "-o", tmp_path / "one.html").exit_code == 0
    assert (tmp_path / "one.html").read_text() != "old"


@pytest.mark.parametrize("link", [False, True])
def test_the_trace_is_never_replaced(link: bool, trace: Path, tmp_path: Path) -> None:
    before, target = trace.read_text(), trace
    if link:
        target = tmp_path / "link.html"
        target.symlink_to(trace)
    done = say(trace, "-o", target)
    assert done.exit_code == 2
    assert "is the trace itself; name another file with `-o`" in done.stderr
    assert trace.read_text() == before


def test_a_folder_that_is_not_there_is_told(trace: Path, tmp_path: Path) -> None:
    done = say(trace, "-o", tmp_path / "no" / "one.html")
    assert done.exit_code == 2
    assert "cannot be written: No such file or directory" in done.stderr


@pytest.mark.sweep
def test_some_traces_of_a_folder(tmp_path: Path) -> None:
    for rank in range(3):
        write(tmp_path / "job" / f"rank{rank}.json")
    done = say(tmp_path / "job", "--trace", "rank1", "-o", "-")
    assert '"id":"rank1.json"' in done.stdout
    assert "rank2.json" not in done.stdout
    assert say(tmp_path / "job", "--trace", "rank9", "-o", "-").exit_code == 2


@pytest.mark.sweep
def test_the_names_of_a_job_are_paths_in_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "job" / "a.json")
    write(tmp_path / "job" / "b.json")
    done = say(tmp_path / "job", "-o", "-")
    assert '"id":"a.json"' in done.stdout
    assert str(tmp_path) not in done.stdout


def test_a_damaged_trace_is_told_and_reported(trace: Path, tmp_path: Path) -> None:
    trace.write_text(json.dumps({"traceEvents": [EVENT, EVENT]})[:-20])
    done = say(trace, "-o", tmp_path / "one.html")
    assert done.exit_code == 0
    assert "is damaged" in done.stderr
