"""Replace the strings in a JSON text; numbers and layout stay as they are written."""

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
"""The most strings whose replacement is cached: most strings of a trace recur."""

StringChange = Callable[[str, str], str]


def distinct_strings(text: bytes) -> Iterator[tuple[str, str]]:
    """Yields each distinct string of valid JSON text, with the key right before it or empty.

    >>> sorted(distinct_strings(b'{"a": "b", "c": ["b"]}'))
    [('', 'a'), ('', 'b'), ('', 'c'), ('a', 'b')]
    """
    for literal in set(_LITERAL.findall(text)):
        yield "", _decoded(literal)
    for key, literal in set(_PAIR.findall(text)):
        yield _decoded(key), _decoded(literal)


def _decoded(literal: bytes) -> str:
    return str(msgspec.json.decode(b'"%b"' % literal))


def string_replacer(change: StringChange) -> Callable[[bytes], bytes]:
    r"""Returns a function that replaces each string of JSON text by `change(key, string)`.

    The key is the last key before the string, also across the start of a list; it is empty for keys
    themselves. Strings are passed and returned without escapes, so that nothing can hide in
    escapes.

    >>> string_replacer(lambda key, text: text.upper() if key == "a" else text)(
    ...     b'{"a": ["b\\u0062", 1.50], "c": "d"}'
    ... )
    b'{"a": ["BB", 1.50], "c": "d"}'
    """
    values: dict[tuple[bytes, bytes], bytes] = {}
    keys: dict[bytes, bytes] = {}

    def changed(key: bytes, literal: bytes) -> bytes:
        string = _decoded(literal)
        new = change(_decoded(key), string)
        return b'"%b"' % literal if new == string else msgspec.json.encode(new)

    def replaced(text: bytes) -> bytes:
        key = b""

        def replace_one(match: re.Match[bytes]) -> bytes:
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
        return _STRING.sub(replace_one, text)

    return replaced
