"""What Python executes as `__main__` when it is given a file, a folder, an archive or a module.

Each function fills in what the module `__main__` knows of itself, and returns its code. What cannot
be run is a `NotRunnable`; what the program's own code raises on the way is left as it is.
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

_MAGIC: Final = MAGIC_NUMBER[:2]
"""What Python tells compiled code by where the name does not."""


class NotRunnable(UsageError):  # noqa: N818 - reads as what was found
    """There is no code to run where the command says."""


def is_importable(path: str) -> bool:
    """Whether modules can be imported from it, as from a folder or a zip archive."""
    return pkgutil.get_importer(path) is not None


def of_file(target: str, main: ModuleType) -> CodeType:
    """The code of a script, or of a file of compiled code."""
    path = os.path.abspath(target)  # noqa: PTH100 - links stay, as Python keeps them
    main.__file__ = path
    main.__dict__["__cached__"] = None
    if _is_compiled(path):
        loader = SourcelessFileLoader("__main__", path)
        main.__loader__ = loader
        return _code(loader, "__main__", path)
    main.__loader__ = SourceFileLoader("__main__", path)
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def of_importable(path: str, main: ModuleType) -> CodeType:
    """The code of `__main__` in a folder or an archive."""
    importer = pkgutil.get_importer(path)
    spec = None if importer is None else importer.find_spec("__main__")
    if spec is None:
        kind = "a folder" if Path(path).is_dir() else "an archive"
        raise NotRunnable(
            f"`{path}` is {kind} that cannot be run: it has no `__main__`; name a script, "
            "or a module with `-m`"
        )
    _describe(main, spec)
    return _code(spec.loader, spec.name, path)


def of_module(target: str, main: ModuleType) -> tuple[CodeType, tuple[str, ...]]:
    """The code of a module or of a package's `__main__`, and the folders of its package."""
    folders: tuple[str, ...] = ()
    spec = _found(target)
    if spec is None:
        raise NotRunnable(f"there is no module `{target}`; check its name and this folder")
    if spec.submodule_search_locations is not None:
        folders = tuple(spec.submodule_search_locations)
        spec = _found(f"{target}.__main__")
    if spec is None:
        raise NotRunnable(
            f"`{target}` is a package that cannot be run: it has no `__main__`; "
            "name one of its modules"
        )
    code = _code(spec.loader, spec.name, target)
    package = sys.modules.get(spec.name.partition(".")[0])
    if package is not None and package.__spec__ is not None:
        folders = tuple(package.__spec__.submodule_search_locations or ())
    _describe(main, spec)
    return code, folders


def _found(name: str) -> ModuleSpec | None:
    """The module's spec; the packages around it are imported."""
    try:
        return find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the package is there, and misses something else
        return None


def _code(loader: object, name: str, where: str) -> CodeType:
    get_code = getattr(loader, "get_code", None)
    code: CodeType | None = None if get_code is None else get_code(name)
    if code is None:
        raise NotRunnable(f"`{where}` has no Python code to run; name another module or script")
    return code


def _describe(main: ModuleType, spec: ModuleSpec) -> None:
    main.__spec__, main.__loader__, main.__package__ = spec, spec.loader, spec.parent
    main.__file__ = spec.origin
    main.__dict__["__cached__"] = spec.cached


def _is_compiled(path: str) -> bool:
    if path.endswith(".pyc"):
        return True
    with io.open_code(path) as file:
        return bool(file.read(len(_MAGIC)) == _MAGIC)
