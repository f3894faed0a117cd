"""The commands on small traces, in this process."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import selftime
from selftime.advice import RULES
from selftime.advice.bottleneck_catalogue import BOTTLENECKS, BOTTLENECKS_WITHOUT_RULE
from selftime.cli import app

EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 20.5},
    {"ph": "X", "cat": "cpu_op", "name": "=1+1", "pid": 1, "tid": 1, "ts": 40, "dur": 1},
]


def say(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "80", **(env or {})})


def write(path: Path, events: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> str:
    return str(write(tmp_path / "trace.json", EVENTS))


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A folder of two traces and a file that is none."""
    for rank in range(2):
        write(tmp_path / "job" / f"rank{rank}.json", EVENTS[: rank + 1])
    (tmp_path / "job" / "notes.json").write_text('{"a": 1}')
    return str(tmp_path / "job")


def refused(done: Result) -> str:
    """The one sentence that a refused command leaves."""
    assert done.exit_code == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


def test_the_version() -> None:
    assert say("--version").stdout == f"selftime {selftime.__version__}\n"


def test_the_commands_are_listed_in_the_order_of_need() -> None:
    listed = say("--help").stdout.partition("Commands:")[2].splitlines()
    names = [line.split()[0] for line in listed if line.startswith("  ") and line.strip()]
    assert names[:7] == ["run", "advise", "serve", "report", "view", "views", "explain"]


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


def test_a_view_that_is_not_there(trace: str) -> None:
    assert "there is no view `nonesuch`" in refused(say("view", "nonesuch", trace))


def test_an_option_that_is_not_there(trace: str) -> None:
    done = say("view", "operators", trace, "--nonesuch", "1")
    assert done.exit_code == 2
    assert "--nonesuch" in done.stderr


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


def test_a_damaged_trace_is_told_after_its_table(trace: str) -> None:
    whole = Path(trace).read_text()
    Path(trace).write_text(whole[: whole.index("=1+1")])
    done = say("view", "operators", trace)
    assert done.exit_code == 0
    assert "aten::mm" in done.stdout
    [line] = done.stderr.splitlines()
    assert line.startswith(f"`{trace}` is damaged: ")
    assert "the file ends inside an event (1)" in line
    assert "1 event lost" in line


def test_the_trace_of_another_tool_is_told(tmp_path: Path) -> None:
    foreign = write(tmp_path / "a.json", [{**EVENTS[0], "cat": "devtools.timeline"}])
    done = say("view", "operators", str(foreign))
    assert done.exit_code == 0
    [line] = done.stderr.splitlines()
    assert line.startswith(f"`{foreign}` is not a trace of PyTorch's profiler: ")


def test_a_ledger_alone_is_told_as_that(tmp_path: Path) -> None:
    ledger = tmp_path / "a.run.jsonl"
    ledger.write_text(
        '{"format":"selftime.ledger/1","process":1,"clock":2,"process_began":0,"began":1,'
        '"own_start":0}\n'
    )
    done = say("view", "run", str(tmp_path))
    assert done.exit_code == 0
    assert "no step was recorded" in done.stderr
    assert "is not a trace" not in done.stderr


def test_a_value_that_is_no_choice(trace: str) -> None:
    assert "colour" in refused(say("view", "operators", trace, "--by", "colour"))


def test_a_value_that_is_no_number(trace: str) -> None:
    assert "write a number" in refused(say("view", "operators", trace, "--top=many"))


def test_options_are_written_in_two_ways(trace: str) -> None:
    [spaced, joined] = (
        say("view", "operators", *words, "--format", "csv").stdout
        for words in (("--top", "1", "--sort", "name", trace), (trace, "--sort=name", "--top=1"))
    )
    assert spaced == joined
    assert len(spaced.splitlines()) == 2


def test_a_table(trace: str) -> None:
    done = say("view", "operators", trace)
    assert done.exit_code == 0
    assert done.stderr == ""
    assert "aten::mm" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


def test_a_table_of_chosen_columns(trace: str) -> None:
    done = say("view", "operators", trace, "--columns", "count, name", "--format", "csv")
    assert done.stdout.splitlines()[0] == "count,name"
    told = json.loads(say("view", "operators", trace, "--columns=name", "--format=json").stdout)
    assert [column["name"] for column in told["columns"]] == ["name"]
    assert "`operators` has no column `nosuch`; it has name, kind" in refused(
        say("view", "operators", trace, "--columns", "name,nosuch")
    )


def test_stacks_are_folded(trace: str) -> None:
    done = say("view", "flame", trace, "--metric", "host", "--min-share", "0", "--format", "folded")
    assert "aten::mm 20500" in done.stdout
    assert "has no stacks to fold" in refused(say("view", "operators", trace, "--format", "folded"))


def test_a_table_of_few_rows(trace: str) -> None:
    assert "1 more rows" in say("view", "operators", trace, "--rows", "1").stdout
    assert "more rows" not in say("view", "operators", trace, "--rows", "0").stdout


def test_csv_is_safe_to_open(trace: str) -> None:
    lines = say("view", "operators", trace, "--format", "csv").stdout.splitlines()
    assert any(line.startswith("'=1+1,") for line in lines)


def test_a_file_tells_its_format(trace: str, tmp_path: Path) -> None:
    for ending in ("csv", "json", "parquet", "txt"):
        file = tmp_path / f"operators.{ending}"
        done = say("view", "operators", trace, "-o", str(file))
        assert (done.exit_code, done.output) == (0, "")
        assert file.stat().st_size
    assert pl.read_parquet(tmp_path / "operators.parquet").height == 2
    assert pl.read_csv(tmp_path / "operators.csv").height == 2
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(".selftime-")] == []


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


def test_a_file_that_cannot_be_written(trace: str, tmp_path: Path) -> None:
    file = str(tmp_path / "none" / "a.csv")
    assert "cannot be written" in refused(say("view", "operators", trace, "-o", file))


def test_a_folder_shows_each_trace_under_its_name(job: str) -> None:
    done = say("view", "operators", job)
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("rank")] == [
        "rank0.json",
        "rank1.json",
    ]
    assert "notes.json" in done.stderr


def test_a_folder_as_one_table(job: str) -> None:
    document = json.loads(say("view", "operators", job, "--format", "json").stdout)
    assert document["columns"][0]["name"] == "trace"
    assert [row["trace"] for row in document["rows"]] == ["rank0.json", "rank1.json", "rank1.json"]


def test_one_trace_of_a_folder(job: str) -> None:
    document = json.loads(
        say("view", "operators", job, "--format", "json", "--trace", "rank1").stdout
    )
    assert len(document["rows"]) == 2
    done = say("view", "operators", job, "--trace", "rank7")
    assert done.exit_code == 2
    assert "rank7" in done.stderr


def test_advice_has_its_formats(trace: str, tmp_path: Path) -> None:
    assert (
        json.loads(say("advise", trace, "--format", "json").stdout)["format"] == "selftime.advice/1"
    )
    assert json.loads(say("advise", trace, "--format", "sarif").stdout)["version"] == "2.1.0"
    assert "\n**Health**" in say("advise", trace, "--format", "markdown").stdout
    assert say("advise", trace).stdout.startswith("Health")
    say("advise", trace, "--format", "json", "-o", str(tmp_path / "advice.json"))
    assert say("advise", trace, "--format", "json").stdout == (tmp_path / "advice.json").read_text()


def test_advice_on_a_folder(job: str) -> None:
    assert "rank1.json\n\nHealth" in say("advise", job).stdout
    assert "# `rank1.json`" in say("advise", job, "--format", "markdown").stdout
    assert "holds 2 traces and one is needed" in say("advise", job, "--format", "json").stderr
    assert say("advise", job, "--format", "json", "--trace", "rank0").exit_code == 0


def test_rules_are_listed_and_explained() -> None:
    lines = say("explain").stdout.splitlines()
    listed = [line.split()[0] for line in lines if not line.startswith(" ")]  # long titles fold
    assert listed == sorted(RULES)
    for rule in listed:
        page = say("explain", rule).stdout
        assert page.startswith(f"# {rule}\n")
        assert "## What to do" in page


def test_a_rule_that_is_not_there() -> None:
    assert "there is no rule `nonesuch`" in refused(say("explain", "nonesuch"))


def test_an_entry_of_the_catalogue_is_explained_by_its_rules() -> None:
    assert say("explain", "f1").stdout == say("explain", "single_tensor_optimizer").stdout
    for entry, reason in BOTTLENECKS_WITHOUT_RULE.items():
        assert (
            " ".join(say("explain", entry).stdout.split())
            == f"{entry}, {BOTTLENECKS[entry]}: {reason}"
        )


def test_colour_and_environment(trace: str) -> None:
    for env in ({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in say("advise", trace, env=env).stdout


def test_the_width_is_the_terminals(trace: str) -> None:
    wide = say("view", "operators", trace, env={"COLUMNS": "300"}).stdout
    narrow = say("view", "operators", trace, env={"COLUMNS": "40"}).stdout
    assert max(map(len, narrow.splitlines())) <= 40 < max(map(len, wide.splitlines()))
