"""Runs commands under tight system limits so that they fail with a message instead of a crash.

The native libraries that read tables end the process if they get no memory (`ulimit -v`), thread
(`ulimit -u`) or file (`ulimit -n`), and no `except` can catch that. Under such limits the command
runs in a child process, and the parent reports how it ended. Without limits, as on most machines,
no child is started.
"""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Final, NoReturn

from selftime.cli.error_reporting import print_notice
from selftime.units import bytes_text, count_text

_COMMANDS_NEVER_RUN_IN_CHILD: Final = frozenset(
    {"bench", "doctor", "mcp", "preflight", "run", "serve"}
)
"""Commands that never run in a child process, since they run the user's program or a server."""
_PROCESS_LIMIT_BELOW_WHICH_TIGHT: Final = 1024
"""A limit of processes and threads below this number counts as tight; usual limits exceed
10,000."""
_OPEN_FILE_LIMIT_BELOW_WHICH_TIGHT: Final = 32
"""A limit of open files below this number counts as tight; a command opens about 20 files at
once."""
_THREAD_COUNT_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
"""Environment variables that set how many threads a library starts; each thread reserves memory."""
_MAX_CHILD_STDERR_BYTES: Final = 1 << 20
"""Largest number of bytes of a child's stderr that is printed, since it may repeat an error
endlessly."""
_CHILD_EXIT_STATUS_OUT_OF_RESOURCES: Final = 77
"""Exit status of the child process if memory, threads or files ran out."""
_EXIT_STATUS_INTERRUPTED: Final = 130
_EXIT_STATUS_ERROR: Final = 2
_BYTES_PER_MIB: Final = 1 << 20


def tight_resource_limits(arguments: list[str]) -> list[str]:
    """Returns a text for each tight system limit; empty if the command needs no child process."""
    named = next((word for word in arguments if not word.startswith("-")), "")
    if not named or named in _COMMANDS_NEVER_RUN_IN_CHILD:
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
        found.append(f"{bytes_text(memory)} of memory (`ulimit -v`)")
    if tasks != resource.RLIM_INFINITY and tasks < _PROCESS_LIMIT_BELOW_WHICH_TIGHT:
        found.append(f"{count_text(tasks)} processes and threads (`ulimit -u`)")
    if files != resource.RLIM_INFINITY and files < _OPEN_FILE_LIMIT_BELOW_WHICH_TIGHT:
        found.append(f"{count_text(files)} open files (`ulimit -n`)")
    return found


def run_under_tight_limits(command: Callable[[], None], limits: list[str]) -> int:
    """Runs a command in a child process, since limits are tight; returns its exit status.

    Its stderr is printed at the end, or replaced by one sentence if it ran out of a resource.
    """
    try:
        status, said = _run_in_child_process(command)
    except OSError:
        status, said = _CHILD_EXIT_STATUS_OUT_OF_RESOURCES, b""
    if status == _CHILD_EXIT_STATUS_OUT_OF_RESOURCES:
        return _print_insufficient_limits_error(limits)
    sys.stderr.buffer.write(said)
    sys.stderr.flush()
    return status


def _run_in_child_process(command: Callable[[], None]) -> tuple[int, bytes]:
    """Runs the command in a child process; returns (exit status, bytes it wrote to stderr)."""
    with TemporaryFile() as heard:
        child = os.fork()
        if not child:
            os.dup2(heard.fileno(), 2)
            heard.close()
            _run_command_and_exit_child_process(command)
        status, is_interrupted = _wait_for_child_process(child)
        if status < 0 or (status == _EXIT_STATUS_INTERRUPTED and not is_interrupted):
            return _CHILD_EXIT_STATUS_OUT_OF_RESOURCES, b""
        heard.seek(0)
        return status, heard.read(_MAX_CHILD_STDERR_BYTES)


def _wait_for_child_process(child_pid: int) -> tuple[int, bool]:
    """Returns (child's exit status, negative for a signal; whether the user pressed Ctrl-C)."""
    is_interrupted = False
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(child_pid, 0)[1]), is_interrupted
        except KeyboardInterrupt:  # noqa: PERF203 - it reaches the child, whose end is waited for
            is_interrupted = True


def _print_insufficient_limits_error(limits: list[str]) -> int:
    print_notice(
        f"Error: {' and '.join(limits)} are too little for this; raise the limit, or read less"
    )
    return _EXIT_STATUS_ERROR


def _run_command_and_exit_child_process(command: Callable[[], None]) -> NoReturn:
    """Runs the command in this child process, and exits with the command's exit status."""
    status: object = _CHILD_EXIT_STATUS_OUT_OF_RESOURCES
    try:
        status = (
            _run_command_for_exit_status(command)
            if _can_load_numpy_and_polars()
            else _CHILD_EXIT_STATUS_OUT_OF_RESOURCES
        )
        for stream in (sys.stdout, sys.stderr):
            with suppress(
                OSError, AttributeError
            ):  # the pipe's reader is gone, or the stream is closed
                stream.flush()
    finally:
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def _can_load_numpy_and_polars() -> bool:
    """Returns whether NumPy and Polars can be imported under the present system limits."""
    for name in _THREAD_COUNT_VARIABLES:
        os.environ.setdefault(name, "1")
    try:
        import numpy as np
        import polars as pl

        return bool(pl.Series(np.arange(1)).sum() == 0)
    except BaseException:  # noqa: BLE001 - panics are not Exceptions; any error counts
        return False


def _run_command_for_exit_status(command: Callable[[], None]) -> object:
    from polars.exceptions import PanicException

    try:
        command()
    except SystemExit as ended:
        return ended.code
    except (MemoryError, PanicException):
        return _CHILD_EXIT_STATUS_OUT_OF_RESOURCES
    except BaseException:  # noqa: BLE001 - a fault of selftime: print its traceback
        traceback.print_exc()
        return 1
    return 0
