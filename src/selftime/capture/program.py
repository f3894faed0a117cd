"""An unmodified program, run in this process as `python SCRIPT` or `python -m MODULE` runs it."""

import builtins
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Final

from selftime.errors import UsageError

__all__ = ["Program"]

INTERRUPTED: Final = 130
"""The status of a program that Ctrl-C ended, by the shells' convention."""


class Program:
    """A script or a module with its arguments."""

    def __init__(self, target: str, args: Sequence[str], *, module: bool) -> None:
        self.target = target
        self.args = list(args)
        self.module = module
        if module:
            if not all(part.isidentifier() for part in target.split(".")):
                raise UsageError(f"`{target}` is not a module's name; write it as `package.module`")
            if not _is_there(target.partition(".")[0]):
                raise UsageError(f"there is no module `{target}`; check its name and this folder")
        elif Path(target).is_dir():
            raise UsageError(f"`{target}` is a folder; name the script in it, or use `-m MODULE`")
        elif not Path(target).is_file():
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
        except BaseException as error:  # noqa: BLE001 - the program's own, shown as Python shows it
            ending(error)
            trace = _own_frames(error.__traceback__)
            sys.excepthook(type(error), error.with_traceback(trace), trace)
            return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        ending(None)
        return 0

    def _execute(self) -> None:
        safe = getattr(sys.flags, "safe_path", False)
        if not safe:
            folder = Path.cwd() if self.module else Path(self.target).resolve().parent
            sys.path[0] = str(folder)
        sys.argv[:] = [self.target, *self.args]
        main = ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        if sys.version_info < (3, 14):  # from then on they are made when they are asked for
            main.__annotations__ = {}
        code = self._module(main) if self.module else self._script(main)
        sys.modules["__main__"] = main
        exec(code, main.__dict__)  # noqa: S102 - running the user's program is the purpose

    def _script(self, main: ModuleType) -> CodeType:
        path = os.path.abspath(self.target)  # noqa: PTH100 - links stay, as Python keeps them
        main.__file__ = path
        main.__dict__["__cached__"] = None
        main.__loader__ = SourceFileLoader("__main__", path)
        with io.open_code(path) as file:
            return compile(file.read(), path, "exec", dont_inherit=True)

    def _module(self, main: ModuleType) -> CodeType:
        sys.argv[0] = "-m"  # as Python has it while it looks for the module
        spec = find_spec(self.target)
        if spec is not None and spec.submodule_search_locations is not None:
            self.own_code = tuple(spec.submodule_search_locations)
            spec = find_spec(f"{self.target}.__main__")
        code: CodeType | None = None
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "get_code"):
            code = spec.loader.get_code(spec.name)
        if spec is None or code is None:
            raise ModuleNotFoundError(f"No module named {self.target!r} that can be run")
        package = sys.modules.get(spec.name.partition(".")[0])
        if package is not None and package.__spec__ is not None:
            self.own_code = tuple(package.__spec__.submodule_search_locations or ())
        main.__spec__, main.__loader__, main.__package__ = spec, spec.loader, spec.parent
        main.__file__ = spec.origin
        main.__dict__["__cached__"] = spec.cached
        sys.argv[0] = spec.origin or self.target
        return code


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
