"""A command where the shell allows little: it ends with a sentence, not with a crash.

What reads tables is not Python. Where it gets no memory (`ulimit -v`), no thread (`ulimit -u`) or
no file (`ulimit -n`) it ends the process, and no `except` sees that. So the command runs in a
child, and who started it tells how it ended. Without such limits, which is how most machines are,
nothing of this happens.
"""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Final, NoReturn

from selftime.cli.boundary import say

_OWN: Final = frozenset({"bench", "doctor", "mcp", "preflight", "run", "serve"})
"""Commands that run the user's program, whose needs are its own matter, or that stay up."""
_FEW: Final = 1024
"""Processes and threads of a user: systems allow tens of thousands unless somebody restricts it."""
_FEW_FILES: Final = 32
"""Open files: a command has some 20 open at once, where each of its processes has its pipes."""
_FEW_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
"""Every thread takes room of its own before it does anything."""
_MOST_SAID: Final = 1 << 20
"""Bytes of stderr that are told: what ends for lack of threads may say so without end."""
_NO_ROOM: Final = 77
"""How the child says that it ended for lack of something, where it can say anything."""
_INTERRUPTED: Final = 130
_WRONG: Final = 2
_MIB: Final = 1 << 20


def limits(words: list[str]) -> list[str]:
    """What limits the command of these words, in words; nothing if it is none that reads."""
    named = next((word for word in words if not word.startswith("-")), "")
    if not named or named in _OWN:
        return []
    try:
        import resource
    except ImportError:  # Windows has none
        return []
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    tasks, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = []
    if memory != resource.RLIM_INFINITY:
        found.append(f"{memory // _MIB:,} MiB of memory (`ulimit -v`)")
    if tasks != resource.RLIM_INFINITY and tasks < _FEW:
        found.append(f"{tasks:,} processes and threads (`ulimit -u`)")
    if files != resource.RLIM_INFINITY and files < _FEW_FILES:
        found.append(f"{files:,} open files (`ulimit -n`)")
    return found


def supervised(command: Callable[[], None], known: list[str]) -> int:
    """The exit status of a command that was run in a child under these limits.

    Its stderr is held back until then: what ends for lack of memory says so in its own ways.
    """
    try:
        status, said = _heard(command)
    except OSError:
        status, said = _NO_ROOM, b""
    if status == _NO_ROOM:
        return _told(known)
    sys.stderr.buffer.write(said)
    sys.stderr.flush()
    return status


def _heard(command: Callable[[], None]) -> tuple[int, bytes]:
    """How the child ended, `_NO_ROOM` where it was ended, and what it said on stderr."""
    with TemporaryFile() as heard:
        child = os.fork()
        if not child:
            os.dup2(heard.fileno(), 2)
            heard.close()
            _run(command)
        status, is_interrupted = _ended(child)
        if status < 0 or (status == _INTERRUPTED and not is_interrupted):
            return _NO_ROOM, b""
        heard.seek(0)
        return status, heard.read(_MOST_SAID)


def _ended(child: int) -> tuple[int, bool]:
    """The child's status, below 0 by which signal; and whether the user is tired of waiting."""
    is_interrupted = False
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), is_interrupted
        except KeyboardInterrupt:  # noqa: PERF203 - it reaches the child, whose end is waited for
            is_interrupted = True


def _told(known: list[str]) -> int:
    say(f"Error: {' and '.join(known)} are too little for this; raise the limit, or read less")
    return _WRONG


def _run(command: Callable[[], None]) -> NoReturn:
    """The child's life: what has to be loaded first, then the command."""
    status: object = _NO_ROOM
    try:
        status = _status_of(command) if _is_loaded() else _NO_ROOM
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError):  # nobody reads it, or it is closed
                stream.flush()
    finally:
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def _is_loaded() -> bool:
    """Whether there is room for what every command needs, which is told in many ways."""
    for name in _FEW_THREADS:
        os.environ.setdefault(name, "1")
    try:
        import numpy as np
        import polars as pl

        return bool(pl.Series(np.arange(1)).sum() == 0)
    except BaseException:  # noqa: BLE001 - panics are no exceptions, and names may be missing
        return False


def _status_of(command: Callable[[], None]) -> object:
    from polars.exceptions import PanicException

    try:
        command()
    except SystemExit as ended:
        return ended.code
    except (MemoryError, PanicException):
        return _NO_ROOM
    except BaseException:  # noqa: BLE001 - whatever it is, it is a fault of ours and told as one
        traceback.print_exc()
        return 1
    return 0
