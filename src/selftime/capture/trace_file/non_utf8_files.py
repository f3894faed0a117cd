"""Finds loaded Python files whose names are not valid UTF-8, which the profiler cannot record.

Python decodes such a name with a lone surrogate for each byte that is not UTF-8. JSON cannot hold
surrogates, and PyTorch's frame recorder raises when it meets such a name, inside the program's own
call.
"""

import sys
import traceback
from collections.abc import Iterator
from types import ModuleType

from selftime.capture.thread_frames import frames_of_threads


def is_utf8(name: str) -> bool:
    """Returns whether a file name is valid UTF-8 (it contains no lone surrogates)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape_non_utf8(name: str) -> str:
    """Returns a file name in which each byte that is not UTF-8 is a backslash escape."""
    return name.encode(errors="backslashreplace").decode()


def first_non_utf8_file() -> str | None:
    """Returns a loaded source file whose name is not UTF-8; None if all names are.

    Covers the files of imported modules, of running frames, and the entries of `sys.path`.
    """
    entries: list[object] = [*sys.path]  # may contain objects of any type
    names = [entry for entry in entries if isinstance(entry, str)]
    names += [*module_files(), *_files_of_running_frames()]
    if is_utf8("".join(names)):  # one check for thousands of names
        return None
    return next(name for name in names if not is_utf8(name))


def _files_of_running_frames() -> Iterator[str]:
    for innermost in frames_of_threads().values():
        for frame, _ in traceback.walk_stack(innermost):
            yield frame.f_code.co_filename


def module_files() -> Iterator[str]:
    """Yields `__file__` of every imported module."""
    modules: list[object] = [*sys.modules.values()]  # may contain objects of any type
    for module in modules:
        # `vars` avoids a module's own `__getattr__`, which may import more.
        known = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(known, str):
            yield known
