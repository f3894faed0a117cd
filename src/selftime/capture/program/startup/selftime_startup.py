"""Waits in a process of a recorded program until it imports torch, and records it from there.

Nothing else is imported before: most processes never come so far. One that imports selftime may
import torch within a module of ours, where it is too late to prepare for it: it is prepared for as
soon as selftime is there.
"""

import sys

TYPE_CHECKING = False  # as type checkers read it; `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Finder:
    """Finds nothing itself: it sees that torch or selftime is looked for."""

    def __init__(self) -> None:
        self._asking = False
        """Whether the others are asked for selftime."""

    def find_spec(
        self,
        fullname: str,
        _path: "Sequence[str] | None" = None,
        _target: "ModuleType | None" = None,
    ) -> "ModuleSpec | None":
        if fullname == "selftime" and not self._asking:
            return self._selftime()
        if fullname != "torch" or not _prepare():
            return None
        from importlib.util import find_spec  # noqa: PLC0415 - not before

        return find_spec(fullname)

    def _selftime(self) -> "ModuleSpec | None":
        """The package as the others find it, prepared for torch once it is there."""
        from importlib.util import find_spec  # noqa: PLC0415 - not before

        self._asking = True
        try:
            spec = find_spec("selftime")
        finally:
            self._asking = False
        if spec is None or spec.loader is None:
            return spec
        loader, execute = spec.loader, spec.loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            vars(loader).pop("exec_module", None)  # the class's own shows again
            execute(module)
            _prepare()

        loader.exec_module = exec_module  # type: ignore[method-assign]  # of this loader alone
        return spec


_finder = _Finder()


def leave() -> bool:
    """Watch no more; whether it was watching."""
    watching = _finder in sys.meta_path
    if watching:
        sys.meta_path.remove(_finder)
    return watching


def _prepare() -> bool:
    """Let what records this process wait for torch instead of us; whether it does."""
    if not leave():
        return False
    try:
        from selftime.capture.program.attachment import attach  # noqa: PLC0415 - not before
    except ImportError as error:  # another Python's packages; theirs are not ours to change
        _tell(error)
        return False
    attach()
    return True


def _tell(error: ImportError) -> None:
    """Leave word for the run that this process cannot be recorded."""
    import json  # noqa: PLC0415 - not before
    import os  # noqa: PLC0415 - likewise
    from pathlib import Path  # noqa: PLC0415 - likewise

    try:
        folder = json.loads(os.environ["SELFTIME_RUN"])["folder"]
        report = {"reason": f"`{sys.executable}` cannot import what records it: {error}"}
        Path(folder).mkdir(mode=0o700, exist_ok=True)
        path = Path(folder, f"{os.getpid()}.tmp")
        path.write_text(json.dumps(report), encoding="utf-8")
        path.replace(path.with_suffix(".json"))
    except (OSError, KeyError, ValueError):  # nobody waits for the word
        pass


if __name__ == "selftime_startup":
    sys.meta_path.insert(0, _finder)
