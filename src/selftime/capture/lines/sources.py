"""Decides which recorded Python frames belong to the user's code, and finds their files.

The profiler removes entries of `sys.path` from the start of file names. The full path is found
again, first among the loaded modules, then on disk.
"""

# ruff: noqa: PTH100, PTH113, PTH117, PTH118, PTH120, PTH206 - recorded names are text

import linecache
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache

import selftime
from selftime.capture.trace_file.non_utf8_files import is_utf8, module_files
from selftime.names.notebook_cells import COMPILED_CELL_PREFIXES

INSTALLED_PACKAGE_FOLDER_NAMES = frozenset({"site-packages", "dist-packages"})


def import_folders() -> list[str]:
    """Returns the folders of `sys.path` as absolute paths, the longest path first."""
    return sorted(_strings_as_absolute_paths(sys.path), key=lambda folder: (-len(folder), folder))


def _strings_as_absolute_paths(entries: Iterable[object]) -> set[str]:
    """Returns the entries that are strings as absolute paths; other entries are left out."""
    folders = set()
    for entry in entries:
        if isinstance(entry, str):
            with suppress(OSError):  # a relative path, and the working directory was removed
                folders.add(os.path.abspath(entry))
    return folders


@contextmanager
def readable_sys_path() -> Iterator[None]:
    """Removes, within a `with` block, the entries of `sys.path` that make the profiler fail."""
    original = list(sys.path)
    readable = [
        entry for entry in original if _strings_as_absolute_paths([entry]) and is_utf8(entry)
    ]
    if len(readable) < len(original):
        sys.path[:] = readable
    try:
        yield
    finally:
        if sys.path == readable:
            sys.path[:] = original


@cache
def _prefixes_that_profiler_removes() -> tuple[str, ...]:
    """Returns the path prefixes that the profiler cuts off file names, in its order of trial."""
    entries = [*site.getsitepackages(), *sys.path, site.getuserbase(), site.getusersitepackages()]
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        entries.append(os.path.dirname(os.path.dirname(torch.__file__)))
    folders = _strings_as_absolute_paths(entries)
    return tuple(folder.rstrip(os.sep) + os.sep for folder in sorted(folders, reverse=True))


def _path_prefixes_of_library_code() -> tuple[str, ...]:
    """Returns the path prefixes of code that is not the user's: Python, packages, selftime."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    roots = [sysconfig.get_path(kind) for kind in kinds]
    roots += [*site.getsitepackages(), site.getusersitepackages()]
    roots.append(os.path.dirname(os.path.abspath(selftime.__file__)))
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:
        roots.append(os.path.dirname(torch.__file__))
    roots.append(os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""))
    # Inductor's cache folder is torchinductor_USER, so this prefix has no separator at its end.
    cache_folder = os.path.join(tempfile.gettempdir(), "torchinductor_")
    named = _strings_as_absolute_paths(root for root in roots if root)
    folders = {root + os.sep for root in named | {os.path.realpath(root) for root in named}}
    return (*sorted(folders), cache_folder)


class SourceFiles:
    """Finds the file of a recorded file name, and decides whether it is the user's code.

    `user_paths` are folders or files that count as the user's although they are among installed
    packages, such as the package that the user runs with `-m`.
    """

    def __init__(self, user_paths: Iterable[str] = ()) -> None:
        _prefixes_that_profiler_removes.cache_clear()  # `sys.path` changes while a program runs
        self._user_paths = tuple(_strings_as_absolute_paths(user_paths))
        self._library = _path_prefixes_of_library_code()
        self._file_of_recorded_name: dict[str, str] = {}
        self._user_files: dict[str, str | None] = {}
        for file in module_files():
            for absolute in _strings_as_absolute_paths([file]):
                self._add_loaded_file(absolute)

    def user_file(self, recorded_name: str) -> str | None:
        """Returns the path for a recorded file name if it is the user's code, else None."""
        if recorded_name not in self._user_files:
            path = self._resolve_user_file(recorded_name)
            is_user = path is not None and self._is_user_file(path)
            self._user_files[recorded_name] = path if is_user else None
        return self._user_files[recorded_name]

    def user_files(self) -> list[str]:
        """Returns the names of the user's files so far: as they were recorded, and their paths."""
        known = [(name, path) for name, path in self._user_files.items() if path is not None]
        return list(dict.fromkeys(name for pair in known for name in pair))

    @staticmethod
    def recorded_name(file: str) -> str:
        """Returns the name of a file as the profiler records it."""
        for prefix in _prefixes_that_profiler_removes():
            if file.startswith(prefix):
                return file[len(prefix) :]
        return file

    def _add_loaded_file(self, file: str) -> None:
        name = self.recorded_name(file)
        if name not in self._file_of_recorded_name or self._is_user_file(file):
            self._file_of_recorded_name[name] = file

    def _resolve_user_file(self, recorded_name: str) -> str | None:
        if recorded_name.startswith("<"):
            return recorded_name if recorded_name.startswith(COMPILED_CELL_PREFIXES) else None
        if os.path.isabs(recorded_name):
            return recorded_name
        if recorded_name in self._file_of_recorded_name:
            return self._file_of_recorded_name[recorded_name]
        for prefix in _prefixes_that_profiler_removes():
            if os.path.isfile(prefix + recorded_name):
                return prefix + recorded_name
        # Code compiled under an invented file name has no file, but linecache may have its source.
        return recorded_name if recorded_name in linecache.cache else None

    def _is_user_file(self, path: str) -> bool:
        if any(path == own or path.startswith(own + os.sep) for own in self._user_paths):
            return True
        if path.startswith(self._library):
            return False
        return INSTALLED_PACKAGE_FOLDER_NAMES.isdisjoint(path.split(os.sep))
