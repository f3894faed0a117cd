"""The strings in a JSON text, replaced in place: numbers and layout stay as they are written."""

import re
from collections.abc import Callable
from typing import Final

import msgspec

__all__ = ["with_strings"]

_STRING: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)
_MOST_KNOWN: Final = 1 << 18
"""Strings whose replacement is remembered: most strings of a trace recur."""

Change = Callable[[str, str], str]


class _Known:
    """What became of strings, by the key that they stand under."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.of: dict[tuple[bytes, bytes], bytes] = {}

    def __call__(self, key: bytes, literal: bytes) -> bytes:
        found = self.of.get((key, literal))
        if found is None:
            if len(self.of) >= _MOST_KNOWN:
                self.of.clear()
            found = self.of[key, literal] = self._changed(key, literal)
        return found

    def _changed(self, key: bytes, literal: bytes) -> bytes:
        text = str(msgspec.json.decode(b'"%b"' % literal))
        name = str(msgspec.json.decode(b'"%b"' % key))
        changed = self.change(name, text)
        return literal if changed == text else msgspec.json.encode(changed)[1:-1]


def with_strings(change: Change) -> Callable[[bytes], bytes]:
    r"""What replaces each string of a sound JSON text by `change(key, string)`.

    The key is the last before the string, also where a list lies between; it is empty for keys
    themselves. Strings are given and taken without escapes, so that none can hide in them.

    >>> with_strings(lambda key, text: text.upper() if key == "a" else text)(
    ...     b'{"a": ["b\\u0062", 1.50], "c": "d"}'
    ... )
    b'{"a": ["BB", 1.50], "c": "d"}'
    """
    known = _Known(change)

    def replaced(text: bytes) -> bytes:
        key = b""

        def one(match: re.Match[bytes]) -> bytes:
            nonlocal key
            literal, colon = match.groups()
            if colon is None:
                return b'"%b"' % known(key, literal)
            key = literal
            return b'"%b"%b' % (known(b"", literal), colon)

        return _STRING.sub(one, text)

    return replaced
