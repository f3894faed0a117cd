"""Attributes of classes and modules that are replaced for a while, and put back."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

_ABSENT: Final = object()


class Patches:
    """Sets attributes; `undo` puts back what was there.

    The last that was set is put back first. What somebody else has set since stays as it is. An
    error while one is put back keeps none of the others from being put back, and is raised then.
    """

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._places: set[tuple[Any, str]] = set()

    def __contains__(self, place: tuple[Any, str]) -> bool:
        """Whether this owner's attribute was set and not put back."""
        return place in self._places

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute in the owner's own namespace, whether there was one or not."""
        original = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self._places.add((owner, name))
        self._undo.callback(_put_back, owner, name, value, original)

    def wrap(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        """Set an attribute to what `around` makes of the one that is there."""
        self.put(owner, name, around(vars(owner)[name]))

    def undo(self) -> None:
        """Put everything back."""
        self._places.clear()
        self._undo.close()


def _put_back(owner: Any, name: str, value: Any, original: Any) -> None:
    if vars(owner).get(name) is not value:
        return
    if original is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, original)
