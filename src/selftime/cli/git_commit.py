"""Asks git which commit is checked out in the current folder."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # NumPy stays out until a command runs
    from selftime.compare.check.history_files import Commit

_LONGEST_ANSWER_S: Final = 20.0
"""Seconds after which git is not waited for any more."""
_MAX_SUBJECT_CHARACTERS: Final = 200
_OPTIONS: Final = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "log.showSignature=false",
)
"""Options with which git changes nothing and runs no other program."""


def current_commit(commit_id: str | None = None) -> "Commit | None":
    """Returns a commit with its date and subject; what git does not tell of it is None.

    Args:
        commit_id: The commit; None for the one that is checked out, None where there is no git.
    """
    from selftime.compare.check.history_files import Commit

    text = _git("show", "--no-patch", "--format=%H%n%cI%n%s", commit_id or "HEAD", "--")
    parts = (text or "").rstrip("\n").split("\n")
    if len(parts) != 3:
        return None if commit_id is None else Commit(commit_id)
    has_changes = commit_id is None and _git("diff-index", "--quiet", "HEAD", "--") is None
    return Commit(parts[0], parts[1], parts[2][:_MAX_SUBJECT_CHARACTERS], has_changes)


def _git(*words: str) -> str | None:
    """Returns what git prints; None if it fails, is not installed, or takes too long."""
    program = shutil.which("git")
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and words of ours
            [program, *_OPTIONS, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
