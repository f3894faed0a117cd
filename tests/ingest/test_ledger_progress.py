"""Ledgers are read as they grow: each line once, half-written ones when they are whole."""

from pathlib import Path

import pytest
from tests.ledgers import EPOCH, Step, ledger_text, write_ledger

from selftime.ingest.ledger_progress.followed_file import FollowedFile
from selftime.ingest.ledger_progress.followed_run import FollowedRun
from selftime.ingest.ledger_progress.traces_beside import traces_beside


def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    file = FollowedFile(tmp_path / "a")
    assert list(file.new_lines()) == []
    assert file.failure == "No such file or directory"
    file.path.write_bytes(b"1\n")
    assert list(file.new_lines()) == [b"1"]
    assert file.failure is None


def test_each_line_comes_once_and_whole(tmp_path: Path) -> None:
    file = FollowedFile(tmp_path / "a")
    with file.path.open("ab", buffering=0) as writer:
        seen = []
        for part in (b"1\n2", b"", b"2\n3\n", b"4"):
            writer.write(part)
            seen.append(list(file.new_lines()))
    assert seen == [[b"1"], [], [b"22", b"3"], []]


def test_a_file_that_became_shorter_is_read_anew(tmp_path: Path) -> None:
    file = FollowedFile(tmp_path / "a")
    file.path.write_bytes(b"1\n2\n3\n")
    assert len(list(file.new_lines())) == 3
    file.path.write_bytes(b"4\n")
    assert list(file.new_lines()) == [b"4"]


def test_a_folder_that_is_not_there_has_no_run(tmp_path: Path) -> None:
    assert FollowedRun(tmp_path / "no").read() == []


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_ledger_that_grows_tells_the_same_as_a_whole_one(tmp_path: Path, chunk: int) -> None:
    text = ledger_text([Step(10)] * 9, whole=True)
    path = tmp_path / "a.run.jsonl"
    run = FollowedRun(tmp_path)
    for end in range(0, len(text) + chunk, chunk):
        path.write_text(text[:end])
        found = run.read()
    [one] = found
    assert (one.steps, one.status, list(one.recent.duration)) == (9, "ended", [10_000_000] * 9)


def test_steps_that_the_recorder_made_longer_are_not_usual(tmp_path: Path) -> None:
    steps = [Step(10), Step(11, counted={"recording": 0.1}), Step(30, counted={"recording": 9})]
    steps += [Step(12), Step(40, recorded=True), Step(50, counted={"compile": 1})]
    write_ledger(tmp_path / "a.run.jsonl", steps)
    [one] = FollowedRun(tmp_path).read()
    assert one.steps == 6
    assert [ns / 1e6 for ns in one.recent.duration] == [10, 11, 12]


def test_of_several_runs_the_newest_is_followed(tmp_path: Path) -> None:
    write_ledger(tmp_path / "z.run.jsonl", [Step(10)] * 3)
    newer = EPOCH + (1 << 60)
    write_ledger(tmp_path / "a.run.jsonl", [Step(10)] * 5, time=newer)
    earlier = write_ledger(tmp_path / "b.run.jsonl", [Step(10)] * 4, time=EPOCH - (1 << 50))
    assert [one.steps for one in FollowedRun(tmp_path).read()] == [5]
    assert [one.source for one in FollowedRun(earlier).read()][:1] == [str(earlier)]


def test_the_newest_trace_of_each_process(tmp_path: Path) -> None:
    names = [
        "host_rank0_7_20260101-000001.pt.trace.json.gz",
        "host_rank0_7_20260101-000002.pt.trace.json.gz",
        "host_rank0_7_20260101-000003.slow-step.pt.trace.json.gz",
        "host_rank1_8_20260101-000001.pt.trace.json.gz",
    ]
    for name in names:
        (tmp_path / name).touch()
    ledgers = [tmp_path / "host_7_20260101-000000.run.jsonl"]
    assert [path.name for path in traces_beside(ledgers)] == [names[1]]
