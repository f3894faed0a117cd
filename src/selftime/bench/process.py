"""Run a program once in its own process group, and end all of its processes.

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
from selftime.capture.timing.order import (
    StepTimes,
    ordered,
    read_reasons,
    read_times,
    unordered,
)
from selftime.errors import UsageError

GRACE_S: Final = 3.0
"""Seconds that a process group has after SIGTERM before it is killed."""
_LOOK_S: Final = 0.02
_TAIL: Final = 64 << 10
"""Bytes at the end of stderr that are read."""
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class BenchedProgram:
    """A script, a module after `-m`, or a command, with its arguments."""

    words: tuple[str, ...]

    @classmethod
    def of_text(cls, text: str) -> "BenchedProgram":
        """Returns the program in a string: `train.py --workers 4` or `-m package.train`."""
        try:
            return cls.of_words(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"`{text[:60]}` is not a command line: {error}") from error

    @classmethod
    def of_words(cls, words: list[str]) -> "BenchedProgram":
        """Returns the program; raises a UsageError if there is nothing to run."""
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
        """The command as a user would type it."""
        return shlex.join(self.words)

    @property
    def command(self) -> list[str]:
        """The command line: scripts and modules run with this Python."""
        name = self.words[0]
        if name == "-m" or not is_command(name):
            return [sys.executable, *self.words]
        # A file in the working folder needs a path: a bare name is searched for in PATH only.
        first = os.path.join(os.curdir, name) if Path(name).is_file() else name  # noqa: PTH118 - `pathlib` drops the leading dot
        return [first, *self.words[1:]]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of one run of a program."""

    status: int
    """The exit status; negative for the signal that ended the program."""
    seconds: float
    """Seconds from start to end, including Python's startup and shutdown."""
    is_late: bool
    """Whether it was ended because its time was up."""
    last_words: str
    """The last line of its stderr; empty if there is none."""
    steps: tuple[StepTimes, ...] = ()
    """Step times of each process that made steps."""
    reasons: tuple[str, ...] = ()
    """Reasons why some of its processes could not be timed."""


def run_once(program: BenchedProgram, *, timed: bool, seconds: float | None = None) -> RunOutcome:
    """Run a program to its end.

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
        environment = ordered(os.environ, folder) if timed else unordered(os.environ)
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
        with _ended_on_exit(process), _time_limit(seconds, process, late):
            status = process.wait()
            took = time.perf_counter() - began
        steps, reasons = read_times(folder), read_reasons(folder)
        return RunOutcome(status, took, late.is_set(), _last_line(words), steps, reasons)


@contextmanager
def _time_limit(
    seconds: float | None, process: "subprocess.Popen[bytes]", late: threading.Event
) -> Iterator[None]:
    """End the program after a time limit; `wait` with a limit would poll every 50 ms."""
    if seconds is None:
        yield
        return

    def end() -> None:
        late.set()
        _send(process, signal.SIGTERM)
        if not done.wait(GRACE_S):
            _send(process, _KILL)

    done = threading.Event()
    timer = threading.Timer(max(seconds, 0.0), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()


@contextmanager
def _ended_on_exit(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """End the whole program when the wait ends, also by Ctrl-C or SIGTERM."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, stop) for number in _SIGNALS}
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # Polars installs a handler below Python's, after which the wait would resume.
            signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        try:
            _end_group(process)
        except BaseException:  # a second signal: kill at once
            _send(process, _KILL)
            raise
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Terminate the rest of the process group, then kill it."""
    until = time.monotonic() + GRACE_S
    _send(process, signal.SIGTERM)
    while _is_alive(process):
        if time.monotonic() > until:
            _send(process, _KILL)
            break
        time.sleep(_LOOK_S)
    process.wait()


def _is_alive(process: "subprocess.Popen[bytes]") -> bool:
    if process.poll() is None:
        return True
    if not hasattr(os, "killpg"):
        return False
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _send(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Send a signal to the program and to the processes left in its group."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)  # the group has the program's number, and outlives it
        elif process.poll() is None:
            process.send_signal(number)


def _last_line(words: IO[bytes]) -> str:
    words.seek(max(0, words.seek(0, os.SEEK_END) - _TAIL))
    lines = words.read().decode(errors="replace").replace("\r", "\n").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
