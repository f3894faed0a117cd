"""Every command that writes, to every kind of target: written, or refused in a sentence."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from selftime.cli import app

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the files of POSIX")

EVENTS: Final[list[dict[str, Any]]] = [
    {"ph": "X", "cat": "cpu_op", "name": f"op{n}", "pid": 1, "tid": 1, "ts": n * 10, "dur": 5}
    for n in range(50)
] + [
    {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1}
    | {"ts": n * 100, "dur": 100}
    for n in range(5)
]
COMMANDS: Final = (
    "view operators t.json --format csv -o",
    "advise t.json --format json -o",
    "sql t.json SELECT --format csv -o",
    "compare t.json t.json --format csv -o",
    "repair t.json -o",
    "cut t.json -o",
    "redact t.json -o",
    "export t.json --to chrome -o",
    "export t.json --to perfetto -o",
    "export t.json --to speedscope -o",
    "export t.json --to folded -o",
    "report t.json -o",
    "check t.json --write-baseline",
)


def file(path: Path) -> None:
    path.write_text("old")


def link(path: Path) -> None:
    path.with_name("old").write_text("old")
    path.symlink_to("old")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("new")


def protected(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o444)


def folder(path: Path) -> None:
    path.mkdir()


def full(path: Path) -> None:
    path.symlink_to("/dev/full")


def device(path: Path) -> None:
    path.symlink_to("/dev/null")


def below_a_file(path: Path) -> None:
    path.parent.write_text("old")


Make = Callable[[Path], None]
WRITTEN: Final = (file, link, link_to_nothing, device)
REFUSED: Final = (protected, folder, full, below_a_file)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": EVENTS}))
    return tmp_path


def say(command: str, target: str) -> Any:
    words = ["select 1 as one" if word == "SELECT" else word for word in command.split()]
    return CliRunner().invoke(app, [*words, target])


def kinds(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IFMT(path.lstat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("make", WRITTEN, ids=lambda make: make.__name__)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sweep(6)
def test_what_can_be_written_stays_what_it_is(command: str, make: Make, here: Path) -> None:
    make(here / "x.out")
    before = kinds(here)
    done = say(command, "x.out")
    assert done.exit_code == 0, done.output
    after = kinds(here)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == ({"new"} if make is link_to_nothing else set())
    if make is not device:
        assert (here / "x.out").read_bytes() not in (b"old", b"")


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sweep(6)
def test_what_cannot_is_one_sentence_and_stays(command: str, make: Make, here: Path) -> None:
    name = "is_a_file/x.out" if make is below_a_file else "x.out"
    if make is protected and os.geteuid() == 0:
        pytest.skip("the superuser may write what is protected from others")
    make(here / name)
    before = kinds(here)
    done = say(command, name)
    assert done.exit_code == 2, done.output
    assert len(done.stderr.splitlines()) == 1
    assert name.rpartition("/")[2] in done.stderr
    assert kinds(here) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sweep(3)
def test_a_dash_is_stdout(command: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = kinds(here)
    done = say(command, "-")
    assert done.exit_code == 0, done.output
    assert kinds(here) == before
    assert done.stdout_bytes or capfd.readouterr().out
