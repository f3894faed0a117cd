"""An unmodified program, run in this process as `python SCRIPT` or `python -m MODULE` runs it."""

import builtins
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Final

from selftime.capture.program import main_code
from selftime.capture.program.main_code import NotRunnable
from selftime.errors import UsageError

INTERRUPTED: Final = 130
"""The status of a program that Ctrl-C ended, by the shells' convention."""


class Program:
    """A script or a module with its arguments."""

    def __init__(self, target: str, args: Sequence[str], *, module: bool) -> None:
        self.target = target
        self.args = list(args)
        self.module = module
        self._is_importable = not module and main_code.is_importable(target)
        """Whether it is a folder or an archive, out of which Python runs `__main__`."""
        if module:
            if not all(part.isidentifier() for part in target.split(".")):
                raise UsageError(f"`{target}` is not a module's name; write it as `package.module`")
            if not _is_there(target.partition(".")[0]):
                raise UsageError(f"there is no module `{target}`; check its name and this folder")
        elif not self._is_importable and not Path(target).is_file():
            raise UsageError(f"the script `{target}` does not exist; check the path")
        self.own_code: tuple[str, ...] = ()
        """The installed package that the program is part of: the user's code for once."""

    def run(self, ending: Callable[[BaseException | None], None]) -> int:
        """Run to the end and return the program's status; `ending` is told how, before a word."""
        try:
            self._execute()
        except SystemExit as stop:
            ending(stop)
            return _status(stop.code)
        except NotRunnable:
            ending(None)
            raise
        except BaseException as error:  # noqa: BLE001 - the program's own, shown as Python shows it
            ending(error)
            trace = _own_frames(error.__traceback__)
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        ending(None)
        return 0

    def _execute(self) -> None:
        self._set_first_path()
        sys.argv[:] = [self.target, *self.args]
        main = ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        if sys.version_info < (3, 14):  # from then on they are made when they are asked for
            main.__annotations__ = {}
        if self.module:
            sys.argv[0] = "-m"  # as Python has it while it looks for the module
            code, self.own_code = main_code.of_module(self.target, main)
            sys.argv[0] = main.__file__ or self.target
        elif self._is_importable:
            code = main_code.of_importable(sys.path[0], main)
        else:
            code = main_code.of_file(self.target, main)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)  # noqa: S102 - running the user's program is the purpose

    def _set_first_path(self) -> None:
        safe = getattr(sys.flags, "safe_path", False)
        if self._is_importable:  # its own folder is what Python puts there, safe or not
            sys.path[: 0 if safe else 1] = [os.path.join(Path.cwd(), self.target)]  # noqa: PTH118 - a last slash stays, as Python keeps it
        elif not safe:
            sys.path[0] = str(Path.cwd() if self.module else Path(self.target).resolve().parent)


def _is_there(name: str) -> bool:
    """Whether a module could be imported from the working folder; nothing is."""
    spec = PathFinder.find_spec(name, [str(Path.cwd()), *sys.path])
    return spec is not None or find_spec(name) is not None


def _status(code: object) -> int:
    """The exit status that Python makes of what `sys.exit` was given."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    sys.stderr.write(f"{code}\n")
    return 1


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the program's first frame on, without those that started it."""
    ours = str(Path(__file__).parent) + os.sep
    outside = trace
    while outside is not None and outside.tb_frame.f_code.co_filename.startswith(ours):
        outside = outside.tb_next
    return outside
