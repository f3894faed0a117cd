"""Which recorded frames are the user's own code, and where their files lie.

The recorder cuts the entries of `sys.path` off file names. They are put back here, first by the
modules that are loaded, then by what exists on disk.
"""

# ruff: noqa: PTH100, PTH113, PTH117, PTH118, PTH120, PTH206 - names are text, cut by the recorder

import linecache
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import ModuleType

import selftime

PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})
NOTEBOOK = "<ipython-input"


def path_prefixes() -> list[str]:
    """The folders that imports start from, absolute, longest first."""
    return sorted(_absolute(sys.path), key=lambda folder: (-len(folder), folder))


def _absolute(entries: Iterable[object]) -> set[str]:
    """The entries that name a folder, absolute: a program may put there what it likes."""
    folders = set()
    for entry in entries:
        if isinstance(entry, str):
            with suppress(OSError):  # a relative one, and the working folder was removed
                folders.add(os.path.abspath(entry))
    return folders


@contextmanager
def readable_path() -> Iterator[None]:
    """Leave out of `sys.path` for a moment what the recorder, which reads it, would fail at."""
    theirs = list(sys.path)
    readable = [entry for entry in theirs if _absolute([entry])]
    if len(readable) < len(theirs):
        sys.path[:] = readable
    try:
        yield
    finally:
        if sys.path == readable:
            sys.path[:] = theirs


@cache
def _cut_prefixes() -> tuple[str, ...]:
    """The prefixes that the recorder cuts off, in its order: the first that fits is cut."""
    entries = [*site.getsitepackages(), *sys.path, site.getuserbase(), site.getusersitepackages()]
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        entries.append(os.path.dirname(os.path.dirname(torch.__file__)))
    folders = _absolute(entries)
    return tuple(folder.rstrip(os.sep) + os.sep for folder in sorted(folders, reverse=True))


def _library_folders() -> tuple[str, ...]:
    """Folders of code that users did not write: Python, installed packages, generated, ours."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    roots = [sysconfig.get_path(kind) for kind in kinds]
    roots += [*site.getsitepackages(), site.getusersitepackages()]
    roots.append(os.path.dirname(os.path.abspath(selftime.__file__)))
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        roots.append(os.path.dirname(torch.__file__))
    roots.append(os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""))
    # The compiler's cache is named after the user: torchinductor_NAME, so no separator follows.
    cache_folder = os.path.join(tempfile.gettempdir(), "torchinductor_")
    named = _absolute(root for root in roots if root)
    folders = {root + os.sep for root in named | {os.path.realpath(root) for root in named}}
    return (*sorted(folders), cache_folder)


class SourceFiles:
    """Where the files of recorded frames lie, and whether they are the user's.

    `own` are folders or files that count as the user's although they lie among installed
    packages, such as the package that the user runs with `-m`.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        _cut_prefixes.cache_clear()  # `sys.path` changes while a program runs
        self._own = tuple(_absolute(own))
        self._library = _library_folders()
        self._loaded: dict[str, str] = {}
        self._known: dict[str, str | None] = {}
        modules: list[object] = [*sys.modules.values()]  # a program may put anything there
        for module in modules:
            # No module is asked: one that loads its parts when they are asked for would do so.
            known = vars(module) if isinstance(module, ModuleType) else {}
            for file in _absolute([known.get("__file__")]):
                self._remember(file)

    def user_file(self, recorded: str) -> str | None:
        """The path of a recorded file name if it is the user's code, else None."""
        if recorded not in self._known:
            path = self._resolve(recorded)
            self._known[recorded] = path if path is not None and self._is_user(path) else None
        return self._known[recorded]

    @staticmethod
    def recorded(file: str) -> str:
        """A file's name as the recorder writes it."""
        for prefix in _cut_prefixes():
            if file.startswith(prefix):
                return file[len(prefix) :]
        return file

    def _remember(self, file: str) -> None:
        name = self.recorded(file)
        if name not in self._loaded or self._is_user(file):
            self._loaded[name] = file

    def _resolve(self, recorded: str) -> str | None:
        if recorded.startswith("<"):
            return recorded if recorded.startswith(NOTEBOOK) else None
        if os.path.isabs(recorded):
            return recorded
        if recorded in self._loaded:
            return self._loaded[recorded]
        for prefix in _cut_prefixes():
            if os.path.isfile(prefix + recorded):
                return prefix + recorded
        # Text that was compiled under a made-up name has no file, but may have its source.
        return recorded if recorded in linecache.cache else None

    def _is_user(self, path: str) -> bool:
        if any(path == own or path.startswith(own + os.sep) for own in self._own):
            return True
        if path.startswith(self._library):
            return False
        return PACKAGE_FOLDERS.isdisjoint(path.split(os.sep))
