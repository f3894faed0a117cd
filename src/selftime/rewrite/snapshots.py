"""Remove private data from a memory snapshot, by replacing texts in its pickle's values.

A value that is referenced many times, such as a stack of frames, is processed once per key, and
stays one shared value in the new pickle.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from selftime.errors import UsageError
from selftime.rewrite.hiding import PrivateWords, Redactor

_PROTOCOL: Final = 4
"""The protocol of `torch.cuda.memory._dump_snapshot`."""
_FRAME: Final = ("filename", "line", "name")
Change = Callable[[str, Any, bool], Any]


@contextmanager
def _recursion_as_usage_error() -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise UsageError(
            "the snapshot's values are nested thousands of levels deep, which PyTorch does not "
            "write: give a file that `torch.cuda.memory._dump_snapshot` wrote"
        ) from error


def private_words(values: Any) -> PrivateWords:
    """Returns the users and hosts that a snapshot names.

    Raises:
        UsageError: Its values are nested too deeply.
    """
    words = PrivateWords()

    def look(key: str, value: Any, _private: bool) -> Any:
        if isinstance(value, str):
            words.collect(key, value)
        return value

    with _recursion_as_usage_error():
        _Walk(look, is_private_key=lambda _: False).of("", values, is_private=False)
    return words


def redact_snapshot(values: Any, hiding: Redactor) -> bytes:
    """Returns the pickle of a snapshot without private data.

    Raises:
        UsageError: Its values are nested too deeply.
    """

    def hidden(key: str, value: Any, private: bool) -> Any:
        return hiding.redacted_value(key, value, is_private=private)

    walk = _Walk(hidden, is_private_key=hiding.is_private_key)
    with _recursion_as_usage_error():
        return pickle.dumps(walk.of("", values, is_private=False), protocol=_PROTOCOL)


class _Walk:
    """Visits plain values recursively, and replaces their texts and numbers."""

    def __init__(self, change: Change, is_private_key: Callable[[str], bool]) -> None:
        self._change, self._is_private_key = change, is_private_key
        self._known: dict[tuple[int, str, bool], Any] = {}

    def of(self, key: str, value: Any, *, is_private: bool) -> Any:
        """Returns a value with this key, with its texts and numbers replaced."""
        if not isinstance(value, dict | list | tuple):
            return self._change(key, value, is_private)
        about = id(value), key, is_private
        if about not in self._known:
            self._known[about] = self._container(key, value, is_private)
        return self._known[about]

    def _container(self, key: str, value: Any, is_private: bool) -> Any:
        if isinstance(value, dict):
            return self._object(value, is_private)
        return type(value)(self.of(key, one, is_private=is_private) for one in value)

    def _object(self, value: dict[Any, Any], is_private: bool) -> dict[Any, Any]:
        made = {}
        for name, one in value.items():
            below = name if isinstance(name, str) else ""
            private = is_private or self._is_private_key(below)
            made[self.of("", name, is_private=False)] = self.of(below, one, is_private=private)
        file, line, function = (value.get(name) for name in _FRAME)
        if isinstance(file, str) and isinstance(function, str):
            told = self._change("", f"{file}({line}): {function}", is_private)
            made["filename"], mark, made["name"] = told.partition(f"({line}): ")
            if not mark:  # all of it was private
                made["name"] = told
        return made
