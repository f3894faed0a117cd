"""Runs a program once in a process group of its own, and ends all processes of the group.

Its output is discarded, so that no terminal slows it down and ours stays clean; the end of its
stderr is kept for error messages.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final

from selftime.capture.program.command import is_command
from selftime.capture.timing.step_times import (
    StepTimes,
    read_failure_reasons,
    read_step_times,
    timing_environment,
    untimed_environment,
)
from selftime.errors import UsageError

SIGTERM_GRACE_S: Final = 3.0
"""Seconds between SIGTERM and SIGKILL to a program's process group that does not end."""
_PROCESS_POLL_INTERVAL_S: Final = 0.02
_STDERR_BYTES_SEARCHED_FOR_LAST_LINE: Final = 64 << 10
"""Number of bytes at the end of a program's stderr in which its last line is searched."""
_TERMINATION_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_KILL_SIGNAL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class BenchedProgram:
    """The command line of a program to time: a script, a module after `-m`, or a command."""

    words: tuple[str, ...]

    @classmethod
    def from_command_line(cls, text: str) -> "BenchedProgram":
        """Parses a command line such as `train.py --workers 4` or `-m package.train`."""
        try:
            return cls.from_words(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"`{text[:60]}` is not a command line: {error}") from error

    @classmethod
    def from_words(cls, words: list[str]) -> "BenchedProgram":
        """Returns the program that the words name; raises a UsageError if there is none."""
        if not words or words == ["-m"]:
            raise UsageError("there is no program to run; name a script, or a module after `-m`")
        name = words[0]
        is_module = name == "-m"
        if name.startswith("-") and not is_module:
            raise UsageError(f"`{name[:60]}` is not a program; begin with a script, or with `-m`")
        if not is_module and not is_command(name) and not Path(name).exists():
            raise UsageError(f"the script `{name[:200]}` does not exist; check the path")
        return cls(tuple(words))

    @property
    def label(self) -> str:
        """Returns the program's command line as a user would type it."""
        return shlex.join(self.words)

    @property
    def command(self) -> list[str]:
        """Returns the arguments for `Popen`; scripts and modules run in this Python interpreter."""
        name = self.words[0]
        if name == "-m" or not is_command(name):
            return [sys.executable, *self.words]
        # A file in the working folder needs a path: a bare name is searched for in PATH only.
        first = os.path.join(os.curdir, name) if Path(name).is_file() else name  # noqa: PTH118 - `pathlib` drops the leading dot
        return [first, *self.words[1:]]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Result of one run of a program: exit status, duration, step times, last line of stderr."""

    status: int
    """Exit status of the program; the negative signal number if a signal ended it."""
    seconds: float
    """Duration from start to end in seconds, including Python's startup and shutdown."""
    is_late: bool
    """Whether the program was ended because it exceeded the time limit."""
    last_stderr_line: str
    """Last line that the program wrote to stderr; empty if it wrote nothing."""
    steps: tuple[StepTimes, ...] = ()
    """Step times of each of the program's processes that made steps."""
    reasons_without_times: tuple[str, ...] = ()
    """One sentence for each process of the program that could not be timed, with the reason."""


def run_program_once(
    program: BenchedProgram, *, timed: bool, seconds: float | None = None
) -> RunOutcome:
    """Runs a program to its end or a time limit, and returns how it ended.

    Args:
        program: The program; it gets no input.
        timed: Whether to time its steps; otherwise it runs unchanged.
        seconds: The time limit.
    """
    with (
        tempfile.TemporaryDirectory(prefix="selftime-bench-", ignore_cleanup_errors=True) as name,
        tempfile.TemporaryFile() as words,
    ):
        folder = Path(name)
        environment = (
            timing_environment(os.environ, folder) if timed else untimed_environment(os.environ)
        )
        began = time.perf_counter()
        try:
            process = subprocess.Popen(  # noqa: S603 - running the user's program is the purpose
                program.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"`{program.words[0][:200]}` cannot be run: {error.strerror or error}; "
                "check what it is"
            ) from None
        late = threading.Event()
        with (
            _end_program_at_end_of_block(process),
            _end_program_after_time_limit(seconds, process, late),
        ):
            status = process.wait()
            took = time.perf_counter() - began
        steps, reasons = read_step_times(folder), read_failure_reasons(folder)
        return RunOutcome(status, took, late.is_set(), _last_stderr_line(words), steps, reasons)


@contextmanager
def _end_program_after_time_limit(
    seconds: float | None, process: "subprocess.Popen[bytes]", is_late: threading.Event
) -> Iterator[None]:
    """Ends a program that runs longer than `seconds`, and sets the event `is_late`."""
    if seconds is None:
        yield
        return

    def end_program() -> None:
        is_late.set()
        _send_signal_to_process_group(process, signal.SIGTERM)
        if not done.wait(SIGTERM_GRACE_S):
            _send_signal_to_process_group(process, _KILL_SIGNAL)

    done = threading.Event()
    timer = threading.Timer(max(seconds, 0.0), end_program)  # `wait` with a limit would poll
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()


@contextmanager
def _end_program_at_end_of_block(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Ends a program's process group at the end of a `with` block, even after Ctrl-C."""

    def exit_on_signal(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, exit_on_signal) for number in _TERMINATION_SIGNALS}
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # Polars installs a handler below Python's, after which the wait would resume.
            signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        try:
            _end_process_group(process)
        except BaseException:  # a second signal: kill at once
            _send_signal_to_process_group(process, _KILL_SIGNAL)
            raise
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _end_process_group(process: "subprocess.Popen[bytes]") -> None:
    """Ends a program's process group with SIGTERM, and after `SIGTERM_GRACE_S` with SIGKILL."""
    until = time.monotonic() + SIGTERM_GRACE_S
    _send_signal_to_process_group(process, signal.SIGTERM)
    while _is_process_group_alive(process):
        if time.monotonic() > until:
            _send_signal_to_process_group(process, _KILL_SIGNAL)
            break
        time.sleep(_PROCESS_POLL_INTERVAL_S)
    process.wait()


def _is_process_group_alive(process: "subprocess.Popen[bytes]") -> bool:
    if process.poll() is None:
        return True
    if not hasattr(os, "killpg"):
        return False
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _send_signal_to_process_group(process: "subprocess.Popen[bytes]", signal_number: int) -> None:
    """Sends a signal to a program and to the processes left in its process group."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(
                process.pid, signal_number
            )  # the group has the program's number, and outlives it
        elif process.poll() is None:
            process.send_signal(signal_number)


def _last_stderr_line(stderr_file: IO[bytes]) -> str:
    stderr_file.seek(
        max(0, stderr_file.seek(0, os.SEEK_END) - _STDERR_BYTES_SEARCHED_FOR_LAST_LINE)
    )
    lines = stderr_file.read().decode(errors="replace").replace("\r", "\n").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
