"""An empty path is refused: Python takes it for this folder, and its caller forgot a name."""

from pathlib import Path
from typing import Final

import pytest
from tests.ingest.rough.case import document
from typer.testing import CliRunner

from selftime import load
from selftime.cli import app
from selftime.errors import UnreadableTrace

RUN: Final = CliRunner()

COMMANDS: Final = (
    ("advise", ""),
    ("view", "operators", ""),
    ("report", ""),
    ("what-if", ""),
    ("ledger", ""),
    ("sql", "", "select 1"),
    ("serve", ""),
    ("compare", "", "t.json"),
    ("compare", "t.json", ""),
    ("verify", "", "t.json"),
    ("check", "", "--baseline", "t.json"),
    ("check", "t.json", "--baseline", ""),
    ("check", "t.json", "--write-baseline", ""),
    ("repair", "", "-o", "x.json"),
    ("repair", "t.json", "-o", ""),
    ("cut", "", "-o", "x.json"),
    ("cut", "t.json", "--output="),
    ("redact", "", "-o", "x.json"),
    ("export", "", "--to", "csv"),
    ("export", "t.json", "--to", "csv", "-o", ""),
    ("report", "t.json", "-o", ""),
    ("advise", "t.json", "-o", ""),
    ("run", ""),
    ("run", "-o", "", "x.py"),
    ("preflight", ""),
    ("mcp", ""),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_it_is_refused_in_one_sentence(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.json").write_bytes(document())
    done = RUN.invoke(app, words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "empty; name a file, or a folder: `.` is this one" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_this_folder_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.json").write_bytes(document())
    assert RUN.invoke(app, ["view", "steps", "."]).exit_code == 0


def test_in_python() -> None:
    with pytest.raises(UnreadableTrace, match="the path is empty"):
        load("")
