"""Waits in a process of a recorded program until it imports torch, and records it from there.

Nothing else is imported before: most processes never come so far.
"""

import sys

TYPE_CHECKING = False  # as type checkers read it; `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Finder:
    """Finds nothing itself: it sees that torch is looked for."""

    def find_spec(
        self,
        fullname: str,
        _path: "Sequence[str] | None" = None,
        _target: "ModuleType | None" = None,
    ) -> "ModuleSpec | None":
        if fullname != "torch" or not leave():
            return None
        try:
            from selftime.capture.program.attachment import attach  # noqa: PLC0415 - not before
        except ImportError as error:  # another Python's packages; theirs are not ours to change
            _tell(error)
            return None
        attach()
        from importlib.util import find_spec  # noqa: PLC0415 - likewise

        return find_spec(fullname)


_finder = _Finder()


def leave() -> bool:
    """Watch no more; whether it was watching."""
    watching = _finder in sys.meta_path
    if watching:
        sys.meta_path.remove(_finder)
    return watching


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
