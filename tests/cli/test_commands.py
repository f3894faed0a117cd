"""The commands on small traces, in this process."""

from pathlib import Path

import pytest
from tests.cli.small_traces import refused, say

import selftime


def test_the_version() -> None:
    assert say("--version").stdout == f"selftime {selftime.__version__}\n"


def test_the_commands_are_listed_in_the_order_of_need() -> None:
    listed = say("--help").stdout.partition("Commands:")[2].splitlines()
    names = [line.split()[0] for line in listed if line.startswith("  ") and line.strip()]
    assert names[:7] == ["run", "advise", "what-if", "serve", "report", "view", "views"]


@pytest.mark.parametrize("command", ["advise", "view"])
def test_a_path_that_is_not_there(command: str) -> None:
    words = ["view", "operators"] if command == "view" else ["advise"]
    assert "nonesuch.json" in refused(say(*words, "nonesuch.json"))


def test_a_folder_without_traces(tmp_path: Path) -> None:
    refused(say("advise", str(tmp_path)))


@pytest.mark.parametrize("text", ["", "no JSON", '{"a": 1}', "[1, 2]", "\x00\x01"])
def test_a_file_that_is_no_trace(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    refused(say("advise", str(tmp_path / "a.json")))


def test_a_name_with_controls_does_not_reach_the_terminal(tmp_path: Path) -> None:
    assert "\x1b" not in refused(say("advise", str(tmp_path / "a\x1b[2Jb.json")))


@pytest.mark.parametrize(
    "words",
    [
        ("nonesuch",),
        ("--nonesuch",),
        ("advise",),
        ("advise", "a", "--format", "xml"),
        ("run", "--steps", "many", "a.py"),
        ("run", "--steps", "0", "a.py"),
        ("run", "--nonesuch", "a.py"),
        ("view", "steps"),
        ("view", "steps", "a", "--nonesuch"),
    ],
)
def test_wrong_words_are_one_line(words: tuple[str, ...]) -> None:
    line = refused(say(*words))
    assert "Value error" not in line
    assert line.endswith("--help`")


def test_no_words_are_answered_with_help() -> None:
    for words in ((), ("view",)):
        done = say(*words)
        assert "Usage: " in done.output
        assert "Error: " not in done.output


@pytest.mark.parametrize(
    ("command", "ending", "begins"),
    [
        ("advise", "md", "Text in backticks"),
        ("advise", "json", "{"),
        ("advise", "sarif", "{"),
        ("advise", "txt", "Health"),
        ("check", "xml", "<?xml"),
        ("check", "md", "**"),
    ],
)
def test_the_ending_of_a_file_tells_the_format_of_every_command(
    command: str, ending: str, begins: str, trace: str, tmp_path: Path
) -> None:
    file = tmp_path / f"answer.{ending}"
    budget = ["--budget", "operators=9"] if command == "check" else []
    done = say(command, trace, *budget, "-o", str(file))
    assert not done.stderr.startswith("Error"), done.stderr
    assert file.read_text().startswith(begins)


def test_an_ending_that_tells_no_format(trace: str, tmp_path: Path) -> None:
    for words in (("view", "operators", trace), ("advise", trace)):
        line = refused(say(*words, "-o", str(tmp_path / "a.xlsx")))
        assert "is not a format; add `--format` with one of " in line
