"""Every number of the answer is in what the command gives that is written with it."""

import json
import os
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tests.mcp.recorded import written
from typer.testing import CliRunner

from selftime.cli import app

FOLDER: Final = Path(
    os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces")
)
REAL: Final = (
    "a100-2023-alexnet",
    "b200-2025-vllm-eager",
    "h100-2025-bert-small",
    "h100-2025-vit",
    "mi250-2024-toy",
)
_NUMBER: Final = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_COMMAND: Final = re.compile(r"`(selftime (?!run\b)[^`]+)`")
_EVENT: Final = "one measured event: "
"""Before a command that shows an example, and gives no number of the line."""
_SCALES: Final = (1.0, 1e-9, 1e-6, 1e-3, 1e3, 1e6, 100.0, 1e2 / 1e9)
"""From what JSON says to what people read: as it is, times in s to ns, percent."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run.cache_clear()
    return written(tmp_path_factory.mktemp("numbers") / "made.json")


@cache
def run(command: str) -> str:
    """What a command answers, as JSON where it is a view."""
    words = shlex.split(command)[1:]
    if words[0] == "view":
        words += ["--format", "json"]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "500"})
    assert done.exit_code == 0, f"{command}: {done.output}"
    return done.stdout


def claims(page: str) -> Iterator[tuple[str, list[str], str]]:
    """Each line that has numbers of ours, with them and with the command that gives them."""
    lines = page.splitlines()
    command, coded = "", False
    for at, line in enumerate(lines[2:], start=2):
        coded ^= line.startswith("```")
        if coded or line.startswith("```"):
            continue
        of_heading = [lines[at + 1], lines[at + 2]] if line.startswith("### ") else []
        for one in (*of_heading, line):
            found = _COMMAND.search(one)
            if found and _EVENT not in one:
                command = found[1]
        said = "".join(line.removeprefix("\\").split("`")[::2])
        numbers = _NUMBER.findall(re.sub(r"^(### \d+\.|- )", "", said))
        if numbers:
            yield line, numbers, asked(command, line, lines[1].strip("`"))


def asked(command: str, line: str, named: str) -> str:
    """The command as a shell would read it."""
    if command.endswith(" ID"):
        command = f"{command.removesuffix('ID')}{line.split('`')[1]}"
    for word in shlex.split(named):
        name, _, value = word.partition("=")
        command = command.replace(f"${name}", shlex.quote(value))
    return command


def is_in(number: str, answer: str) -> bool:
    if not answer.startswith("{"):
        return number in _NUMBER.findall(answer)
    digits = len(number.partition(".")[2])
    value = float(number.replace(",", ""))
    return any(
        round(one * scale, digits) == value
        for one in values(json.loads(answer))
        for scale in _SCALES
    )


def values(told: Any) -> Iterator[float]:
    if isinstance(told, dict):
        told = list(told.values())
    if isinstance(told, list):
        yield float(len(told))
        for one in told:
            yield from values(one)
    elif isinstance(told, str):
        yield from (float(n.replace(",", "")) for n in _NUMBER.findall(told))
    elif isinstance(told, int | float):
        yield float(told)


def check(page: str) -> int:
    """How many numbers there are; each of them is where it is said to be."""
    count = 0
    for line, numbers, command in claims(page):
        assert command, f"no command gives the numbers of: {line}"
        answer = run(command)
        for number in numbers:
            assert is_in(number, answer), f"{number} of `{line}` is not in {command}"
            count += 1
    return count


def page_of(path: str, *words: str) -> str:
    done = CliRunner().invoke(app, ["advise", path, "--format", "markdown", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_numbers_of_a_recording_made_here(here: Path) -> None:
    assert check(page_of(str(here))) > 20


def test_every_command_of_a_page_can_be_run(here: Path) -> None:
    page = page_of(str(here))
    commands = {one for one in _COMMAND.findall(page) if "$T" in one and not one.endswith(" ID")}
    assert {one.split()[1] for one in commands} == {"advise", "view"}
    for command in commands:
        assert run(command.replace("$T", shlex.quote(str(here))))


@pytest.mark.traces
@pytest.mark.parametrize("name", REAL)
@pytest.mark.sweep
def test_the_numbers_of_real_recordings(name: str) -> None:
    path = FOLDER / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
    assert check(page_of(str(path))) > 3


@pytest.mark.sweep
def test_one_finding_alone_has_its_events(here: Path) -> None:
    [word, *_] = re.findall(r"--finding (slow_input-\w+)", page_of(str(here)))
    told = json.loads(run(f"selftime advise {here} --finding {word} --format json"))
    [finding] = told["findings"]
    assert finding["id"] == word
    assert (told["checked"], told["unknown"]) == ([], [])
    [number, *_] = finding["evidence"][0]["events"]
    for form in ("text", "markdown"):
        page = run(f"selftime advise {here} --finding {word} --format {form}")
        assert "DataLoader" in page
        assert f"slice {number}: " in page or f"--id {number}`" in page
    rows = json.loads(run(f"selftime view slice {here} --id {number}"))["rows"]
    assert {"parent", "next"} <= {row["key"] for row in rows if row["group"] == "links"}


def test_ids_are_the_same_from_run_to_run_and_form_to_form(here: Path) -> None:
    told = json.loads(run(f"selftime advise {here} --format json"))
    ids = [finding["id"] for finding in told["findings"]]
    assert len(set(ids)) == len(ids) > 1
    page = page_of(str(here))
    assert re.findall(r"--finding (\w+-\w+)`", page) == ids


def test_the_terminal_says_what_a_finding_is_asked_for_by(here: Path) -> None:
    words = re.findall(r"\[(\S+)\]$", run(f"selftime advise {here}"), re.MULTILINE)
    assert {"slow_input", "scalar_read"} <= set(words)
    for word in words:
        assert f"[{word}-" in run(f"selftime advise {here} --finding {word}")


def test_a_finding_that_is_not_there(here: Path) -> None:
    done = CliRunner().invoke(app, ["advise", str(here), "--finding", "slow_input-0"])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "its findings are slow_input-" in done.stderr
