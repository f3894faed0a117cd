"""Runs the program in a child process, so that its end is seen however it comes.

A program that a signal ends, or that calls `os._exit`, leaves no time for an answer. The process
of the command waits for it, answers in its place from what was written, and ends as it did: by the
same signal or with the same exit status. Nothing is changed in the program for that: it has the
signal handlers, the terminal and the process group that it would have.

Signals to the command are passed on. Those of the terminal, and those to the whole process group,
reach both processes by themselves. Only Linux has what is needed: `sigwaitinfo`, and a signal to a
child at its parent's end.
"""

import ctypes
import mmap
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn

from selftime.capture.program.group_signals import GroupSignals

_NOT_FORWARDED: Final = frozenset(
    {
        *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGTSTP),
        *(signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD, signal.SIGPIPE, signal.SIGWINCH),
        *(signal.SIGURG, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL),
        *(signal.SIGTRAP, signal.SIGSYS),
    }
)
"""Signals that cannot be passed on, that stop or continue each process, or that tell of a fault."""

_PR_SET_PDEATHSIG: Final = 1
_RUNNING, _RETURNED, _INTERRUPTED = 0, 1, 2


class GuardedProcess:
    """The process that runs the program, as seen by the command, which waits for it."""

    def __init__(self) -> None:
        self._state = mmap.mmap(-1, 1)
        """Memory that both processes share: whether the program returned to selftime."""
        self._guard = os.getpid()
        self.process = 0
        """Id of the process that runs the program."""
        self._previous_mask: Any = ()
        self._forwarded = signal.valid_signals() - _NOT_FORWARDED
        self._group_signals: GroupSignals | None = None
        self.is_group_signalled = False
        """Whether the last signal came to the whole process group, and so to what the program
        started."""

    def fork(self) -> bool:
        """Starts the process; returns True in it, and False in the one that waits."""
        sys.stdout.flush()
        sys.stderr.flush()
        waited_for = self._forwarded | {signal.SIGCHLD}
        self._previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
        self._group_signals = GroupSignals(self._forwarded, self._end_with_guard)
        self.process = os.fork()
        if self.process:
            return False
        self._end_with_guard()
        self._group_signals.close_in_child()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._previous_mask)
        self.process = os.getpid()
        return True

    def _end_with_guard(self) -> None:
        """Has this child process killed when its parent ends."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._guard:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def until_program_returns(self) -> Iterator[None]:
        """Takes note, in the program's process, that the program is over and selftime goes on."""
        try:
            yield
        finally:
            if os.getpid() == self.process:  # not in a process that the program forked
                self._state[0] = _RETURNED

    def end_as_interrupted(self) -> None:
        """Has the command end by SIGINT, as Python does, once this process has ended."""
        if os.getpid() == self.process:
            self._state[0] = _INTERRUPTED

    @property
    def has_returned(self) -> bool:
        """Returns whether the program was over, and selftime itself went on to answer."""
        return self._state[0] != _RUNNING

    def wait(self) -> int:
        """Waits for the process's end, and passes signals on to it; returns its wait status."""
        assert self._group_signals is not None  # noqa: S101 - it has been forked
        while True:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                self._group_signals.end()
                return status
            told = signal.sigwaitinfo(self._forwarded | {signal.SIGCHLD})
            if told.si_signo == signal.SIGCHLD:
                continue
            is_terminals = told.si_code > 0
            self.is_group_signalled = is_terminals or self._group_signals.has_come_to_group(
                told.si_signo
            )
            if not self.is_group_signalled:
                with suppress(ProcessLookupError):
                    os.kill(self.process, told.si_signo)

    def forget_signals(self) -> None:
        """Takes the signals that came with the program's end for those that ended it."""
        while signal.sigtimedwait(self._forwarded, 0) is not None:
            pass

    @property
    def is_signalled(self) -> bool:
        """Returns whether a signal has come since: the command is to end at once."""
        return bool(signal.sigpending() & self._forwarded)

    def end_alike(self, status: int) -> NoReturn:
        """Ends this process as the program's process ended, given its wait status."""
        sys.stdout.flush()
        sys.stderr.flush()
        if os.WIFSIGNALED(status):
            die_by_signal(os.WTERMSIG(status))
        if self._state[0] == _INTERRUPTED:
            die_by_signal(signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._previous_mask)
        raise SystemExit(os.WEXITSTATUS(status))


def die_by_signal(number: int) -> NoReturn:
    """Ends this process by a signal, without a file of its memory: the program left its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    with suppress(OSError, ValueError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def how_it_ended(status: int) -> str:
    """Returns how a process ended that did not return to Python, given its wait status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with suppress(ValueError):
            return f"ended by {signal.Signals(number).name}"
        return f"ended by signal {number}"
    return f"ended with status {os.WEXITSTATUS(status)}, without Python's own end"
