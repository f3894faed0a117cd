"""Replacements of torch's own names, undone in the reverse order."""

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """Sets attributes, and puts back what was there, unless somebody set another since."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        original = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)

        def undo() -> None:
            if vars(owner).get(name) is value:
                if original is _ABSENT:
                    delattr(owner, name)
                else:
                    setattr(owner, name, original)

        self._undo.append(undo)

    def wrap(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        """Replace a name by what `around` makes of it."""
        self.put(owner, name, around(vars(owner)[name]))

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()
