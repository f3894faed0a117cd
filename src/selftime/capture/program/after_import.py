"""Act once torch has been imported, by whoever imports it.

A program may set what torch reads while it loads, such as `OMP_NUM_THREADS`. So torch is imported
when the program imports it, never before.

The one that imports torch may be a module of ours, as `from selftime import profile` loads them.
The action needs such modules whole, so it waits until none of them is half imported.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Final

OURS: Final = f"{__name__.partition('.')[0]}."
"""What the names of our own modules begin with."""


class _Finder:
    """Finds nothing itself: it lets the others find the module, and adds an action."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self.name = name
        self.action = action
        self._asking: int | None = None
        """The thread that asks the others."""
        self._importing: list[str] = []
        """The modules that are half imported, by any thread: that one and ours."""
        self._imported = False

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_watched = fullname == self.name or fullname.startswith(OURS)
        if not is_watched or self._asking == threading.get_ident():
            return None
        self._asking = threading.get_ident()
        try:
            spec = find_spec(fullname)
        finally:
            self._asking = None
        if spec is None or spec.loader is None:
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)  # the class's own shows again
            self._importing.append(fullname)
            try:
                execute(module)
                # A program may look for a module long before it imports it.
                self._imported = self._imported or fullname == self.name
            finally:
                self._importing.remove(fullname)
                self._act()

        loader.exec_module = exec_module  # type: ignore[method-assign]  # of this loader alone
        return spec

    def _act(self) -> None:
        if self._imported and not self._importing and self in sys.meta_path:
            sys.meta_path.remove(self)
            self.action()


def after_import(name: str, action: Callable[[], None]) -> None:
    """Call `action` right after the module was imported; now, if it is there.

    Where a module of ours imports it, that is right after the outermost of ours was imported. Ask
    for it while none of ours is.
    """
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(name, action))


def forget(name: str) -> None:
    """Drop the actions on a module that was not imported."""
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not (isinstance(finder, _Finder) and finder.name == name)
    ]
