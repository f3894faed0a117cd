"""Puts back the modules of a program that has removed all, so that imports work at its end."""

import gc
import sys
from types import ModuleType


def restore_removed_modules() -> None:
    """Puts all modules that are still in memory back into `sys.modules`, if `sys` is not there.

    Without `sys` nothing can be imported any more: the recording would end with an error, and
    modules that are imported again would be there twice. Modules of other programs stay as they
    are, also where some were removed.
    """
    if "sys" in sys.modules:
        return
    for found in gc.get_objects():
        if issubclass(type(found), ModuleType):
            name = object.__getattribute__(found, "__dict__").get("__name__")
            if isinstance(name, str):
                sys.modules.setdefault(name, found)
