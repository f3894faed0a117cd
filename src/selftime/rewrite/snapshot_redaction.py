"""Replaces private data, such as user and host names, in a CUDA memory snapshot of PyTorch.

A value that is referenced many times, such as a stack of frames, is processed once per key, and
stays one shared value in the new pickle.
"""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from selftime.errors import UsageError
from selftime.rewrite.private_data_removal import PrivateWordCollector, Redactor

_SNAPSHOT_PICKLE_PROTOCOL: Final = 4
"""Pickle protocol that `torch.cuda.memory._dump_snapshot` writes."""
_KEYS_OF_STACK_FRAME: Final = ("filename", "line", "name")
ReplaceValueFunction = Callable[[str, Any, bool], Any]


@contextmanager
def _recursion_error_as_usage_error() -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise UsageError(
            "the snapshot's values are nested thousands of levels deep, which PyTorch does not "
            "write: give a file that `torch.cuda.memory._dump_snapshot` wrote"
        ) from error


def users_and_hosts_in_snapshot(values: Any) -> PrivateWordCollector:
    """Collects the names of users and hosts from a memory snapshot.

    Raises:
        UsageError: Its values are nested too deeply.
    """
    words = PrivateWordCollector()

    def collect_from_value(key: str, value: Any, _private: bool) -> Any:
        if isinstance(value, str):
            words.collect_users_and_hosts(key, value)
        return value

    with _recursion_error_as_usage_error():
        _NestedValueReplacer(collect_from_value, is_private_key=lambda _: False).replaced_value(
            "", values, is_private=False
        )
    return words


def redact_snapshot(values: Any, redactor: Redactor) -> bytes:
    """Returns the pickle of a memory snapshot with private data replaced.

    Raises:
        UsageError: Its values are nested too deeply.
    """

    def redacted(key: str, value: Any, private: bool) -> Any:
        return redactor.redacted_value(key, value, is_private=private)

    replacer = _NestedValueReplacer(redacted, is_private_key=redactor.is_private_key)
    with _recursion_error_as_usage_error():
        return pickle.dumps(
            replacer.replaced_value("", values, is_private=False),
            protocol=_SNAPSHOT_PICKLE_PROTOCOL,
        )


class _NestedValueReplacer:
    """Replaces texts and numbers in nested dicts, lists and tuples."""

    def __init__(self, change: ReplaceValueFunction, is_private_key: Callable[[str], bool]) -> None:
        self._change, self._is_private_key = change, is_private_key
        self._known: dict[tuple[int, str, bool], Any] = {}

    def replaced_value(self, key: str, value: Any, *, is_private: bool) -> Any:
        """Returns a value with the texts and numbers in it replaced."""
        if not isinstance(value, dict | list | tuple):
            return self._change(key, value, is_private)
        about = id(value), key, is_private
        if about not in self._known:
            self._known[about] = self._replaced_container(key, value, is_private)
        return self._known[about]

    def _replaced_container(self, key: str, value: Any, is_private: bool) -> Any:
        if isinstance(value, dict):
            return self._replaced_dict(value, is_private)
        return type(value)(self.replaced_value(key, item, is_private=is_private) for item in value)

    def _replaced_dict(self, value: dict[Any, Any], is_private: bool) -> dict[Any, Any]:
        made = {}
        for name, item in value.items():
            below = name if isinstance(name, str) else ""
            private = is_private or self._is_private_key(below)
            made[self.replaced_value("", name, is_private=False)] = self.replaced_value(
                below, item, is_private=private
            )
        file, line, function = (value.get(name) for name in _KEYS_OF_STACK_FRAME)
        if isinstance(file, str) and isinstance(function, str):
            frame_text = self._change("", f"{file}({line}): {function}", is_private)
            made["filename"], mark, made["name"] = frame_text.partition(f"({line}): ")
            if not mark:  # all of it was private
                made["name"] = frame_text
        return made
