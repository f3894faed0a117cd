"""Runs a program as a child process: a launcher, a shell script or another executable.

It is run as the shell would run it. The Python processes that it starts are recorded.
"""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from selftime.errors import UsageError

_SIGNALS_FORWARDED_TO_PROGRAM: Final = (
    (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)
)
"""Signals to selftime's process that it sends on to the program."""

_ELF_MAGIC: Final = b"\x7fELF"
_SHEBANG_PREFIX: Final = b"#!"


class ProgramCommand:
    """A command to be run as a child process (Python programs run in this process instead)."""

    user_packages: tuple[str, ...] = ()

    def __init__(self, target: str, args: Sequence[str]) -> None:
        # Add `./` to a file in the working folder, since bare names are searched for on PATH.
        first = os.path.join(os.curdir, target) if Path(target).is_file() else target  # noqa: PTH118 - `pathlib` drops `./`
        self.command_line = [first, *args]
        self.signal: int | None = None
        """Number of the signal that ended the command; None if none did."""
        self.last_signal: int | None = None
        """Number of the last signal that was passed on to the command; None if none was."""

    def run(self, on_end: Callable[[BaseException | None], None]) -> int:
        """Runs the command to its end; returns its exit status.

        Returns the exit status, for a signal 128 plus its number as in shells.

        Raises:
            UsageError: The command cannot be run.
        """
        try:
            process = subprocess.Popen(self.command_line)  # noqa: S603 - runs the user's program
        except OSError as error:
            name, why = self.command_line[0], error.strerror or error
            raise UsageError(f"`{name}` cannot be run: {why}; check what it is") from None
        with self._forward_signals(process):
            status = process.wait()
        self.signal = -status if status < 0 else None
        on_end(None)
        return status if status >= 0 else 128 - status

    @property
    def early_end(self) -> str | None:
        """Returns how the command was ended; None if it ended by itself."""
        number = self.signal or self.last_signal
        return None if number is None else f"ended by {signal.Signals(number).name}"

    @contextmanager
    def _forward_signals(self, process: "subprocess.Popen[Any]") -> Iterator[None]:
        """Sends signals on to the program; ignores Ctrl-C, which the terminal sends to both."""

        def send_to_program(number: int, _frame: FrameType | None) -> None:
            self.last_signal = number
            process.send_signal(number)

        def ignore_interrupt(_number: int, _frame: FrameType | None) -> None:
            pass

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {
            number: signal.signal(number, send_to_program)
            for number in _SIGNALS_FORWARDED_TO_PROGRAM
        }
        previous[signal.SIGINT] = signal.signal(signal.SIGINT, ignore_interrupt)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def is_command(target: str) -> bool:
    """Returns whether the operating system can execute the file directly, without Python.

    Raises:
        UsageError: Neither can.
    """
    path = Path(target)
    if path.is_dir() and (path / "__main__.py").exists():
        return False
    if not path.is_file():
        return os.sep not in target and shutil.which(target) is not None
    if path.suffix in (".py", ".pyw", ".pyc", ".pyz"):
        return False
    with path.open("rb") as file:
        line = file.readline(200)
    if not line.startswith((_ELF_MAGIC, _SHEBANG_PREFIX)):
        return False
    if os.access(path, os.X_OK):
        return True
    if line.startswith(_SHEBANG_PREFIX) and b"python" not in line:
        interpreter = line[2:].split()[-1].decode(errors="replace") if line[2:].split() else "sh"
        raise UsageError(
            f"`{target}` is no Python program and may not be executed; "
            f"write `selftime run {Path(interpreter).name} {target}`"
        )
    return False
