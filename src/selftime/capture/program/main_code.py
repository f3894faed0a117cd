"""Finds the code that Python would run as `__main__` for a file, folder, archive or module.

Each function sets the attributes of the module `__main__`, and returns its code. Exceptions of the
program's own code are not caught.
"""

import io
import os
import pkgutil
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER, find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from selftime.errors import UsageError

_PYC_MAGIC: Final = MAGIC_NUMBER[:2]
"""First bytes of a file of compiled Python code, by which Python recognises it without the
suffix `.pyc`."""


class ProgramNotRunnable(UsageError):  # noqa: N818 - reads better without `Error`
    """Raised if a script, folder, archive or module has no code to run."""


def is_importable(path: str) -> bool:
    """Returns whether a path is a folder or zip archive from which modules can be imported."""
    return pkgutil.get_importer(path) is not None


def code_of_file(target: str, main: ModuleType) -> CodeType:
    """Returns the code of a script or of a compiled `.pyc` file."""
    path = os.path.abspath(target)  # noqa: PTH100 - keeps links, as Python does
    main.__file__ = path
    main.__dict__["__cached__"] = None
    if _is_compiled_python_file(path):
        loader = SourcelessFileLoader("__main__", path)
        main.__loader__ = loader
        return _code_from_loader(loader, "__main__", path)
    main.__loader__ = SourceFileLoader("__main__", path)
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def code_of_importable(path: str, main: ModuleType) -> CodeType:
    """Returns the code of the module `__main__` in a folder or zip archive.

    Raises:
        ProgramNotRunnable: It has none.
    """
    importer = pkgutil.get_importer(path)
    spec = None if importer is None else importer.find_spec("__main__")
    if spec is None:
        kind = "a folder" if Path(path).is_dir() else "an archive"
        raise ProgramNotRunnable(
            f"`{path}` is {kind} that cannot be run: it has no `__main__`; name a script, "
            "or a module with `-m`"
        )
    _set_main_module_attributes(main, spec)
    return _code_from_loader(spec.loader, spec.name, path)


def code_of_module(target: str, main: ModuleType) -> tuple[CodeType, tuple[str, ...]]:
    """Returns (code of a module or of a package's `__main__`, folders of the package).

    Raises:
        ProgramNotRunnable: It does not exist or cannot be run.
    """
    folders: tuple[str, ...] = ()
    spec = _find_module_spec(target)
    if spec is None:
        raise ProgramNotRunnable(f"there is no module `{target}`; check its name and this folder")
    if spec.submodule_search_locations is not None:
        folders = tuple(spec.submodule_search_locations)
        spec = _find_module_spec(f"{target}.__main__")
    if spec is None:
        raise ProgramNotRunnable(
            f"`{target}` is a package that cannot be run: it has no `__main__`; "
            "name one of its modules"
        )
    code = _code_from_loader(spec.loader, spec.name, target)
    package = sys.modules.get(spec.name.partition(".")[0])
    if package is not None and package.__spec__ is not None:
        folders = tuple(package.__spec__.submodule_search_locations or ())
    _set_main_module_attributes(main, spec)
    return code, folders


def _find_module_spec(name: str) -> ModuleSpec | None:
    """Returns a module's import spec, after importing its parent packages; None if not found."""
    try:
        return find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # raised by an import inside the package
        return None


def _code_from_loader(loader: object, name: str, where: str) -> CodeType:
    get_code = getattr(loader, "get_code", None)
    code: CodeType | None = None if get_code is None else get_code(name)
    if code is None:
        raise ProgramNotRunnable(
            f"`{where}` has no Python code to run; name another module or script"
        )
    return code


def _set_main_module_attributes(main: ModuleType, spec: ModuleSpec) -> None:
    main.__spec__, main.__loader__, main.__package__ = spec, spec.loader, spec.parent
    main.__file__ = spec.origin
    main.__dict__["__cached__"] = spec.cached


def _is_compiled_python_file(path: str) -> bool:
    if path.endswith(".pyc"):
        return True
    with io.open_code(path) as file:
        return bool(file.read(len(_PYC_MAGIC)) == _PYC_MAGIC)
