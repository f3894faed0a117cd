"""The commit of a history is that of the current folder, if git knows it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from selftime.cli.git_commit import current_commit
from selftime.compare.check.history_files import Commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, capture_output=True)  # noqa: S603, S607 - a test's own


def test_the_commit_and_whether_files_differ_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert current_commit() is None
    assert current_commit("abc") == Commit("abc")
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "A")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "a@example.org")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05+00:00")
    git("init", "--quiet")
    (tmp_path / "train.py").write_text("1")
    git("add", ".")
    git("-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "Train\n\nMore.")
    found = current_commit()
    assert found is not None
    assert (found.subject, found.has_changes, len(found.id)) == ("Train", False, 40)
    assert found.time is not None
    assert found.time.startswith("2026-01-02T03:04:05")
    (tmp_path / "train.py").write_text("2")
    assert current_commit() == Commit(found.id, found.time, found.subject, has_changes=True)
    assert current_commit(found.id[:8]) == found
