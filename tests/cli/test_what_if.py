"""`selftime what-if`: its formats, its errors, one answer for each rank."""

import json
from pathlib import Path

import pytest
from tests.mcp.recorded import LOADER, written
from typer.testing import CliRunner, Result

import selftime
from selftime.cli import app
from selftime.trace import Trace

LOADING = ("--remove", "data")


@pytest.fixture
def trace_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording that loads on the main thread, and reads numbers of the device."""
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))
    return written(tmp_path / "trace.json")


def ask(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["what-if", *map(str, words)], env={"COLUMNS": "100"})


def test_the_table_says_step_saving_and_names(trace_file: Path) -> None:
    done = ask(trace_file, *LOADING)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[:5]] == [
        "Step now",
        "Predicted",
        "Saved",
        "Bound by",
        "Then by",
    ]
    assert any(line.startswith("Remove data: 30.0 ms on the host") for line in lines)
    assert LOADER in done.stdout


def test_json_is_what_python_says_and_the_same_each_time(trace_file: Path) -> None:
    words = (trace_file, *LOADING, "--scale", "aten::*=50%", "--format", "json")
    first, second = ask(*words).stdout, ask(*words).stdout
    assert first == second
    trace = selftime.load(str(trace_file))
    assert isinstance(trace, Trace)
    found = selftime.what_if(trace, scale={"aten::*": 0.5}, remove=["data"])
    assert json.loads(first) == json.loads(found.to_json())
    assert json.loads(first)["format"] == "selftime.what_if/1"


def test_markdown_is_written_to_a_file_of_its_ending(trace_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.md"
    assert ask(trace_file, *LOADING, "-o", file).exit_code == 0
    page = file.read_text()
    assert page.startswith("# What if: `")
    assert "| Saved | " in page
    assert "## Remove `data`: " in page


def test_every_trace_of_a_job_is_answered_for_itself(tmp_path: Path) -> None:
    for rank in range(2):
        file = written(tmp_path / "job" / f"rank{rank}.json", steps=6 + rank)
        whole = json.loads(file.read_text())
        whole["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
        file.write_text(json.dumps(whole))
    told = json.loads(ask(tmp_path / "job", *LOADING, "--format", "json").stdout)
    assert [one["trace"] for one in told["traces"]] == ["rank0.json", "rank1.json"]
    page = ask(tmp_path / "job", *LOADING).stdout
    assert [line for line in page.splitlines() if line.startswith("rank")] == [
        "rank0.json",
        "rank1.json",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "there is no change to predict"),
        (("--scale", "aten::mm"), "write a pattern and the share"),
        (("--scale", "aten::mm=fast"), "write a share such as `5%`"),
        (("--scale", "aten::mm=2"), "the factor of `aten::mm` is 2"),
        (("--remove", "aten::mn"), "the nearest of"),
        (("--hide", "syncs"), "`syncs` cannot be hidden"),
        (("--remove", "communication"), "the trace holds no collective"),
    ],
)
def test_errors_are_one_sentence_and_status_2(
    trace_file: Path, words: tuple[str, ...], told: str
) -> None:
    done = ask(trace_file, *words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_has_an_example() -> None:
    done = ask("--help")
    assert done.exit_code == 0
    assert "Example: selftime what-if" in done.stdout
