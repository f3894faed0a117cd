"""A folder with several recordings: every command takes the newest and says so."""

import json
import os
from pathlib import Path

import pytest
from tests.ledgers import Step, write_ledger
from typer.testing import CliRunner, Result

from selftime.cli import app

SECOND = 1_000_000_000
COMMANDS = [
    ["view", "operators"],
    ["view", "operators", "--format", "csv"],
    ["advise"],
    ["advise", "--format", "json"],
    ["check", "--budget", "operators=1000"],
    ["sql"],
]


def say(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "80"})


def ask(command: list[str], folder: Path) -> Result:
    first, *rest = command
    if first == "view":
        return say(first, rest[0], str(folder), *rest[1:])
    query = ["select distinct name from slices"] if first == "sql" else []
    return say(first, str(folder), *query, *rest)


def record(
    file: Path, operator: str, *, begun: int | None, rank: int | None = None, size: int = 2
) -> None:
    """A trace of three steps with one operator each, begun so many seconds after 2024 began."""
    events = [
        {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": duration}
        for step in range(3)
        for category, name, ts, duration in (
            ("user_annotation", f"ProfilerStep#{step}", 100 * step, 90),
            ("cpu_op", operator, 100 * step + 10, 50),
        )
    ]
    trace: dict[str, object] = {"schemaVersion": 1, "traceEvents": events}
    if begun is not None:
        trace["baseTimeNanoseconds"] = 1_704_067_200 * SECOND + begun * SECOND
    if rank is not None:
        trace["distributedInfo"] = {"rank": rank, "world_size": size, "backend": "gloo"}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(trace))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three recordings, whose names do not come in the order of their times."""
    record(tmp_path / "runs" / "c.json", "aten::first", begun=10)
    record(tmp_path / "runs" / "a.json", "aten::last", begun=30)
    record(tmp_path / "runs" / "b.json", "aten::second", begun=20)
    return tmp_path / "runs"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.sweep(3)
def test_the_newest_is_read(command: list[str], folder: Path) -> None:
    whole, alone = ask(command, folder), ask(command, folder / "a.json")
    assert whole.stdout.replace(str(folder), "") == alone.stdout.replace(str(folder), "")
    assert whole.exit_code == alone.exit_code
    [line] = [one for one in whole.stderr.splitlines() if one.startswith("selftime: ")]
    assert "holds 3 recordings; the newest, `a.json`, is read" in line
    assert "recordings" not in alone.stderr


def test_traces_without_a_date_go_by_their_files(tmp_path: Path) -> None:
    for second, name in enumerate("cab"):
        record(tmp_path / f"{name}.json", f"aten::{name}", begun=None)
        os.utime(tmp_path / f"{name}.json", (second, second))
    done = say("view", "operators", str(tmp_path), "--format", "csv")
    assert "aten::b" in done.stdout
    assert "aten::a" not in done.stdout


def test_of_a_job_the_newest_of_each_rank_is_read(tmp_path: Path) -> None:
    for begun, word in ((10, "old"), (20, "new")):
        for rank in range(2):
            name = f"{word}{rank}.json"
            record(tmp_path / name, f"aten::{word}", begun=begun + rank, rank=rank)
    done = say("view", "operators", str(tmp_path), "--format", "csv")
    assert "holds 4 recordings; the newest of each of 2 ranks is read" in done.stderr
    assert "old" not in done.stdout
    assert {"new0.json", "new1.json"} <= {line.split(",")[0] for line in done.stdout.splitlines()}


def test_ranks_of_one_recording_are_all_read(tmp_path: Path) -> None:
    for rank in range(2):
        record(tmp_path / f"{rank}.json", "aten::mm", begun=rank, rank=rank)
    done = say("view", "operators", str(tmp_path), "--format", "csv")
    assert {"0.json", "1.json"} <= {line.split(",")[0] for line in done.stdout.splitlines()}
    assert "recordings" not in done.stderr


def test_one_of_several_is_named(folder: Path) -> None:
    done = say("view", "operators", str(folder), "--trace", "c.json", "--format", "csv")
    assert "aten::first" in done.stdout
    assert "aten::last" not in done.stdout
    assert "recordings" not in done.stderr


def test_where_one_rank_is_needed_a_sentence_asks_which(tmp_path: Path) -> None:
    for rank in range(2):
        record(tmp_path / f"{rank}.json", "aten::mm", begun=rank, rank=rank)
    done = say("check", str(tmp_path), "--budget", "operators=5")
    assert done.exit_code == 2
    assert f"holds 2 traces and one is needed; name its file, such as `{tmp_path}" in done.stderr


def test_two_folders_are_compared_by_their_newest(folder: Path, tmp_path: Path) -> None:
    record(tmp_path / "after" / "x.json", "aten::after", begun=40)
    done = say("compare", str(folder), str(tmp_path / "after"), "--format", "json")
    assert done.exit_code == 0
    assert "aten::last" in done.stdout
    assert "aten::second" not in done.stdout


ANSWERS_OF_LEDGERS = [["ledger"], ["advise"], ["check", "--budget", "wall_s=100"]]
BEGUN = 1_704_067_200 * SECOND


@pytest.mark.parametrize("command", ANSWERS_OF_LEDGERS, ids=" ".join)
def test_of_ledgers_without_traces_the_newest_is_read(command: list[str], tmp_path: Path) -> None:
    for name, begun in (("b", 10), ("a", 900), ("c", 20)):
        steps = [Step(float(begun))] * 20
        write_ledger(tmp_path / f"{name}.run.jsonl", steps, time=BEGUN + begun * SECOND)
    whole, alone = ask(command, tmp_path), ask(command, tmp_path / "a.run.jsonl")
    assert whole.stdout.replace(str(tmp_path), "") == alone.stdout.replace(str(tmp_path), "")
    assert "holds 3 recordings; the newest, `a.run.jsonl`" in whole.stderr
    assert "Left out" not in whole.stderr


def test_a_copy_of_a_ledger_is_counted_once(tmp_path: Path) -> None:
    for name in "ab":
        write_ledger(tmp_path / f"{name}.run.jsonl", [Step(10.0)] * 20)
    done = say("ledger", str(tmp_path))
    assert "holds the same trace as" in done.stderr
    assert "recordings" not in done.stderr


@pytest.mark.parametrize(
    "command", [*ANSWERS_OF_LEDGERS, ["view", "run"], ["view", "operators"], ["sql"]], ids=" ".join
)
def test_a_later_run_without_a_trace_is_the_newest(command: list[str], tmp_path: Path) -> None:
    record_with_ledger(tmp_path)
    write_ledger(tmp_path / "new.run.jsonl", [Step(90.0)] * 20, time=BEGUN + 60 * SECOND)
    whole, alone = ask(command, tmp_path), ask(command, tmp_path / "new.run.jsonl")
    assert whole.stdout.replace(str(tmp_path), "") == alone.stdout.replace(str(tmp_path), "")
    [line] = [one for one in whole.stderr.splitlines() if one.startswith("selftime: ")]
    assert "holds 2 recordings; the newest, `new.run.jsonl`, the ledger of a run without" in line


def test_a_later_run_without_a_trace_is_compared(tmp_path: Path) -> None:
    record_with_ledger(tmp_path / "runs")
    new = tmp_path / "runs" / "new.run.jsonl"
    write_ledger(new, [Step(90.0)] * 20, time=BEGUN + 60 * SECOND)
    old = str(tmp_path / "runs" / "old.json")
    whole, alone = (say("compare", old, str(one)) for one in (tmp_path / "runs", new))
    assert whole.exit_code == alone.exit_code == 0
    assert whole.stdout == alone.stdout


def test_a_trace_file_is_written_of_the_newest_trace(tmp_path: Path) -> None:
    record_with_ledger(tmp_path / "runs")
    write_ledger(tmp_path / "runs" / "new.run.jsonl", [Step(90.0)] * 20, time=BEGUN + 60 * SECOND)
    done = say("cut", str(tmp_path / "runs"), "--steps", "1", "-o", str(tmp_path / "cut.json"))
    assert done.exit_code == 0, done.stderr
    assert "aten::old" in (tmp_path / "cut.json").read_text()


def test_a_ledger_of_another_process_of_the_run_hides_no_trace(tmp_path: Path) -> None:
    record_with_ledger(tmp_path)
    write_ledger(tmp_path / "child.run.jsonl", [Step(9.0)] * 20, time=BEGUN + 11 * SECOND)
    whole, alone = ask(["ledger"], tmp_path), ask(["ledger"], tmp_path / "old.json")
    assert whole.stdout == alone.stdout
    assert "recordings" not in whole.stderr


@pytest.mark.parametrize("command", [["view", "operators"], ["advise"], ["ledger"]], ids=" ".join)
def test_of_the_processes_of_a_run_the_one_that_trains_longest_is_read(
    command: list[str], tmp_path: Path
) -> None:
    """As `selftime run` answers: a parent that tests what its children train ends last."""
    record_with_ledger(tmp_path)
    record_with_ledger(tmp_path, "test", begun=12, kind="inference")
    record_with_ledger(tmp_path, "before", begun=-100)
    whole, alone = ask(command, tmp_path), ask(command, tmp_path / "old.json")
    assert whole.stdout.replace(str(tmp_path), "") == alone.stdout.replace(str(tmp_path), "")
    assert "of the newest run the process with most time in steps, `old.json`" in whole.stderr


def record_with_ledger(
    folder: Path, name: str = "old", *, begun: int = 5, kind: str = "training"
) -> None:
    """A trace from 5 s after `begun` on, and the ledger of its run of 20 s."""
    record(folder / f"{name}.json", f"aten::{name}", begun=begun + 5)
    trace = json.loads((folder / f"{name}.json").read_text())
    trace["selftime"] = {"ledger": f"{name}.run.jsonl"}
    (folder / f"{name}.json").write_text(json.dumps(trace))
    ledger = folder / f"{name}.run.jsonl"
    write_ledger(ledger, [Step(1000.0, kind)] * 20, time=BEGUN + begun * SECOND)
