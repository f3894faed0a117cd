"""`selftime watch`: ledgers that grow in, the state of a job out, and its answer at the end."""

import json
import os
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.ledgers import BEGAN, MS, Step, ledger_text
from typer.testing import CliRunner

from selftime.cli import app, watch
from selftime.reports.schemas import schema

PLACE = {"file": "/project/train.py", "line": 52, "function": "train"}


def said(*words: str | Path, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["watch", *map(str, words)], env={"COLUMNS": "80"})
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


def rank_text(rank: int, steps: int, *, work_ms: float = 5, whole: bool = False) -> str:
    """The ledger of a rank of two: steps of 30 ms, of which the backward pass is not `work_ms`."""
    counted = {"forward": work_ms, "backward": 25 - work_ms, "passes": 1 / MS}
    text = ledger_text([Step(30, counted=counted)] * steps, whole=whole)
    lines = text.splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "rank": rank, "world": 2, "process": 1 << 40})
    now = BEGAN + 500 * MS + steps * 30 * MS
    if not whole:
        lines.append(json.dumps({"activity": 90, "part": "program", **PLACE}))
        lines.append(json.dumps({"open": now, "until": now, "readings": [[90, now, 1]]}))
    return "\n".join(lines) + "\n"


def document(folder: Path) -> dict[str, Any]:
    [line] = said(folder, "--once", "--format", "json").splitlines()
    told: dict[str, Any] = json.loads(line)
    jsonschema.Draft202012Validator(schema("watch")).validate(told)
    return told


def test_a_folder_without_a_ledger(tmp_path: Path) -> None:
    assert document(tmp_path)["state"] == "waiting"
    assert "holds no ledger" in said(tmp_path, "--once", status=2)


def test_what_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("")
    assert "is no folder and no ledger" in said(file, status=2)
    assert "does not exist" in said(tmp_path / "no" / "folder", status=2)


def test_two_ranks_of_which_one_is_slow_by_its_own_work(tmp_path: Path) -> None:
    (tmp_path / "a_0.run.jsonl").write_text(rank_text(0, 40))
    (tmp_path / "a_1.run.jsonl").write_text(rank_text(1, 40, work_ms=20))
    told = document(tmp_path)
    assert [(one["rank"], one["steps"], one["state"]) for one in told["ranks"]] == [
        (0, 40, "runs"),
        (1, 40, "runs"),
    ]
    assert [(one["rank"], one["excess_ms"]) for one in told["slow"]] == [(1, 15.0)]
    assert (told["ranks"][0]["where"]["file"], told["ranks"][0]["where"]["line"]) == (
        "/project/train.py",
        52,
    )
    page = said(tmp_path, "--once")
    assert "2 of 2 ranks run, step 40, 30.0 ms a step." in page
    assert "train.py:52 in train" in page
    assert "Slow by own work: rank 1, by 15.0 ms a step" in page
    assert max(map(len, page.splitlines())) <= 80


def test_ranks_that_work_alike_and_one_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a_0.run.jsonl").write_text(rank_text(0, 40))
    assert document(tmp_path)["missing"] == [1]
    assert "Rank 1 has no ledger" in said(tmp_path, "--once")
    (tmp_path / "a_1.run.jsonl").write_text(rank_text(1, 40))
    assert document(tmp_path)["missing"] == document(tmp_path)["slow"] == []
    assert "No rank is slow by its own work." in said(tmp_path, "--once")


def test_a_rank_that_is_not_seen_any_more(tmp_path: Path) -> None:
    (tmp_path / "a_0.run.jsonl").write_text(rank_text(0, 40))
    path = tmp_path / "a_1.run.jsonl"
    path.write_text(rank_text(1, 30))
    earlier = path.stat().st_mtime - 60
    os.utime(path, (earlier, earlier))
    [seen, unseen] = document(tmp_path)["ranks"]
    assert (seen["state"], unseen["state"], unseen["steps_ahead"]) == ("runs", "silent", -10)
    assert unseen["unseen_s"] >= 60
    assert "1 of 2 ranks runs, 1 not seen, step 30 to 40" in said(tmp_path, "--once")


def test_a_rank_that_is_being_recorded_writes_nothing_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "a_0.run.jsonl"
    pause = json.dumps({"pause": BEGAN + 9000 * MS})
    path.write_text(f"{rank_text(0, 40)}{pause}\n")
    earlier = path.stat().st_mtime - 60
    os.utime(path, (earlier, earlier))
    assert [one["state"] for one in document(tmp_path)["ranks"]] == ["records"]


def test_files_that_are_no_ledgers_and_hostile_names(tmp_path: Path) -> None:
    (tmp_path / "a_0.run.jsonl").write_text(rank_text(0, 40))
    (tmp_path / "\x1b[31mred\n.run.jsonl").write_text("[]\n")
    (tmp_path / "folder.run.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.run.jsonl")  # would be waited for
    told = document(tmp_path)
    assert len(told["ranks"]) == 1
    assert {one["reason"] for one in told["unread"]} == {
        "it is no file",
        "it is no ledger of a run",
    }
    assert "\x1b" not in said(tmp_path, "--once")


def test_a_job_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [rank_text(rank, 40, whole=True) for rank in (0, 1)]
    looks = count()

    def write_more(_: float) -> None:
        """Between looks: nothing, half a line, one rank, both running, both ended."""
        look = next(looks)
        parts = [(0, 0), (50, 0), (len(texts[0]) // 2, 0), (-60, -60), (None, None)]
        for rank, end in enumerate(parts[min(look, 4)]):
            if end != 0:
                (tmp_path / f"a_{rank}.run.jsonl").write_text(texts[rank][:end])

    monkeypatch.setattr(watch, "sleep", write_more)
    documents = [json.loads(line) for line in said(tmp_path, "--format", "json").splitlines()]
    assert documents[-1]["state"] == "ended"
    assert [(one["steps"], one["status"]) for one in documents[-1]["ranks"]] == [(40, "ended")] * 2
    assert [one["state"] for one in documents[:-1]] == ["running"] * (len(documents) - 1)
    (tmp_path / "a_1.run.jsonl").write_text(texts[1])
    assert next(looks) < 12


def test_a_run_that_had_ended_is_not_the_one_that_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.run.jsonl").write_text(ledger_text([Step(10)] * 9))

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "sleep", interrupt)
    done = CliRunner().invoke(app, ["watch", str(tmp_path)])
    assert done.exit_code == 130
    assert done.stdout == ""
    assert "the newest run has ended; waiting for the first step" in " ".join(done.stderr.split())
