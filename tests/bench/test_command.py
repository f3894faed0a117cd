"""`selftime bench` on real programs, as its users call it, and what `verify` makes of it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from selftime.cli import app

SLEEPS = "import sys, time\ntime.sleep(float(sys.argv[1]))\n"


@pytest.fixture
def sleeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    return "sleeps.py"


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["bench", *words], env={"COLUMNS": "80"})


@pytest.mark.timed
def test_two_programs_with_words_of_their_own(sleeps: str) -> None:
    programs = ["--before", f"{sleeps} 0.3", "--after", "-m sleeps 0.01"]
    options = ["--max-rounds", "6", "--precision", "90000%"]
    done = run(*programs, *options, "-o", "bench.json", "-q")
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("Faster: ")
    told = json.loads(Path("bench.json").read_text())
    assert told["format"] == "selftime.bench/1"
    assert (told["metric"], told["stop"], told["state"]) == ("process", "precise", "faster")
    assert [told["before"]["program"], told["after"]["program"]] == [
        "sleeps.py 0.3",
        "-m sleeps 0.01",
    ]
    assert told["saved_ms"]["low"] > 100


def test_one_program_against_itself_with_words_for_both(sleeps: str) -> None:
    """At this precision six rounds never tell, whatever the machine does."""
    done = run(sleeps, sleeps, "--max-rounds", "6", "--precision", "0.0001%", "--", "0.01")
    assert done.exit_code == 3, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "times as fast (" in lines[0]
    assert lines[-2:] == ["before  sleeps.py 0.01", "after   sleeps.py 0.01"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sleeps.py"], "name two scripts"),
        (["sleeps.py", "sleeps.py", "--before", "sleeps.py"], "name two scripts"),
        (["sleeps.py", "nonesuch.py"], "the script `nonesuch.py` does not exist"),
        (["sleeps.py", "sleeps.py", "--precision", "0"], "cannot be reached"),
        (["sleeps.py", "sleeps.py", "--precision", "x"], "write a share"),
        (["sleeps.py", "sleeps.py"], "IndexError: list index out of range"),
    ],
)
def test_what_is_wrong_is_one_sentence(sleeps: str, words: list[str], told: str) -> None:
    assert sleeps in words
    done = run(*words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_markdown_by_the_ending_of_the_file(sleeps: str) -> None:
    done = run(sleeps, sleeps, "--max-rounds", "6", "-o", "bench.md", "--", "0")
    assert done.exit_code in {0, 3}, done.output
    assert "| before | " in Path("bench.md").read_text()
