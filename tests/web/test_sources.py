import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest
from tests.ledgers import Step, write_ledger

from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.text.format_detection import looks_like_trace
from selftime.web import TracesAtPaths, sources

Write = Callable[..., Path]


def listed(*paths: Path) -> list[tuple[str, str]]:
    return [(one.run_folder, one.name) for one in TracesAtPaths(map(str, paths)).listed_traces()]


def at(path: Path, second: float) -> None:
    os.utime(path, (second, second))


def test_a_folder_is_searched_at_any_depth(write: Write, tmp_path: Path) -> None:
    for name in ("runs/a.json", "runs/deep/er/b.json.gz", "runs/.hidden/c.json"):
        at(write(name), 100)
    assert listed(tmp_path / "runs") == [("runs", "a.json"), ("deep/er", "b.json.gz")]


def test_a_ledger_is_listed_unless_a_trace_of_its_process_is_beside_it(
    write: Write, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    at(write("runs/node.org_rank0_7_20260102-030406.pt.trace.json"), 300)
    for process in ("node.org_7", "node.org_8", "other_7"):
        at(write_ledger(runs / f"{process}_20260102-030405.run.jsonl", [Step(1)]), 100)
    names = ["node.org_rank0_7_20260102-030406.pt.trace.json"]
    names += ["node.org_8_20260102-030405.run.jsonl", "other_7_20260102-030405.run.jsonl"]
    assert listed(runs) == [("runs", name) for name in names]
    told = TracesAtPaths([str(runs)]).listed_traces()
    assert [one.is_ledger for one in told] == [False, True, True]
    assert told[1].worker == "node.org_8_20260102-030405"


def test_other_json_is_left_out(write: Write, tmp_path: Path) -> None:
    write("runs/trace.json")
    for name, text in {
        "package.json": '{"name": "x"}',
        "list.json": "[1, 2]",
        "empty.json": "",
        "words.json": "traceEvents",
        "notes.txt": '{"traceEvents": []}',
    }.items():
        (tmp_path / "runs" / name).write_text(text)
    (tmp_path / "runs" / "broken.json.gz").write_bytes(b"\x1f\x8bnonsense")
    assert listed(tmp_path / "runs") == [("runs", "trace.json")]


def test_a_recording_is_offered_even_if_it_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "host_1.17.pt.trace.json").write_text("nonsense")
    [one] = TracesAtPaths([str(tmp_path)]).listed_traces()
    assert (one.worker, one.span) == ("host_1", "17")


def test_a_file_that_is_named_is_offered_whatever_it_holds(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("nonsense")
    assert listed(tmp_path / "x.txt") == [("", "x.txt")]


def test_a_list_of_events_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('\n[{"name": "a", "ph": "X", "ts": 1, "dur": 1}]')
    assert looks_like_trace(path)


def test_what_inflates_beyond_reason_is_glanced_at(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 50_000_000 + b'{"traceEvents": []}'))
    assert not looks_like_trace(path)


def test_the_newest_recording_is_first_its_ranks_by_name(write: Write, tmp_path: Path) -> None:
    for name, second in {"a": 1000, "z0": 5000, "z1": 4990, "m": 9000, "b": 1001}.items():
        at(write(f"runs/{name}.json"), second)
    names = [name for _, name in listed(tmp_path / "runs")]
    assert names == ["m.json", "z0.json", "z1.json", "a.json", "b.json"]


def test_a_file_that_is_named_twice_is_listed_once(write: Write, tmp_path: Path) -> None:
    assert listed(write(), tmp_path, tmp_path) == [("", "trace.json")]


def test_what_appears_later_appears(write: Write, tmp_path: Path) -> None:
    write("a.json")
    files = TracesAtPaths([str(tmp_path)])
    assert len(files.listed_traces()) == 1
    write("b.json")
    assert {one.name for one in files.listed_traces()} == {"a.json", "b.json"}


def test_ids_are_stable(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write()
    monkeypatch.chdir(tmp_path)
    [absolute], [relative] = (
        TracesAtPaths([str(path)]).listed_traces(),
        TracesAtPaths(["trace.json"]).listed_traces(),
    )
    assert absolute.id == relative.id


def test_a_mark_changes_with_the_file(write: Write) -> None:
    path = write()
    files = TracesAtPaths([str(path)])
    [one] = files.listed_traces()
    before = files.fingerprint(one.id)
    assert files.fingerprint(one.id) == before
    write(events=[])
    assert files.fingerprint(one.id) != before


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTrace, match="no such file or folder"):
        TracesAtPaths([str(tmp_path / "nonesuch")])
    with pytest.raises(UnreadableTrace, match="holds no trace; record one"):
        TracesAtPaths([str(tmp_path)])
    with pytest.raises(UnreadableTrace, match="holds no trace"):
        TracesAtPaths([])


@pytest.mark.parametrize("asked", ["nonesuch", "", "../trace.json", "/etc/passwd"])
def test_only_a_trace_that_is_listed_is_opened(write: Write, asked: str) -> None:
    files = TracesAtPaths([str(write())])
    for ask in (files.fingerprint, files.open):
        with pytest.raises(UsageError, match="there is no trace"):
            ask(asked)


@pytest.fixture
def address() -> Iterator[str]:
    """A folder elsewhere, with the traces of two ranks, one of another run, and other files."""
    elsewhere = fsspec.filesystem("memory")
    for name in ("ranks/rank0.json", "ranks/rank1.json", "notes.txt", "other.json"):
        elsewhere.pipe(f"/runs/{name}", b"[]")
    yield "memory://runs"
    elsewhere.rm("/runs", recursive=True)


def test_a_folder_at_an_address_is_searched_at_any_depth(address: str) -> None:
    found = TracesAtPaths([address]).listed_traces()
    assert [(one.run_folder, one.name) for one in found] == [
        ("runs", "other.json"),
        ("ranks", "rank0.json"),
        ("ranks", "rank1.json"),
    ]
    other, *ranks = [one.job for one in found]
    assert len(set(ranks)) == 1
    assert other not in ranks


def test_a_pattern_chooses(address: str, write: Write, tmp_path: Path) -> None:
    write("runs/a.json")
    write("runs/b.json")
    found = TracesAtPaths([f"{address}/**/*1.json", str(tmp_path / "*" / "b.json")]).listed_traces()
    assert [(one.run_folder, one.name) for one in found] == [
        ("ranks", "rank1.json"),
        ("runs", "b.json"),
    ]
    with pytest.raises(UnreadableTrace, match="holds no trace"):
        TracesAtPaths([str(tmp_path / "*" / "none.json")])


def test_what_comes_to_an_address_appears_after_a_while(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(sources, "monotonic", lambda: now[0])
    files = TracesAtPaths([address])
    fsspec.filesystem("memory").pipe("/runs/ranks/rank2.json", b"[]")
    assert len(files.listed_traces()) == 3
    now[0] = 60.0
    assert [one.name for one in files.listed_traces()][-1] == "rank2.json"
