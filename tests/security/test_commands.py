"""Commands on an adversary's files: what they print, and how they end where little is allowed."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import pytest
from tests.security.adversary import PAYLOADS
from tests.security.reading import acting
from typer.testing import CliRunner, Result

from selftime.advice import Rule, advise
from selftime.advice.rule_definition import Checked, Outcome
from selftime.cli import app
from selftime.cli.advise import OutputFormat
from selftime.cli.output_writing import uses_colour, write_all_bytes, write_output
from selftime.errors import SelftimeError
from selftime.trace import Trace

NAMES: Final = [text for text in PAYLOADS if "/" not in text and "\0" not in text]


def ask(*words: str | Path) -> Result:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert acting(done.stderr) == set()
    return done


@pytest.mark.parametrize("form", list(OutputFormat))
@pytest.mark.sweep(2)
def test_the_answer_in_every_form(form: OutputFormat, folder: Path) -> None:
    for name in ("steady.json", "snapshot.pickle"):
        done = ask("advise", folder / name, "--format", form.value)
        assert done.exit_code == 0
        assert acting(done.stdout) == set()
        if form in {OutputFormat.json, OutputFormat.sarif}:
            json.loads(done.stdout)


def test_the_answers_of_a_folder_with_names_that_act(tmp_path: Path, folder: Path) -> None:
    for text in NAMES[:6]:
        (tmp_path / f"{text}.json").write_bytes((folder / "steady.json").read_bytes())
    (tmp_path / f"{NAMES[0]}.broken.json").write_text("no trace")
    for words in ("advise", "view steps"):
        done = ask(*words.split(), tmp_path)
        assert done.exit_code == 0
        assert acting(done.stdout) == set()
        assert "Left out" in done.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_verdict_on_a_repair(form: str, folder: Path) -> None:
    done = ask("verify", folder / "steady.json", folder / "trace.json", "--format", form)
    assert done.exit_code == 0
    assert acting(done.stdout) == set()


@pytest.mark.parametrize("text", NAMES, ids=range(len(NAMES)))
def test_what_is_wrong_with_words_is_one_line(text: str, tmp_path: Path) -> None:
    lost = tmp_path / f"x{text[:80]}"
    asked: list[list[str | Path]] = [["view", "steps", lost], ["advise", lost], ["explain", lost]]
    for words in asked:
        done = ask(*words)
        assert done.exit_code == 2
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("Error: ")
        assert done.stdout == ""


def test_a_name_stays_in_its_quotation(traces: dict[str, Trace]) -> None:
    def check(trace: Trace) -> Iterator[Outcome]:
        for name in trace.slices["name"].unique().to_list():
            yield Checked(f"`{name}` is short", 0.1)

    rules = {"short": Rule("short", "Work is short.", ("A1",), (), check)}
    answer = advise(traces["trace"], rules=rules)
    assert len(answer.checked) > len(PAYLOADS)
    assert {checked.reason.count("`") for checked in answer.checked} == {2}
    assert answer.trace is traces["trace"]


def starved(limits: str, *words: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """The command in a shell that allows little; half a compiled file would stay behind."""
    known = {"SELFTIME_CACHE": str(cwd / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "selftime", *map(str, words)]
    return subprocess.run(  # noqa: S603 - our own command
        ["/bin/bash", "-c", f'{limits}; exec "$@"', "bash", *command],
        cwd=cwd,
        env={**os.environ, **known},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of Linux")
@pytest.mark.parametrize(
    ("limits", "words", "lacks"),
    [
        ("ulimit -v 150000", ["view", "steps"], "memory (`ulimit -v`)"),
        ("ulimit -v 200000", ["advise"], "memory (`ulimit -v`)"),
        ("ulimit -n 6", ["view", "steps"], "open files (`ulimit -n`)"),
        ("ulimit -f 8", ["view", "occurrences", "-o", "out.csv"], "File too large"),
    ],
)
@pytest.mark.sweep(2)
def test_where_there_is_little_room_a_sentence_says_so(
    limits: str, words: list[str], lacks: str, folder: Path, tmp_path: Path
) -> None:
    done = starved(limits, *words, folder / "steady.json", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert lacks in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}
    assert list(tmp_path.rglob(".draft-*")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the device of Linux")
@pytest.mark.parametrize("buffering", [0, 1 << 16])
def test_output_that_does_not_fit_is_told(buffering: int) -> None:
    raw: Any = open("/dev/full", "wb", buffering=buffering)  # noqa: PTH123, SIM115 - closed below
    stream = TextIOWrapper(raw, write_through=not buffering)
    with pytest.raises(SelftimeError, match="No space left"):
        write_all_bytes(b"x" * 100_000, stream)
    with suppress(OSError):  # what could not be written still cannot
        stream.close()


def test_output_that_is_taken_in_pieces_is_whole() -> None:
    class Narrow(BytesIO):
        def write(self, data: Any, /) -> int:
            return super().write(bytes(data[:7]))

    held = Narrow()
    stream = TextIOWrapper(held)
    write_all_bytes(b"all of it, and not only what fits", stream)
    assert held.getvalue() == b"all of it, and not only what fits"


def test_an_output_that_is_closed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not uses_colour()
    with pytest.raises(SelftimeError, match="stdout is closed"):
        write_output("page")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "not enough memory"),
        (OSError(errno.EMFILE, "Too many open files"), "`ulimit -n`"),
        (OSError(errno.ENOSPC, "No space left"), "the disk is full"),
        (RuntimeError("can't start new thread"), "`ulimit -u`"),
    ],
)
def test_what_runs_out_is_told(
    error: Exception, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("selftime.ingest.load.load_files", load)
    done = ask("view", "steps", folder / "steady.json")
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of Linux")
def test_a_limit_that_suffices_changes_nothing(folder: Path, tmp_path: Path) -> None:
    words = ("view", "steps", folder / "steady.json", "--format", "csv")
    limited = starved("ulimit -v 16000000", *words, cwd=tmp_path)
    assert limited.returncode == 0, limited.stderr
    assert limited.stdout == ask(*words).stdout
