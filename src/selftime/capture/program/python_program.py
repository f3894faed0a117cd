"""Runs an unchanged program in this process, as `python SCRIPT` or `python -m` does."""

import builtins
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from selftime.capture.program import main_code
from selftime.capture.program.main_code import ProgramNotRunnable
from selftime.capture.program.own_frames import hide_own_frames
from selftime.capture.program.removed_modules import restore_removed_modules
from selftime.errors import UsageError

INTERRUPTED_EXIT_STATUS: Final = 130
"""Exit status of a program that Ctrl-C ended, as shells define it."""


class PythonProgram:
    """A Python script or module to run in this process, with its arguments."""

    early_end: str | None = None
    """How it was ended; the reports of its process say that."""

    def __init__(self, target: str, args: Sequence[str], *, module: bool) -> None:
        self.target = target
        self.args = list(args)
        self.module = module
        self._is_importable = not module and main_code.is_importable(target)
        """Whether the program is a folder or zip archive, whose module `__main__` is run."""
        if module:
            if not all(part.isidentifier() for part in target.split(".")):
                raise UsageError(f"`{target}` is not a module's name; write it as `package.module`")
            if not _can_module_be_imported(target.partition(".")[0]):
                raise UsageError(f"there is no module `{target}`; check its name and this folder")
        elif not self._is_importable and not Path(target).is_file():
            raise UsageError(f"the script `{target}` does not exist; check the path")
        self.user_packages: tuple[str, ...] = ()
        """Folders of the installed package that contains the program; their code counts as the
        user's."""
        self.signal: int | None = None
        """Number of the signal by which Python would end: SIGINT after Ctrl-C, else None."""

    def run(self, on_end: Callable[[BaseException | None], None]) -> int:
        """Runs the program to its end; returns its exit status.

        `on_end` is called with the program's exception, or None, before that is printed.

        Raises:
            ProgramNotRunnable: The target has no code to run.
        """

        def end(error: BaseException | None) -> None:
            restore_removed_modules()
            on_end(error)

        try:
            self._execute_program()
        except SystemExit as stop:
            end(stop)
            return _exit_status_of(stop.code)
        except ProgramNotRunnable:
            end(None)
            raise
        except BaseException as error:  # noqa: BLE001 - the program's own, printed as Python does
            end(error)
            hide_own_frames(error)
            if (status := _print_by_excepthook(error)) is not None:
                return status
            if not isinstance(error, KeyboardInterrupt):
                return 1
            self.signal = signal.SIGINT
            return INTERRUPTED_EXIT_STATUS
        end(None)
        return 0

    def _execute_program(self) -> None:
        self._set_first_import_path()
        sys.argv[:] = [self.target, *self.args]
        main = ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        if sys.version_info < (3, 14):  # later versions create it on access
            main.__annotations__ = {}
        if self.module:
            sys.argv[0] = "-m"  # as in Python during the search for the module
            code, self.user_packages = main_code.code_of_module(self.target, main)
            sys.argv[0] = main.__file__ or self.target
        elif self._is_importable:
            code = main_code.code_of_importable(sys.path[0], main)
        else:
            code = main_code.code_of_file(self.target, main)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)  # noqa: S102 - runs the user's program

    def _set_first_import_path(self) -> None:
        safe = getattr(sys.flags, "safe_path", False)
        if self._is_importable:  # Python inserts the folder itself, even in safe mode
            sys.path[: 0 if safe else 1] = [os.path.join(Path.cwd(), self.target)]  # noqa: PTH118 - keeps a trailing slash, as Python does
        elif not safe:
            sys.path[0] = str(Path.cwd() if self.module else Path(self.target).resolve().parent)


def _can_module_be_imported(name: str) -> bool:
    """Returns whether a module can be found on the import path, without importing it."""
    spec = PathFinder.find_spec(name, [str(Path.cwd()), *sys.path])
    return spec is not None or find_spec(name) is not None


def _print_by_excepthook(error: BaseException) -> int | None:
    """Prints an exception as Python does; returns an exit status if the program's hook set one."""
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as stop:
        return _exit_status_of(stop.code)
    except BaseException as failure:  # noqa: BLE001 - the program's own, printed as Python does
        if failure.__context__ is error:  # only because it is being handled here
            failure.__context__ = None
        hide_own_frames(failure)
        for heading, one in (
            ("Error in sys.excepthook:\n", failure),
            ("\nOriginal exception was:\n", error),
        ):
            if sys.stderr is not None:
                sys.stderr.write(heading)
            sys.__excepthook__(type(one), one, one.__traceback__)
    return None


def _exit_status_of(code: object) -> int:
    """Returns the exit status for an argument of `sys.exit`; prints a text argument to stderr."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    sys.stderr.write(f"{code}\n")
    return 1
