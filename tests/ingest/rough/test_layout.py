"""Folders and paths: what is found in them, and that one bad file does not stop the others."""

import errno
import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from tests.ingest.rough.case import document, events

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.trace import Job, Trace

MANY = 100
"""Files of a folder; each more costs as much as each of these."""


def numbered(number: int) -> bytes:
    """A trace unlike the others."""
    return document(events(4), trace_id=f"{number}")


def job_of(folder: Path) -> Job:
    job = load(folder, cache=False)
    assert isinstance(job, Job)
    return job


@pytest.mark.sweep
def test_a_folder_of_many_files(tmp_path: Path) -> None:
    for number in range(MANY):
        (tmp_path / f"{number:04}.json").write_bytes(numbered(number))
    (tmp_path / "0007.json").write_bytes(b"{")
    job = job_of(tmp_path)

    assert len(job) == MANY - 1
    assert list(job.traces) == sorted(job.traces)
    assert list(job.refused) == [str(tmp_path / "0007.json")]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(numbered(0))
    (tmp_path / "events.out.tfevents.1700000000.host.1.0").write_bytes(b"\x18\x00\x00\x00")
    (tmp_path / "README.md").write_text("# notes", "utf-8")
    job = job_of(tmp_path)

    assert [Path(path).name for path in job.traces] == ["trace.json"]
    assert not job.refused


def test_runs_in_folders_of_their_own(tmp_path: Path) -> None:
    for run in ("2026_01_01", "2026_01_02"):
        folder = tmp_path / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        (folder / "host.pt.trace.json").write_bytes(numbered(len(run) + int(run[-1])))
    found = [Path(path).parent.name for path in job_of(tmp_path).traces]

    assert found == ["2026_01_01", "2026_01_02"]


@pytest.mark.parametrize("name", ["a b", "a:b", "a=b", "größe", "100%", "%2e%2e", "#1", "核"])
def test_odd_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / name / f"{name}.json"
    path.parent.mkdir()
    path.write_bytes(numbered(0))
    trace = load(path, cache=True)

    assert isinstance(trace, Trace)
    assert trace.source == str(path)
    assert list(job_of(tmp_path).traces) == [str(path)]


def test_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["d" * 60] * 6)
    folder.mkdir(parents=True)
    path = folder / "trace.json"
    path.write_bytes(numbered(0))

    assert len(str(path)) > 260
    assert isinstance(load(path, cache=True), Trace)
    with pytest.raises(UnreadableTrace, match="File name too long"):
        load(tmp_path / ("n" * 400 + ".json"), cache=False)


def test_nothing_is_written_beside_a_trace(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "trace.json").write_bytes(numbered(0))
    folder.chmod(0o555)
    try:
        assert isinstance(load(folder / "trace.json", cache=True), Trace)
        assert len(job_of(folder)) == 1
        assert [path.name for path in folder.iterdir()] == ["trace.json"]
    finally:
        folder.chmod(0o755)


def test_a_share_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = tmp_path / "stale.json"
    for number, path in enumerate((stale, tmp_path / "whole.json")):
        path.write_bytes(numbered(number))
    stat = os.stat

    def of_a_share(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if str(path) == str(stale):
            raise OSError(errno.ESTALE, "Stale file handle")
        return stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", of_a_share)
    job = job_of(tmp_path)

    assert [Path(path).name for path in job.traces] == ["whole.json"]
    assert job.refused == {str(stale): f"`{stale}` cannot be read: Stale file handle"}


def test_a_trace_that_is_there_twice(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_bytes(numbered(0))
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(numbered(0)))
    (tmp_path / "other.json").write_bytes(numbered(1))
    job = job_of(tmp_path)

    assert [Path(path).name for path in job.traces] == ["other.json", "trace.json"]
    [(path, why)] = job.refused.items()
    assert path.endswith("trace.json.gz")
    assert why.endswith("it is counted once")


def test_an_address_that_became_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "s3:" / "bucket"
    folder.mkdir(parents=True)
    (folder / "trace.json").write_bytes(numbered(0))
    monkeypatch.chdir(tmp_path)

    for address in ("s3:", "s3:/bucket", "s3://bucket"):
        assert len(job_of(Path(address))) == 1
    assert isinstance(load("s3://bucket"), Job)
    assert isinstance(load("s3://bucket/trace.json"), Trace)
