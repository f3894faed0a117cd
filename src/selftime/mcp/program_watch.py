"""Runs a command, and ends all processes that it leaves; a script of its own, without selftime.

`python program_watch.py COMMAND...` ends the command's processes when the command has ended, and
when its own standard input ends: the server closes that to stop the command, and the system does so
when the server is gone, in whatever way. On Linux processes that left the command's process group,
such as daemons, are ended as well: whatever loses its parent becomes a child of this process.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SIGTERM_GRACE_S = 3.0
"""Time in s that processes have to end by themselves after SIGTERM."""
KILL_LIMIT_S = 5.0
"""Time in s for which processes are killed that start others meanwhile."""
_POLL_INTERVAL_S = 0.02
_PR_SET_CHILD_SUBREAPER = 36
"""Operation of Linux's `prctl`: orphaned descendants become children of this process."""


def main() -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of stdin is what ends this process
    try:
        command = subprocess.Popen(  # noqa: S603 - the user's program
            sys.argv[1:],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_restore_signals,  # noqa: PLW1509 - this process has one thread
        )
    except OSError as error:
        sys.stderr.write(f"it cannot be run: {error.strerror}\n")
        return 126
    ended: dict[int, int] = {}
    while command.pid not in ended:
        reap(ended)
        if select.select([0], [], [], _POLL_INTERVAL_S)[0] and not os.read(0, 1):
            break
    end_processes(command.pid, ended)
    command.returncode = os.waitstatus_to_exitcode(ended.get(command.pid, signal.SIGKILL))
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


def _restore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def reap(ended: dict[int, int]) -> None:
    """Notes the wait status of each child of this process that has ended."""
    with suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            ended[child[0]] = child[1]


def end_processes(group: int, ended: dict[int, int]) -> None:
    """Ends a process group, and all descendants of this process, first with SIGTERM."""
    until = time.monotonic() + SIGTERM_GRACE_S
    _send(signal.SIGTERM, group)
    while _are_alive(group, ended) and time.monotonic() < until:
        time.sleep(_POLL_INTERVAL_S)
    until = time.monotonic() + KILL_LIMIT_S
    while _are_alive(group, ended) and time.monotonic() < until:
        _send(signal.SIGKILL, group)
        time.sleep(_POLL_INTERVAL_S)


def _are_alive(group: int, ended: dict[int, int]) -> bool:
    reap(ended)
    if descendants(os.getpid()):
        return True
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _send(number: int, group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for process in descendants(os.getpid()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def descendants(process: int) -> list[int]:
    """Returns the processes that a process started, and those that they did; Linux only."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat") if sys.platform == "linux" else ():
        with suppress(OSError, ValueError, IndexError):
            text = entry.read_text(errors="replace")
            state, parent = text.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.parent.name)] = int(parent)
    found = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {process})


if __name__ == "__main__":
    sys.exit(main())
