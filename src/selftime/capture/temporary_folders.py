"""Names temporary folders after their process, and deletes those of processes that were killed."""

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from selftime.capture.live_processes import takes_signals

_PREFIX: Final = "selftime-of"
_MIN_AGE_S: Final = 60.0
"""Age in seconds below which a folder is left alone, whatever its name says."""


def folder_prefix() -> str:
    """Returns how the names of this process's temporary folders begin."""
    return f"{_PREFIX}-{_process_namespace()}-{os.getpid()}-"


def make_temporary_folder() -> Path:
    """Makes a temporary folder for this process.

    Raises:
        OSError: It cannot be made.
    """
    return Path(tempfile.mkdtemp(prefix=folder_prefix()))


def delete_folders_of_killed_processes(now: float | None = None) -> None:
    """Deletes temporary folders of selftime processes that were killed.

    Only this user's, and only those whose process would be visible here: another container may
    share the folder. `now` is the present time in seconds since 1970; None reads the clock.
    """
    now = time.time() if now is None else now
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}-{_process_namespace()}-*-*"):
            with suppress(OSError, ValueError):
                process = int(folder.name.split("-")[3])
                status = folder.lstat()
                is_old = now - status.st_mtime > _MIN_AGE_S
                if is_old and status.st_uid == os.getuid() and not takes_signals(process):
                    shutil.rmtree(folder, ignore_errors=True)


def delete_folders_of_child(process: int) -> None:
    """Deletes temporary folders of a child process that this process has waited for."""
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(
            f"{_PREFIX}-{_process_namespace()}-{process}-*"
        ):
            if folder.lstat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)


def _process_namespace() -> str:
    """Returns an id of the process namespace, in which process numbers are unique."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)  # noqa: PTH116 - a link that names no path
    except OSError:  # not Linux
        return "host"
