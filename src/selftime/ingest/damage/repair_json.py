r"""Repairs the JSON text of one event where trace writers are known to write invalid JSON.

Raw control characters and backslashes of Windows paths in names, bare `inf`, `nan` and `N/A`,
numbers such as `+5` or `.5`, trailing commas, unescaped quotes in names of generated code, lone
surrogates, bytes that are not UTF-8, nesting deeper than the JSON parser accepts.
"""

import re
from collections.abc import Callable
from itertools import islice
from typing import Final, TypeAlias

from selftime.ingest.events.event_types import MALFORMED_JSON_ERRORS, value_decoder

_MatchReplacement: TypeAlias = Callable[[re.Match[bytes]], bytes]
_JsonRepair: TypeAlias = Callable[[bytes], bytes]

_JSON_STRING: Final = re.compile(rb'"(?:[^"\\]+|\\.)*(?:(")|\\?\Z)', re.DOTALL)
"""Matches a JSON string; group 1 is its closing quote. An unclosed string matches up to the end of
the text.
"""
_CONTROL_BYTE: Final = re.compile(rb"[\x00-\x1f]")
_JSON_ESCAPE_OR_LONE_BACKSLASH: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    rb'|\\["\\/bfnrt]'
    rb"|(\\)"
)
"""Matches a JSON escape sequence; group 1 is a backslash that begins no valid escape."""

_ESCAPED_CHARACTER_OR_BACKSLASH: Final = re.compile(rb'\\[\\"]|(\\)')
_WINDOWS_DRIVE: Final = re.compile(rb"[A-Za-z]:\\[^\\]")
_BARE_INF_OR_NAN_VALUE: Final = re.compile(
    rb"(?<=[:\[,])(\s*)(?:[-+]?(?:inf(?:inity)?|nan(?:\(\w+\))?)|N/A)(?=\s*[,}\]])", re.IGNORECASE
)
_BARE_INF_OR_NAN_FIELD: Final = re.compile(
    rb'"([^"\\]*)"\s*:\s*(?:\[[^\]{}"]*)?[-+]?(?:inf(?:inity)?|nan(?:\(\w+\))?|N/A)\s*[,}\]]',
    re.IGNORECASE,
)
_MAX_SHOWN_FIELD_NAME_CHARACTERS: Final = 60
_NUMBER_IN_ANY_NOTATION: Final = re.compile(
    rb"(?<=[:\[,])(\s*)([-+]?(?:0[xX][0-9a-fA-F]{1,16}|\d+(?:\.\d*)?|\.\d+))([eE][-+]?\d+)?"
    rb"(?=\s*[,}\]])"
)
_TRAILING_COMMA: Final = re.compile(rb",(?=\s*[}\]])")
_EVENT_NAME_START: Final = re.compile(rb'"name"\s*:\s*"')
_TEXT_AFTER_EVENT_NAME: Final = re.compile(rb'"\s*,\s*"(?:ph|cat|pid|tid|ts|dur|id|args)"\s*:')
_STRING_FIELD_START: Final = re.compile(rb'"[^"\\]*"\s*:\s*"')
_TEXT_AFTER_STRING_FIELD: Final = re.compile(
    rb'"\s*(?:,\s*"[^"\\]{1,64}"\s*:|\}\s*(?:,\s*"|\}|\Z))'
)
_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]+|\\.)*(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_MAX_JSON_NESTING_DEPTH: Final = 64
"""Largest depth of nested lists and objects that is read; Kineto writes five levels."""
_MAX_EVENT_NAME_ENDS_TRIED: Final = 4
"""Largest number of quotes in an event's name that are tried as the quote that ends it."""
_UNESCAPED_QUOTE: Final = re.compile(rb'(?<!\\)"')
_SURROGATE_OF_INVALID_UTF8_BYTE: Final = re.compile("[\udc80-\udcff]")
_SURROGATE_CODE_OF_BYTE_0: Final = 0xDC00


def repair_json(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Returns JSON text, repaired as far as needed, and a description of each repair."""
    faults: list[str] = []
    text = text.strip(b" \t\r\n,\x00")
    for fault, repair in _REPAIRS_BY_FAULT.items():
        if _is_valid_json(text):
            break
        mended = repair(text)
        if mended != text:
            faults += _bare_inf_or_nan_faults(text) if fault == _BARE_INF_OR_NAN_FAULT else [fault]
            text = mended
    return text, tuple(faults)


def _bare_inf_or_nan_faults(text: bytes) -> list[str]:
    """Returns one message for each JSON field whose value is inf, nan or N/A without quotes."""
    fields = {
        field[1].decode("utf-8", "replace") for field in _BARE_INF_OR_NAN_FIELD.finditer(text)
    }
    where = [
        f" in `{repr(field[:_MAX_SHOWN_FIELD_NAME_CHARACTERS])[1:-1]}`" for field in sorted(fields)
    ] or [""]
    return [f"a bare inf, nan or N/A{field}: read as unknown" for field in where]


def _is_valid_json(text: bytes) -> bool:
    try:
        value_decoder.decode(text)
    except MALFORMED_JSON_ERRORS:
        return False
    return True


def _make_repair_inside_strings(
    pattern: re.Pattern[bytes], replacement: _MatchReplacement
) -> _JsonRepair:
    """Returns a function that replaces matches of `pattern` inside the strings of a JSON text."""

    def within(string: re.Match[bytes]) -> bytes:
        return pattern.sub(replacement, string[0]) if string[1] else string[0]

    return lambda text: _JSON_STRING.sub(within, text)


def _make_repair_outside_strings(
    pattern: re.Pattern[bytes], replacement: bytes | _MatchReplacement
) -> _JsonRepair:
    """Returns a function that replaces matches of `pattern` outside the strings of a JSON text."""

    def replace(text: bytes) -> bytes:
        strings = [string[0] for string in _JSON_STRING.finditer(text) if string[1]]
        set_aside = _JSON_STRING.sub(lambda string: b'""' if string[1] else string[0], text)
        bare = pattern.sub(replacement, set_aside)
        parts = bare.split(b'""')
        if len(parts) != len(strings) + 1:
            return text
        return b"".join(a + b for a, b in zip(parts, [*strings, b""], strict=True))

    return replace


def _escape_invalid_utf8(text: bytes) -> bytes:
    escaped = _SURROGATE_OF_INVALID_UTF8_BYTE.sub(
        lambda byte: f"\\\\x{ord(byte[0]) - _SURROGATE_CODE_OF_BYTE_0:02x}",
        text.decode("utf-8", "surrogateescape"),
    )
    return escaped.encode()


def _escape_if_lone_backslash(match: re.Match[bytes]) -> bytes:
    return rb"\\" if match[1] else match[0]


def _escape_lone_backslashes(text: bytes) -> bytes:
    """Doubles backslashes that start no escape in a JSON string; in Windows paths, all of them."""

    def within(string: re.Match[bytes]) -> bytes:
        if not string[1]:
            return string[0]
        mended = _JSON_ESCAPE_OR_LONE_BACKSLASH.sub(_escape_if_lone_backslash, string[0])
        if mended != string[0] and _WINDOWS_DRIVE.search(string[0]):
            return _ESCAPED_CHARACTER_OR_BACKSLASH.sub(_escape_if_lone_backslash, string[0])
        return mended

    return _JSON_STRING.sub(within, text)


def _repaired_number(match: re.Match[bytes]) -> bytes:
    """Returns the valid form of a number such as `+5`, `.5`, `007` or `0x1f`."""
    text = match[2]
    if b"x" in text.lower():
        return match[0] if match[3] else match[1] + b"%d" % int(text, 16)
    sign = b"-" if text.startswith(b"-") else b""
    whole, dot, part = text.lstrip(b"+-").partition(b".")
    digits = (whole.lstrip(b"0") or b"0") + dot + (part or (dot and b"0"))
    return match[1] + sign + digits + (match[3] or b"")


def _escape_quotes_in_event_name(text: bytes) -> bytes:
    """Escapes quotes inside event names; a quote ends a name if the next JSON field follows it."""
    for upto in islice(_TEXT_AFTER_EVENT_NAME.finditer(text), _MAX_EVENT_NAME_ENDS_TRIED):
        name = _EVENT_NAME_START.search(text, 0, upto.start())
        if name is not None:
            inside = _UNESCAPED_QUOTE.sub(rb'\\"', text[name.end() : upto.start()])
            whole = b"".join([text[: name.end()], inside, text[upto.start() :]])
            if _is_valid_json(whole):
                return whole
    parts: list[bytes] = []
    at = 0
    while name := _EVENT_NAME_START.search(text, at):
        after = _TEXT_AFTER_EVENT_NAME.search(text, name.end())
        if after is None:
            break
        parts += [
            text[at : name.end()],
            _UNESCAPED_QUOTE.sub(rb'\\"', text[name.end() : after.start()]),
        ]
        at = after.start()
    return b"".join([*parts, text[at:]])


def _escape_quotes_in_arguments(text: bytes) -> bytes:
    """Escapes quotes inside string values; a quote ends a value only if valid JSON follows it."""
    parts: list[bytes] = []
    at = 0
    while begin := _STRING_FIELD_START.search(text, at):
        end = _TEXT_AFTER_STRING_FIELD.search(text, begin.end())
        if end is None:
            break
        parts += [
            text[at : begin.end()],
            _UNESCAPED_QUOTE.sub(rb'\\"', text[begin.end() : end.start()]),
        ]
        at = end.start() + 1
        parts.append(b'"')
    return b"".join([*parts, text[at:]])


def _replace_deeply_nested_values(text: bytes) -> bytes:
    """Replaces JSON values nested deeper than `_MAX_JSON_NESTING_DEPTH` by null."""
    parts: list[bytes] = []
    depth = at = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in b"{[":
            depth += 1
            if depth == _MAX_JSON_NESTING_DEPTH:
                parts += [text[at : token.start()], b"null"]
        elif token[0] in b"}]":
            if depth == _MAX_JSON_NESTING_DEPTH:
                at = token.end()
            depth -= 1
    return b"".join([*parts, text[at:]]) if depth == 0 else text


_EVENT_NAME_QUOTES_FAULT: Final = "unescaped quotes in a name: read as text"
_ARGUMENT_QUOTES_FAULT: Final = "unescaped quotes in an argument: read as text"
QUOTE_FAULTS: Final = frozenset({_EVENT_NAME_QUOTES_FAULT, _ARGUMENT_QUOTES_FAULT})
"""Faults whose repair guesses where a string ends, and so might join two damaged events into one.
"""

_BARE_INF_OR_NAN_FAULT: Final = "a bare inf, nan or N/A: read as unknown"
_REPAIRS_BY_FAULT: Final[dict[str, _JsonRepair]] = {
    "bytes that are not UTF-8: shown as escapes": _escape_invalid_utf8,
    "control characters in a string: shown as escapes": _make_repair_inside_strings(
        _CONTROL_BYTE, lambda raw: b"\\u%04x" % ord(raw[0])
    ),
    "a backslash that begins no escape: read as text": _escape_lone_backslashes,
    _BARE_INF_OR_NAN_FAULT: _make_repair_outside_strings(_BARE_INF_OR_NAN_VALUE, rb"\1null"),
    "a number in a form that JSON does not allow: its value is read": (
        _make_repair_outside_strings(_NUMBER_IN_ANY_NOTATION, _repaired_number)
    ),
    "a trailing comma": _make_repair_outside_strings(_TRAILING_COMMA, b""),
    _EVENT_NAME_QUOTES_FAULT: _escape_quotes_in_event_name,
    _ARGUMENT_QUOTES_FAULT: _escape_quotes_in_arguments,
    "values nested too deep: left out": _replace_deeply_nested_values,
}
