"""Replaces attributes of classes and modules temporarily, and restores them."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

_MARK_OF_ABSENT_ATTRIBUTE: Final = object()


class AttributePatches:
    """Replaces attributes of classes and modules; `restore_all` restores the original values.

    Attributes are restored in reverse order. One that other code has set again since is left alone.
    If restoring one raises, the others are still restored, and the error is raised at the end.
    """

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._places: set[tuple[Any, str]] = set()

    def __contains__(self, place: tuple[Any, str]) -> bool:
        """Returns whether the attribute in `place`, a pair (owner, name), is replaced now."""
        return place in self._places

    def replace_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Sets an attribute of a class or module, or adds it if it does not exist."""
        original = vars(owner).get(name, _MARK_OF_ABSENT_ATTRIBUTE)
        # First what restores it: an interrupt between the two then leaves nothing replaced.
        self._undo.callback(_restore_attribute, owner, name, value, original)
        setattr(owner, name, value)
        self._places.add((owner, name))

    def wrap_attribute(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        """Replaces an attribute's value by `around(value)`, such as a function by its wrapper."""
        self.replace_attribute(owner, name, around(vars(owner)[name]))

    def restore_all(self) -> None:
        """Restores the original values of all replaced attributes."""
        self._places.clear()
        self._undo.close()


def _restore_attribute(owner: Any, name: str, value: Any, original: Any) -> None:
    if vars(owner).get(name) is not value:
        return
    if original is _MARK_OF_ABSENT_ATTRIBUTE:
        delattr(owner, name)
    else:
        setattr(owner, name, original)
