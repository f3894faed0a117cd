"""`selftime view` on small traces, in this process."""

import json
from pathlib import Path

import polars as pl
from tests.cli.small_traces import EVENTS, refused, say, write


def test_a_view_that_is_not_there(trace: str) -> None:
    assert "there is no view `nonesuch`" in refused(say("view", "nonesuch", trace))


def test_an_option_that_is_not_there(trace: str) -> None:
    done = say("view", "operators", trace, "--nonesuch", "1")
    assert done.exit_code == 2
    assert "--nonesuch" in done.stderr


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


def test_the_width_is_the_terminals(trace: str) -> None:
    wide = say("view", "operators", trace, env={"COLUMNS": "300"}).stdout
    narrow = say("view", "operators", trace, env={"COLUMNS": "40"}).stdout
    assert max(map(len, narrow.splitlines())) <= 40 < max(map(len, wide.splitlines()))
