"""A program that is not run in this process: a launcher, a shell script, any command.

It runs as the shell would run it. The Python processes that it starts are recorded.
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

_PASSED_ON: Final = (
    (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)
)
"""Signals that are sent to a process alone, and are meant for the program."""

_ELF: Final = b"\x7fELF"
_SHEBANG: Final = b"#!"


class Command:
    """Words that the system runs; `own_code` is empty, for nothing of it runs here."""

    own_code: tuple[str, ...] = ()

    def __init__(self, target: str, args: Sequence[str]) -> None:
        # A file in the working folder is run by a path: a bare name is looked for elsewhere.
        self.words = [os.path.join(os.curdir, target) if Path(target).is_file() else target, *args]  # noqa: PTH118 - `pathlib` drops the leading dot

    def run(self, ending: Callable[[BaseException | None], None]) -> int:
        """Run to the end and return the status; where a signal ended it, by the shells' rule."""
        try:
            process = subprocess.Popen(self.words)  # noqa: S603 - running the user's program is the purpose
        except OSError as error:
            raise UsageError(
                f"`{self.words[0]}` cannot be run: {error.strerror or error}; check what it is"
            ) from None
        with _passing_signals_on(process):
            status = process.wait()
        ending(None)
        return status if status >= 0 else 128 - status


def is_command(target: str) -> bool:
    """Whether the system runs it, rather than Python; a UsageError if neither can."""
    path = Path(target)
    if path.is_dir() and (path / "__main__.py").exists():
        return False
    if not path.is_file():
        return os.sep not in target and shutil.which(target) is not None
    if path.suffix in (".py", ".pyw", ".pyc", ".pyz"):
        return False
    with path.open("rb") as file:
        line = file.readline(200)
    if not line.startswith((_ELF, _SHEBANG)):
        return False
    if os.access(path, os.X_OK):
        return True
    if line.startswith(_SHEBANG) and b"python" not in line:
        interpreter = line[2:].split()[-1].decode(errors="replace") if line[2:].split() else "sh"
        raise UsageError(
            f"`{target}` is no Python program and may not be executed; "
            f"write `selftime run {Path(interpreter).name} {target}`"
        )
    return False


@contextmanager
def _passing_signals_on(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """Let the program decide what ends it: Ctrl-C reaches it anyway, and the rest is sent on."""

    def send(number: int, _frame: FrameType | None) -> None:
        process.send_signal(number)

    def wait(_number: int, _frame: FrameType | None) -> None:
        pass

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, send) for number in _PASSED_ON}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
