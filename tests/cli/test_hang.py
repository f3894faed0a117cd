"""`selftime hang`: dumps in, a verdict out that is understood at first reading."""

import json
import pickle
from pathlib import Path

import jsonschema
import pytest
from tests.dumps import BEGAN, RUNNING, Entry, S, dump, write_job
from tests.ledgers import Step, write_ledger
from typer.testing import CliRunner

from selftime.cli import app
from selftime.reports.schemas import schema

A = Entry("all_reduce")
FOUR = {"0": ("default_pg", range(4))}


def said(*words: str | Path, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["hang", *map(str, words)], env={"COLUMNS": "80"})
    assert done.exit_code == status, done.output
    return done.stdout or done.stderr


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Three ranks wait for a minute for a fourth, which evaluates; ledgers of two lie beside."""
    waiting = [A, A, Entry("all_reduce", RUNNING, line=52)]
    write_job(tmp_path / "dumps", {**dict.fromkeys(range(3), waiting), 3: [A, A]}, groups=FOUR)
    for rank, (file, line, function) in {
        0: ("train.py", 52, "train"),
        3: ("evaluation.py", 88, "evaluate"),
    }.items():
        path = write_ledger(tmp_path / f"{rank}.run.jsonl", [Step(10)], time=BEGAN, whole=False)
        lines = path.read_text().splitlines()
        head = {**json.loads(lines[0]), "rank": rank}
        until = head["clock"] + 63 * S
        place = {"file": f"/project/{file}", "line": line, "function": function}
        more = [
            {"activity": 9, "part": "program", **place},
            {"open": 1, "until": until, "kind": -2, "readings": [[9, 61 * S, 1000]]},
        ]
        text = [json.dumps(line, separators=(",", ":")) for line in (head, *more)]
        path.write_text("\n".join([text[0], *lines[1:], *text[1:]]))
    return tmp_path


def test_the_verdict_comes_first_then_the_ranks(job: Path) -> None:
    told = said(job)
    assert told.startswith(
        "Rank 3 never entered all_reduce 3 of group default_pg, in which ranks 0-2 have\n"
        "waited for 1 min 1 s; rank 3 was last seen in evaluate\n"
        "(/project/evaluation.py:88).\n"
        "\n"
        "RANKS\n"
    )
    rows = [line.split("  ") for line in told.splitlines()]
    assert ["0-2", "all_reduce 2", "all_reduce 3"] in [
        [cell.strip() for cell in row if cell.strip()][:3] for row in rows
    ]
    assert told.endswith("Read 4 dumps of 11 calls and 2 ledgers.\n")
    assert max(map(len, told.splitlines())) <= 80


def test_json_follows_its_schema_and_is_the_same_each_time(job: Path) -> None:
    text = said(job, "--format", "json")
    assert text == said(job, "--format", "json")
    assert text.isascii()
    told = json.loads(text)
    jsonschema.Draft202012Validator(schema("hang")).validate(told)
    assert told["verdict"]["kind"] == "hang"
    assert told["causes"][0]["ranks"] == [3]
    assert told["ranks"][3]["seen"]["where"]["line"] == 88
    assert told["ranks"][0]["open_call"]["where"]["line"] == 52


def test_every_kind_and_verdict_is_in_the_schema() -> None:
    from selftime.analysis.hang import DifferenceKind, Verdict  # noqa: PLC0415 - of this test alone
    from selftime.flight_recorder import CallState  # noqa: PLC0415 - likewise

    whole = schema("hang")
    verdict = whole["properties"]["verdict"]["properties"]["kind"]["enum"]
    assert verdict == [one.value for one in Verdict]
    kinds = whole["$defs"]["difference"]["properties"]["kind"]["enum"]
    assert sorted(kinds) == sorted(one.value for one in DifferenceKind)
    states = whole["$defs"]["call"]["properties"]["state"]["enum"]
    assert states == [one.value for one in CallState]


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ([A], "Rank 3 never entered all_reduce 2"),
        ([A, Entry("all_reduce", RUNNING, sizes=[[8]])], "ranks 0-2 gave [4], rank 3 gave [8]"),
        ([A, Entry("all_reduce", RUNNING, dtype="Half")], "gave Float, rank 3 gave Half"),
        ([A, Entry("broadcast", RUNNING)], "called all_reduce, rank 3 called broadcast"),
        ([A, Entry("all_reduce", RUNNING)], "All 4 ranks entered all_reduce 2 of group"),
        ([A, Entry("all_reduce", "scheduled")], "the device of rank 3 has not started it"),
    ],
)
def test_sentences(odd: list[Entry], told: str, tmp_path: Path) -> None:
    usual = [A, Entry("all_reduce", RUNNING)]
    write_job(tmp_path, {**dict.fromkeys(range(3), usual), 3: odd}, groups=FOUR)
    assert told in " ".join(said(tmp_path).split())


def test_no_hang_and_why(tmp_path: Path) -> None:
    write_job(tmp_path, {rank: [A, A] for rank in range(4)}, groups=FOUR)
    assert " ".join(said(tmp_path).split()).startswith(
        "No hang is shown: all 8 recorded calls of ranks 0-3 have ended, and no rank is behind"
    )


def test_ledgers_alone_tell_the_lines(job: Path) -> None:
    told = " ".join(said(job / "0.run.jsonl", job / "3.run.jsonl").split())
    assert told.startswith("No dump of the Flight Recorder is here, so that it is not known which")
    assert "rank 0 was last seen in train (/project/train.py:52)" in told
    assert "rank 3 was last seen in evaluate (/project/evaluation.py:88)" in told


def test_a_stack_from_before_the_last_call_does_not_tell_where_a_rank_is(job: Path) -> None:
    last = Entry("all_reduce", at_s=9999)
    write_job(job / "dumps", {3: [A, last]}, groups=FOUR)
    told = " ".join(said(job).split())
    assert "rank 3 last called all_reduce 2 in train (/project/train.py:10)" in told
    assert "evaluate" not in told


def test_a_damaged_dump_is_listed_and_the_rest_is_judged(job: Path) -> None:
    (job / "dumps" / "nccl_trace_rank_3").write_bytes(pickle.dumps(dump([A]))[:-9])
    told = " ".join(said(job).split())
    assert "rank 3 left no dump that tells whether it entered it; rank 3 was last seen" in told
    assert "NOT READ - `" in told
    assert "it is a pickle that ends too early" in told


def test_names_in_a_dump_do_nothing_to_a_terminal(tmp_path: Path) -> None:
    evil = Entry("all\x1b[31mreduce\n\u202e", RUNNING, group="\x1b]0;x\x07g")
    values = dump([evil], groups={"\x1b]0;x\x07g": ("a\x1b[2Jb\n", (0, 1))})
    values["entries"][0]["frames"][1]["filename"] = "/project/\x1b[31mtrain\r.py"
    write_job(tmp_path, {0: values, 1: dump([])})
    told = said(tmp_path)
    assert "\x1b" not in told
    assert "\r" not in told
    assert "\u202e" not in told


@pytest.mark.parametrize("name", ["gone", "empty"])
def test_nothing_to_judge_is_an_error_of_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    told = said(tmp_path / name, status=2)
    assert told.startswith("Error: `")
    assert len(told.splitlines()) == 1


def test_the_output_is_none_of_the_inputs(job: Path) -> None:
    told = said(job, "-o", job / "dumps" / "nccl_trace_rank_3", status=2)
    assert "is the trace itself" in told


def test_a_thousand_ranks_have_few_rows(tmp_path: Path) -> None:
    waiting = [A, Entry("all_reduce", RUNNING)]
    groups = {"0": ("default_pg", range(1000))}
    ranks = {rank: [A] if rank == 777 else waiting for rank in range(1000)}
    write_job(tmp_path, ranks, groups=groups)
    told = said(tmp_path)
    assert "Rank 777 never entered all_reduce 2" in told
    assert len(told.splitlines()) < 15
