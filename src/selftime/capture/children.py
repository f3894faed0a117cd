"""Whether a program starts processes of its own that run Python; they are not recorded yet."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selftime.capture.after_import import after_import

__all__ = ["Children"]


class Children:
    """Sees forks, `multiprocessing`, and commands that run Python, as launchers start them."""

    def __init__(self) -> None:
        self.started = False

    def watch(self) -> None:
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_parent=self._see)
        after_import("multiprocessing.process", self._watch_processes)
        subprocess.Popen.__init__ = self._before(  # type: ignore[method-assign]  # the purpose
            subprocess.Popen.__init__, _runs_python
        )

    def beside(self) -> str:
        """What to add where nothing was found in this process."""
        return "; processes that it starts are not recorded yet" if self.started else ""

    def _watch_processes(self) -> None:
        process: Any = sys.modules["multiprocessing.process"]
        process.BaseProcess.start = self._before(process.BaseProcess.start, lambda *_: True)

    def _before(self, original: Any, counts: Callable[..., bool]) -> Any:
        @functools.wraps(original)
        def wrapper(self_: Any, *args: Any, **kwargs: Any) -> Any:
            if counts(*args, **kwargs):
                self._see()
            return original(self_, *args, **kwargs)

        return wrapper

    def _see(self) -> None:
        self.started = True


def _runs_python(args: object = (), *_rest: object, **_options: object) -> bool:
    command = args[0] if isinstance(args, list | tuple) and args else args
    if not isinstance(command, str | os.PathLike):
        return False
    return str(command) == sys.executable or Path(command).name.startswith("python")
