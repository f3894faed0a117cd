"""What is no trace is refused in one sentence: where, what, and what to do."""

import gzip
import os
import pickle
import threading
from pathlib import Path
from typing import Final

import pytest

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.trace import Job, Trace

EVENT: Final = '{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
TRACE: Final = f'{{"traceEvents": [{EVENT}]}}'.encode()

REFUSED: Final[dict[str, tuple[bytes, str]]] = {
    "no events": (b'{"schemaVersion": 1, "traceEvents": []}', "no events: record"),
    "foreign JSON": (b'{"cells": [], "nbformat": 4}', "keys found: `cells`, `nbformat`: give"),
    "pickle": (pickle.dumps({"model": []}), "a pickle of something else than a snapshot: call"),
    "empty snapshot": (pickle.dumps({"segments": []}), "a memory snapshot without a record: call"),
    "Python repr of a list": (b"[{'ph': 'X', 'ts': 1}]", "a Python repr, not JSON: write it with"),
    "text": (b"hello", "not JSON: give"),
    "JSON of a package": (b'{"name": "x", "version": 1}', "keys found: `name`, `version`"),
    "lines of JSON": (b'{"ts": 1, "msg": "a"}\n{"ts": 2, "msg": "b"}', "keys found: `ts`, `msg`"),
    "text with JSON": (b'log: {"name": "x"}', "not JSON: give"),
}


def sentence(path: Path) -> str:
    with pytest.raises(UnreadableTrace) as caught:
        load(path, cache=False)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    assert len(text) < 400 + len(str(path))
    return text


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("data", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_trace(data: bytes, words: str, pack: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(pack(data))
    assert words in sentence(path)


@pytest.mark.parametrize("name", ["a.pftrace", "b.perfetto-trace", "c.PFTRACE.gz"])
@pytest.mark.parametrize("data", [b"hello", b"\x00\x01\x02" * 99, b"\n\xff\xff\xff"])
def test_garbage_that_is_named_like_perfettos_files(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    text = sentence(path)
    assert "its name says that it is in Perfetto's format" in text
    assert "no packet of that format begins at byte 0" in text
    assert "export it again" in text


def test_what_a_file_holds_counts_before_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.pftrace"
    path.write_bytes(TRACE)
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    assert trace.slices.height == 1
    for data, words in ((b"", "the file is empty"), (b"PK\x03\x04", "a zip archive")):
        path.write_bytes(data)
        assert words in sentence(path)


def test_a_missing_path(tmp_path: Path) -> None:
    assert "no such file or folder" in sentence(tmp_path / "nowhere.json")


def test_a_folder_without_traces(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert "holds no trace" in sentence(tmp_path)


def test_a_folder_named_like_a_trace(tmp_path: Path) -> None:
    folder = tmp_path / "x.json"
    folder.mkdir()
    assert "holds no trace" in sentence(folder)


def test_a_folder_names_the_files_it_refuses(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(TRACE)
    (tmp_path / "bad.json").write_bytes(b"")
    job = load(tmp_path, cache=False)
    assert isinstance(job, Job)
    assert [Path(path).name for path in job.traces] == ["good.json"]
    [why] = job.refused.values()
    assert "empty" in why


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    assert "not a regular file" in sentence(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_permissions(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TRACE)
    path.chmod(0)
    assert "Permission denied" in sentence(path)


def test_a_loop_of_links(tmp_path: Path) -> None:
    path = tmp_path / "loop.json"
    path.symlink_to(path)
    assert "cannot be read" in sentence(path)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TRACE)

    def touch(done: int, size: int | None) -> None:
        del done, size
        path.write_bytes(TRACE.replace(b'"a"', b'"b"') + b"\n")

    with pytest.raises(UnreadableTrace, match="changed while it was read"):
        load(path, progress=touch)
    assert isinstance(load(path), Trace)


@pytest.mark.parametrize("address", ["nosuch://x/y.json", "file:///nowhere/y.json"])
def test_an_address_that_leads_nowhere(address: str) -> None:
    with pytest.raises(UnreadableTrace) as caught:
        load(address)
    assert address in str(caught.value)
    assert "\n" not in str(caught.value)


def test_progress_ends_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TRACE)
    seen: list[tuple[int, int | None]] = []
    load(path, progress=lambda done, size: seen.append((done, size)))
    assert seen[-1] == (len(TRACE), len(TRACE))


def test_reading_in_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(TRACE)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(load(path)))
    thread.start()
    thread.join()
    assert isinstance(found[0], Trace)
