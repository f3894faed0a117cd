"""Runs `selftime sql` in a child process, and says in one sentence why it was stopped.

A native library ends the process that gets no memory, and cannot be interrupted; no `except`
catches that. So the command runs in a child process, which limits itself while the query is
answered, and the parent says how it ended. Where the system has no fork, as on Windows, the command
has no limits.
"""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from selftime.cli.error_reporting import print_notice
from selftime.errors import SelftimeError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.sql.query_limits import QueryLimits

_COMMAND: Final = "sql"
_SIGNAL_NAMES_OF_STOPPED_PARENT: Final = ("SIGTERM", "SIGHUP")
_EXIT_STATUS_ERROR: Final = 2
_EXIT_STATUS_INTERRUPTED: Final = 130
_MAX_SENTENCES_BYTES: Final = 4096
"""Largest size of what a child says of its limits: what a pipe holds."""

_pipe_to_parent: int | None = None
"""In the child process the pipe by which it tells its parent its limits; else None."""


def continue_in_child_process(arguments: list[str]) -> None:
    """Returns in a child process if the command answers a query; else in this one.

    The parent of such a child waits for it, and ends with its exit status.
    """
    global _pipe_to_parent  # noqa: PLW0603 - of a process there is one
    named = next((word for word in arguments if not word.startswith("-")), "")
    if named != _COMMAND or not hasattr(os, "fork"):
        return
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child:
        os.close(to_parent)
        _end_with_child(child, from_child)
    os.close(from_child)
    _pipe_to_parent = to_parent


@contextmanager
def held_to(limits: "QueryLimits") -> Iterator[None]:
    """Limits the child process to the time and memory of a query, as long as that is answered."""
    if _pipe_to_parent is None:
        yield
        return
    from selftime.sql.query_limits import end_process_with_parent, limit_memory_of_process

    end_process_with_parent()
    sentences = f"{limits.time_sentence}\n{limits.memory_sentence}"
    os.write(_pipe_to_parent, sentences.encode()[:_MAX_SENTENCES_BYTES])
    on_interrupt = signal.getsignal(signal.SIGINT)
    is_ignored = on_interrupt == signal.SIG_IGN  # as in the background; Polars' own handler acts
    signal.signal(signal.SIGINT, signal.SIG_IGN if is_ignored else signal.SIG_DFL)  # ends at once
    stderr = _send_stderr_nowhere()
    signal.setitimer(signal.ITIMER_REAL, limits.seconds)
    limit_memory_of_process(limits.memory_bytes)
    try:
        yield
    except MemoryError:
        raise SelftimeError(limits.memory_sentence) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.dup2(stderr, 2)
        os.close(stderr)
        signal.signal(signal.SIGINT, on_interrupt)


def _send_stderr_nowhere() -> int:
    """Silences what Polars prints where memory ends; returns a duplicate of stderr."""
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return stderr


def _end_with_child(child: int, from_child: int) -> None:
    """Waits until the child process has ended, and ends as it did, with a sentence if stopped."""

    def end_both(number: int, _frame: FrameType | None) -> None:
        os.kill(child, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for name in _SIGNAL_NAMES_OF_STOPPED_PARENT:
        if signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:
            signal.signal(getattr(signal, name), end_both)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child, too
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        status = _say_why_it_was_stopped(-status, from_child)
    sys.exit(status)


def _say_why_it_was_stopped(number: int, from_child: int) -> int:
    """Prints why a signal ended the child process; returns the exit status."""
    if number == signal.SIGINT:
        print_notice("Error: the query was cancelled")
        return _EXIT_STATUS_INTERRUPTED
    time, _, memory = os.read(from_child, _MAX_SENTENCES_BYTES).decode().partition("\n")
    said = {signal.SIGALRM: time, signal.SIGABRT: memory}.get(signal.Signals(number))
    print_notice(
        f"Error: {said or f'signal {number} ended the process of the query; ask for less'}"
    )
    return _EXIT_STATUS_ERROR
