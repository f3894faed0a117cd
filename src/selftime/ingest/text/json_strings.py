"""Replaces strings in a JSON text; its numbers and white space remain unchanged."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

_STRING_OR_KEY: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.DOTALL)
_STRING_LITERAL: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_STRING_KEY_AND_STRING_VALUE: Final = re.compile(
    rb'"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL
)
_MAX_CACHED_STRINGS: Final = 1 << 18
"""Largest number of strings whose replacement is cached: most strings of a trace recur."""

StringReplacement = Callable[[str, str], str]


def distinct_json_strings(json_text: bytes) -> Iterator[tuple[str, str]]:
    """Yields ("", string) for each distinct string of a JSON text, and (key, value) pairs.

    >>> sorted(distinct_json_strings(b'{"a": "b", "c": ["b"]}'))
    [('', 'a'), ('', 'b'), ('', 'c'), ('a', 'b')]
    """
    for literal in set(_STRING_LITERAL.findall(json_text)):
        yield "", _unescape_json_string(literal)
    for key, literal in set(_STRING_KEY_AND_STRING_VALUE.findall(json_text)):
        yield _unescape_json_string(key), _unescape_json_string(literal)


def _unescape_json_string(literal: bytes) -> str:
    return str(msgspec.json.decode(b'"%b"' % literal))


def json_string_replacer(change: StringReplacement) -> Callable[[bytes], bytes]:
    r"""Returns a function that replaces each string of a JSON text by `change(key, string)`.

    The key is the last key before the string, also across the start of a list; it is empty for keys
    themselves. Strings are passed and returned without escapes, so that nothing can hide in
    escapes.

    >>> json_string_replacer(lambda key, text: text.upper() if key == "a" else text)(
    ...     b'{"a": ["b\\u0062", 1.50], "c": "d"}'
    ... )
    b'{"a": ["BB", 1.50], "c": "d"}'
    """
    values: dict[tuple[bytes, bytes], bytes] = {}
    keys: dict[bytes, bytes] = {}

    def changed(key: bytes, literal: bytes) -> bytes:
        string = _unescape_json_string(literal)
        new = change(_unescape_json_string(key), string)
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
            if len(known) > _MAX_CACHED_STRINGS:
                known.clear()
        return _STRING_OR_KEY.sub(replace_one, text)

    return replaced
