"""The walk over a logdir: what it finds, and what it does not look at again."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from selftime.tensorboard import logdir_watch
from selftime.tensorboard.logdir_watch import TraceFileSearch

if TYPE_CHECKING:
    from tests.tensorboard.conftest import Logs


def names(walk: TraceFileSearch) -> list[str]:
    return [os.path.relpath(file.path, walk.root) for file in walk.files()]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were listed, each time."""
    seen: list[str] = []
    scandir = os.scandir

    def listing(place: str) -> Any:
        seen.append(place)
        return scandir(place)

    monkeypatch.setattr("os.scandir", listing)
    return seen


def aged(logs: "Logs") -> None:
    """Every folder is as it was for long."""
    for folder, _, _ in os.walk(logs.root):
        logs.date(Path(folder), 60)


def test_nothing() -> None:
    assert names(TraceFileSearch("/there/is/none")) == []


def test_at_any_depth_in_order(logs: "Logs") -> None:
    for name in ("b.json", "a/x.pt.trace.json.gz", "a/b/c/d/y.json.zst", "c/events.out.tfevents.1"):
        logs.write(name)

    assert names(TraceFileSearch(str(logs.root))) == [
        "b.json",
        "a/x.pt.trace.json.gz",
        "a/b/c/d/y.json.zst",
    ]


def test_what_is_no_regular_file_is_left_out(logs: "Logs") -> None:
    logs.write("folder.json/inside.json")
    logs.write(".x.pt.trace.json.99.tmp")
    logs.write(".hidden.json")
    logs.write(".git/x.json")
    os.mkfifo(logs.root / "pipe.json")
    (logs.root / "broken.json").symlink_to("nowhere")

    assert names(TraceFileSearch(str(logs.root))) == ["folder.json/inside.json"]


def test_links_are_followed_once(logs: "Logs") -> None:
    logs.write("real/x.json")
    (logs.root / "real" / "back").symlink_to(logs.root)
    (logs.root / "again").symlink_to(logs.root / "real")

    assert names(TraceFileSearch(str(logs.root))) == ["again/x.json"]


def test_a_folder_that_did_not_change_is_not_listed_again(logs: "Logs", listed: list[str]) -> None:
    logs.write("a/x.json")
    logs.write("b/y.json")
    aged(logs)
    listed.clear()
    walk = TraceFileSearch(str(logs.root))
    first = names(walk)
    assert len(listed) == 3
    listed.clear()

    assert names(walk) == first
    assert listed == []


def test_what_comes_and_goes_is_seen(logs: "Logs", listed: list[str]) -> None:
    logs.write("a/x.json")
    logs.write("b/y.json")
    aged(logs)
    walk = TraceFileSearch(str(logs.root))
    names(walk)
    listed.clear()

    logs.write("b/z.json")
    assert names(walk) == ["a/x.json", "b/y.json", "b/z.json"]
    assert listed == [str(logs.root / "b")]
    shutil.rmtree(logs.root / "a")
    assert names(walk) == ["b/y.json", "b/z.json"]
    logs.write("new/deep/w.json")
    assert names(walk) == ["b/y.json", "b/z.json", "new/deep/w.json"]


def test_a_folder_that_changed_just_now_is_listed_again(logs: "Logs") -> None:
    """Its time may be too coarse to tell a second change."""
    logs.write("x.json")
    walk = TraceFileSearch(str(logs.root))
    names(walk)
    before = logs.root.stat()
    logs.write("y.json")
    os.utime(logs.root, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert names(walk) == ["x.json", "y.json"]


def test_a_file_system_that_tells_no_times_is_listed_now_and_then(
    logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    aged(logs)
    walk = TraceFileSearch(str(logs.root))
    names(walk)
    logs.write("x.json")
    aged(logs)
    before = walk._known[str(logs.root)]
    before.modified_ns = logs.root.stat().st_mtime_ns

    assert names(walk) == []
    monkeypatch.setattr(logdir_watch, "_MAX_FOLDER_LISTING_AGE_S", 0.0)
    assert names(walk) == ["x.json"]


@pytest.fixture
def locked(logs: "Logs") -> Iterator[Path]:
    logs.write("locked/x.json")
    folder = logs.root / "locked"
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


def test_what_cannot_be_read_is_left_out(
    logs: "Logs", locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs.write("x.json")
    if os.access(locked, os.R_OK):  # the superuser reads everything
        scandir = os.scandir

        def refusing(place: str) -> Any:
            if place == str(locked):
                raise PermissionError(13, "Permission denied", place)
            return scandir(place)

        monkeypatch.setattr("os.scandir", refusing)

    assert names(TraceFileSearch(str(logs.root))) == ["x.json"]


def test_what_vanishes_meanwhile_is_left_out(logs: "Logs") -> None:
    logs.write("a.json")
    logs.write("b.json")
    logs.write("c/d.json")
    walk = TraceFileSearch(str(logs.root))
    files = walk.files()
    assert next(files).path.endswith("a.json")
    (logs.root / "b.json").unlink()
    shutil.rmtree(logs.root / "c")

    assert list(files) == []


def test_too_many_folders_end_the_walk(
    logs: "Logs", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        logs.write(f"{number}/x.json")
    monkeypatch.setattr(logdir_watch, "MAX_FOLDERS_PER_LOGDIR", 3)

    assert names(TraceFileSearch(str(logs.root))) == ["0/x.json", "1/x.json"]
    assert "too many folders" in caplog.text
