"""Calls a function when a module, such as torch, has been imported for the first time.

A program may set what torch reads on import, such as `OMP_NUM_THREADS`. So torch is never imported
before the program does so.

A module of selftime may be the one that imports torch, as in `from selftime import profile`. The
function needs selftime's modules complete, so the call waits until none is partly imported.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Final

SELFTIME_MODULE_PREFIX: Final = f"{__name__.partition('.')[0]}."
"""Prefix of the names of selftime's modules."""


class _ImportWatcher:
    """Meta path finder that calls a function after a watched module was imported."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self.name = name
        self.action = action
        self._asking_thread: int | None = None
        """Id of the thread in which this finder is asking the other finders for a module; None
        if it is not."""
        self._modules_in_import: list[str] = []
        """Names of watched modules whose import has begun but not ended."""
        self._is_imported = False

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_watched = fullname == self.name or fullname.startswith(SELFTIME_MODULE_PREFIX)
        if not is_watched or self._asking_thread == threading.get_ident():
            return None
        self._asking_thread = threading.get_ident()
        try:
            spec = find_spec(fullname)
        finally:
            self._asking_thread = None
        if spec is None or spec.loader is None:
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)  # restores the class's method
            self._modules_in_import.append(fullname)
            try:
                execute(module)
                # A program may find a module's spec long before it imports it.
                self._is_imported = self._is_imported or fullname == self.name
            finally:
                self._modules_in_import.remove(fullname)
                self._call_action_once_imported()

        loader.exec_module = exec_module  # type: ignore[method-assign]  # on this loader only
        return spec

    def _call_action_once_imported(self) -> None:
        if self._is_imported and not self._modules_in_import and self in sys.meta_path:
            sys.meta_path.remove(self)
            self.action()


def after_import(name: str, action: Callable[[], None]) -> None:
    """Calls `action` right after the module `name` is imported, or now if it already is.

    If a module of selftime imports it, the call comes after the outermost import of selftime. Must
    not be called while a module of selftime is partly imported.
    """
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _ImportWatcher(name, action))


def cancel_after_import(name: str) -> None:
    """Cancels the call that `after_import` requested for the module `name`."""
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not (isinstance(finder, _ImportWatcher) and finder.name == name)
    ]
