r"""Repair the text of one event where trace writers are known to produce invalid JSON.

Raw control characters and backslashes of Windows paths in names, bare `inf`, `nan` and `N/A`,
numbers such as `+5` or `.5`, trailing commas, unescaped quotes in names of generated code, lone
surrogates, bytes that are not UTF-8, nesting deeper than the JSON parser accepts.
"""

import re
from collections.abc import Callable
from itertools import islice
from typing import Final, TypeAlias

from selftime.ingest.events.event import MALFORMED, value_decoder

_Replacement: TypeAlias = Callable[[re.Match[bytes]], bytes]
_Repair: TypeAlias = Callable[[bytes], bytes]

_STRING: Final = re.compile(rb'"(?:[^"\\]+|\\.)*(?:(")|\\?\Z)', re.DOTALL)
"""A string; group 1 is its closing quote. An unclosed string matches up to the end of the text, so
that no other string is matched inside it."""
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")
_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    rb'|\\["\\/bfnrt]'
    rb"|(\\)"
)
"""An escape of JSON; a backslash that begins none is the group."""

_PAIR: Final = re.compile(rb'\\[\\"]|(\\)')
_DRIVE: Final = re.compile(rb"[A-Za-z]:\\[^\\]")
_BARE: Final = re.compile(
    rb"(?<=[:\[,])(\s*)(?:[-+]?(?:inf(?:inity)?|nan(?:\(\w+\))?)|N/A)(?=\s*[,}\]])", re.IGNORECASE
)
_BARE_FIELD: Final = re.compile(
    rb'"([^"\\]*)"\s*:\s*(?:\[[^\]{}"]*)?[-+]?(?:inf(?:inity)?|nan(?:\(\w+\))?|N/A)\s*[,}\]]',
    re.IGNORECASE,
)
_LONGEST_FIELD: Final = 60
_NUMBER: Final = re.compile(
    rb"(?<=[:\[,])(\s*)([-+]?(?:0[xX][0-9a-fA-F]{1,16}|\d+(?:\.\d*)?|\.\d+))([eE][-+]?\d+)?"
    rb"(?=\s*[,}\]])"
)
_TRAILING: Final = re.compile(rb",(?=\s*[}\]])")
_NAME: Final = re.compile(rb'"name"\s*:\s*"')
_AFTER_NAME: Final = re.compile(rb'"\s*,\s*"(?:ph|cat|pid|tid|ts|dur|id|args)"\s*:')
_VALUE: Final = re.compile(rb'"[^"\\]*"\s*:\s*"')
_AFTER_VALUE: Final = re.compile(rb'"\s*(?:,\s*"[^"\\]{1,64}"\s*:|\}\s*(?:,\s*"|\}|\Z))')
_BRACKET: Final = re.compile(rb'"(?:[^"\\]+|\\.)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_DEEPEST: Final = 64
"""The most levels of nesting that are kept; Kineto writes five."""
_ENDS_TRIED: Final = 4
"""Candidates for the end of a name that are tried: a name may contain text that looks like one."""
_QUOTE: Final = re.compile(rb'(?<!\\)"')
_NOT_UTF8: Final = re.compile("[\udc80-\udcff]")
_SURROGATE: Final = 0xDC00


def repair_json(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Returns the text, repaired as far as needed, and a description of each repair."""
    faults: list[str] = []
    text = text.strip(b" \t\r\n,\x00")
    for fault, repair in _REPAIRS.items():
        if _is_json(text):
            break
        mended = repair(text)
        if mended != text:
            faults += _bare_fields(text) if fault == _BARE_WORD else [fault]
            text = mended
    return text, tuple(faults)


def _bare_fields(text: bytes) -> list[str]:
    """Returns a fault for each field that holds a bare word."""
    fields = {field[1].decode("utf-8", "replace") for field in _BARE_FIELD.finditer(text)}
    where = [f" in `{repr(field[:_LONGEST_FIELD])[1:-1]}`" for field in sorted(fields)] or [""]
    return [f"a bare inf, nan or N/A{field}: read as unknown" for field in where]


def _is_json(text: bytes) -> bool:
    try:
        value_decoder.decode(text)
    except MALFORMED:
        return False
    return True


def _in_strings(pattern: re.Pattern[bytes], replacement: _Replacement) -> _Repair:
    def within(string: re.Match[bytes]) -> bytes:
        return pattern.sub(replacement, string[0]) if string[1] else string[0]

    return lambda text: _STRING.sub(within, text)


def _outside_strings(pattern: re.Pattern[bytes], replacement: bytes | _Replacement) -> _Repair:
    """Returns a function that applies `pattern` only to the text between strings."""

    def replace(text: bytes) -> bytes:
        strings = [string[0] for string in _STRING.finditer(text) if string[1]]
        set_aside = _STRING.sub(lambda string: b'""' if string[1] else string[0], text)
        bare = pattern.sub(replacement, set_aside)
        parts = bare.split(b'""')
        if len(parts) != len(strings) + 1:
            return text
        return b"".join(a + b for a, b in zip(parts, [*strings, b""], strict=True))

    return replace


def _escape_invalid_utf8(text: bytes) -> bytes:
    escaped = _NOT_UTF8.sub(
        lambda byte: f"\\\\x{ord(byte[0]) - _SURROGATE:02x}",
        text.decode("utf-8", "surrogateescape"),
    )
    return escaped.encode()


def _escape_backslash(found: re.Match[bytes]) -> bytes:
    return rb"\\" if found[1] else found[0]


def _escape_backslashes(text: bytes) -> bytes:
    """Escape lone backslashes; in a Windows path with one, escape all backslashes."""

    def within(string: re.Match[bytes]) -> bytes:
        if not string[1]:
            return string[0]
        mended = _ESCAPE.sub(_escape_backslash, string[0])
        if mended != string[0] and _DRIVE.search(string[0]):
            return _PAIR.sub(_escape_backslash, string[0])
        return mended

    return _STRING.sub(within, text)


def _valid_number(found: re.Match[bytes]) -> bytes:
    """Returns the valid form of a number such as `+5`, `.5`, `007` or `0x1f`."""
    text = found[2]
    if b"x" in text.lower():
        return found[0] if found[3] else found[1] + b"%d" % int(text, 16)
    sign = b"-" if text.startswith(b"-") else b""
    whole, dot, part = text.lstrip(b"+-").partition(b".")
    digits = (whole.lstrip(b"0") or b"0") + dot + (part or (dot and b"0"))
    return found[1] + sign + digits + (found[3] or b"")


def _escape_name_quotes(text: bytes) -> bytes:
    """Escape quotes within names: a name ends where a quote precedes another field of an event."""
    for upto in islice(_AFTER_NAME.finditer(text), _ENDS_TRIED):
        name = _NAME.search(text, 0, upto.start())
        if name is not None:
            inside = _QUOTE.sub(rb'\\"', text[name.end() : upto.start()])
            whole = b"".join([text[: name.end()], inside, text[upto.start() :]])
            if _is_json(whole):
                return whole
    parts: list[bytes] = []
    at = 0
    while name := _NAME.search(text, at):
        after = _AFTER_NAME.search(text, name.end())
        if after is None:
            break
        parts += [text[at : name.end()], _QUOTE.sub(rb'\\"', text[name.end() : after.start()])]
        at = after.start()
    return b"".join([*parts, text[at:]])


def _escape_argument_quotes(text: bytes) -> bytes:
    """Escape quotes within other strings, which end at a quote followed by valid JSON."""
    parts: list[bytes] = []
    at = 0
    while begin := _VALUE.search(text, at):
        end = _AFTER_VALUE.search(text, begin.end())
        if end is None:
            break
        parts += [text[at : begin.end()], _QUOTE.sub(rb'\\"', text[begin.end() : end.start()])]
        at = end.start() + 1
        parts.append(b'"')
    return b"".join([*parts, text[at:]])


def _cut_deep_nesting(text: bytes) -> bytes:
    """Replace what is nested deeper than `_DEEPEST` by null."""
    parts: list[bytes] = []
    depth = at = 0
    for token in _BRACKET.finditer(text):
        if token[0] in b"{[":
            depth += 1
            if depth == _DEEPEST:
                parts += [text[at : token.start()], b"null"]
        elif token[0] in b"}]":
            if depth == _DEEPEST:
                at = token.end()
            depth -= 1
    return b"".join([*parts, text[at:]]) if depth == 0 else text


_NAME_QUOTES: Final = "unescaped quotes in a name: read as text"
_ARGUMENT_QUOTES: Final = "unescaped quotes in an argument: read as text"
QUOTE_FAULTS: Final = frozenset({_NAME_QUOTES, _ARGUMENT_QUOTES})
"""Faults whose repair guesses where a string ends: it must not join two damaged events into one."""

_BARE_WORD: Final = "a bare inf, nan or N/A: read as unknown"
_REPAIRS: Final[dict[str, _Repair]] = {
    "bytes that are not UTF-8: shown as escapes": _escape_invalid_utf8,
    "control characters in a string: shown as escapes": _in_strings(
        _CONTROL, lambda raw: b"\\u%04x" % ord(raw[0])
    ),
    "a backslash that begins no escape: read as text": _escape_backslashes,
    _BARE_WORD: _outside_strings(_BARE, rb"\1null"),
    "a number that JSON cannot write: read as it was meant": _outside_strings(
        _NUMBER, _valid_number
    ),
    "a trailing comma": _outside_strings(_TRAILING, b""),
    _NAME_QUOTES: _escape_name_quotes,
    _ARGUMENT_QUOTES: _escape_argument_quotes,
    "nested too deep: left out from there": _cut_deep_nesting,
}
