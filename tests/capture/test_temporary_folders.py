"""What killed processes leave in the temporary folder is deleted, and nothing else."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from selftime.capture.temporary_folders import (
    delete_folders_of_child,
    delete_folders_of_killed_processes,
    folder_prefix,
    make_temporary_folder,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_only_folders_of_processes_that_have_ended_go(folder: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    of_ended = folder_prefix().replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    own, dead, other = make_temporary_folder(), folder / f"{of_ended}x", folder / "selftime-x"
    elsewhere = folder / f"selftime-of-1-{ended.pid}-x"  # of a container that shares the folder
    for path in (dead, other, elsewhere):
        path.mkdir()
    (dead / "trace.json").write_text("{}")

    delete_folders_of_killed_processes()
    assert dead.exists(), "it is too young to tell"
    delete_folders_of_killed_processes(now=time.time() + 100)
    assert not dead.exists()
    assert own.exists()
    assert other.exists()
    assert elsewhere.exists()


def test_a_temporary_folder_that_is_gone_does_no_harm(folder: Path) -> None:
    folder.rmdir()
    delete_folders_of_killed_processes()
    assert not folder.exists()


def test_the_folders_of_a_child_that_has_ended_go_at_once(folder: Path) -> None:
    of_child, of_other = (
        folder / f"{folder_prefix().replace(f'-{os.getpid()}-', f'-{process}-')}x"
        for process in (12, 123)
    )
    own = make_temporary_folder()
    for path in (of_child, of_other):
        path.mkdir()

    delete_folders_of_child(12)

    assert [of_child.exists(), of_other.exists(), own.exists()] == [False, True, True]
