"""The strings in a JSON text, replaced in place: numbers and layout stay as they are written."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

_STRING: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.DOTALL)
_LITERAL: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_PAIR: Final = re.compile(
    rb'"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL
)
_MOST_KNOWN: Final = 1 << 18
"""Strings whose replacement is remembered: most strings of a trace recur."""

Change = Callable[[str, str], str]


def distinct_strings(text: bytes) -> Iterator[tuple[str, str]]:
    """The strings of a sound JSON text, each once, with the key right before it or none.

    >>> sorted(distinct_strings(b'{"a": "b", "c": ["b"]}'))
    [('', 'a'), ('', 'b'), ('', 'c'), ('a', 'b')]
    """
    for literal in set(_LITERAL.findall(text)):
        yield "", _decoded(literal)
    for key, literal in set(_PAIR.findall(text)):
        yield _decoded(key), _decoded(literal)


def _decoded(literal: bytes) -> str:
    return str(msgspec.json.decode(b'"%b"' % literal))


def with_strings(change: Change) -> Callable[[bytes], bytes]:
    r"""What replaces each string of a sound JSON text by `change(key, string)`.

    The key is the last before the string, also where a list lies between; it is empty for keys
    themselves. Strings are given and taken without escapes, so that none can hide in them.

    >>> with_strings(lambda key, text: text.upper() if key == "a" else text)(
    ...     b'{"a": ["b\\u0062", 1.50], "c": "d"}'
    ... )
    b'{"a": ["BB", 1.50], "c": "d"}'
    """
    values: dict[tuple[bytes, bytes], bytes] = {}
    keys: dict[bytes, bytes] = {}

    def changed(key: bytes, literal: bytes) -> bytes:
        string = _decoded(literal)
        told = change(_decoded(key), string)
        return b'"%b"' % literal if told == string else msgspec.json.encode(told)

    def replaced(text: bytes) -> bytes:
        key = b""

        def one(match: re.Match[bytes]) -> bytes:
            nonlocal key
            literal, colon = match.groups()
            if colon is not None:
                key = literal
                found = keys.get(match[0])
                if found is None:
                    found = keys[match[0]] = changed(b"", literal) + colon
                return found
            found = values.get((key, literal))
            if found is None:
                found = values[key, literal] = changed(key, literal)
            return found

        for known in (values, keys):
            if len(known) > _MOST_KNOWN:
                known.clear()
        return _STRING.sub(one, text)

    return replaced
