r"""Mend the text of one event in the ways in which trace writers are known to err.

Raw control characters and backslashes of Windows paths in names, bare `inf`, `nan` and `N/A`,
numbers such as `+5` or `.5`, trailing commas, unescaped quotes in names of generated code, halves
of surrogate pairs, bytes that are not UTF-8.
"""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from selftime.ingest.events import MALFORMED, value_decoder

__all__ = ["mend"]

_Instead: TypeAlias = Callable[[re.Match[bytes]], bytes]
_Way: TypeAlias = Callable[[bytes], bytes]

_STRING: Final = re.compile(rb'"(?:[^"\\]+|\\.)*(?:(")|\\?\Z)', re.DOTALL)
"""A string, its last quote the group; one that does not end reaches to the end of the text, so that
nobody looks for another in it."""
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
_NUMBER: Final = re.compile(
    rb"(?<=[:\[,])(\s*)([-+]?(?:0[xX][0-9a-fA-F]{1,16}|\d+(?:\.\d*)?|\.\d+))(?=\s*[,}\]])"
)
_TRAILING: Final = re.compile(rb",(?=\s*[}\]])")
_NAME: Final = re.compile(rb'"name"\s*:\s*"')
_AFTER_NAME: Final = re.compile(rb'"\s*,\s*"(?:ph|cat|pid|tid|ts|dur|id|args)"\s*:')
_QUOTE: Final = re.compile(rb'(?<!\\)"')
_NOT_UTF8: Final = re.compile("[\udc80-\udcff]")
_SURROGATE: Final = 0xDC00


def mend(text: bytes) -> tuple[bytes, str]:
    """The text with its faults mended, as far as needed, and what they were; empty if none was."""
    faults: list[str] = []
    text = text.strip(b" \t\r\n,\x00")
    for fault, way in _WAYS.items():
        if _is_json(text):
            break
        mended = way(text)
        if mended != text:
            faults.append(fault)
            text = mended
    return text, "; ".join(faults)


def _is_json(text: bytes) -> bool:
    try:
        value_decoder.decode(text)
    except MALFORMED:
        return False
    return True


def _in_strings(pattern: re.Pattern[bytes], instead: _Instead) -> _Way:
    def within(string: re.Match[bytes]) -> bytes:
        return pattern.sub(instead, string[0]) if string[1] else string[0]

    return lambda text: _STRING.sub(within, text)


def _outside_strings(pattern: re.Pattern[bytes], instead: bytes | _Instead) -> _Way:
    """Strings are set aside, so that only the text between them is looked at."""

    def replace(text: bytes) -> bytes:
        strings = [string[0] for string in _STRING.finditer(text) if string[1]]
        set_aside = _STRING.sub(lambda string: b'""' if string[1] else string[0], text)
        bare = pattern.sub(instead, set_aside)
        parts = bare.split(b'""')
        if len(parts) != len(strings) + 1:
            return text
        return b"".join(a + b for a, b in zip(parts, [*strings, b""], strict=True))

    return replace


def _utf8(text: bytes) -> bytes:
    escaped = _NOT_UTF8.sub(
        lambda byte: f"\\\\x{ord(byte[0]) - _SURROGATE:02x}",
        text.decode("utf-8", "surrogateescape"),
    )
    return escaped.encode()


def _doubled(found: re.Match[bytes]) -> bytes:
    return rb"\\" if found[1] else found[0]


def _backslashes(text: bytes) -> bytes:
    """A path in which a backslash begins no escape has none that do, not even for a new line."""

    def within(string: re.Match[bytes]) -> bytes:
        if not string[1]:
            return string[0]
        mended = _ESCAPE.sub(_doubled, string[0])
        if mended != string[0] and _DRIVE.search(string[0]):
            return _PAIR.sub(_doubled, string[0])
        return mended

    return _STRING.sub(within, text)


def _number(found: re.Match[bytes]) -> bytes:
    """The number that was meant by `+5`, `.5`, `007` or `0x1f`."""
    text = found[2]
    if b"x" in text.lower():
        return found[1] + b"%d" % int(text, 16)
    sign = b"-" if text.startswith(b"-") else b""
    whole, dot, part = text.lstrip(b"+-").partition(b".")
    return found[1] + sign + (whole.lstrip(b"0") or b"0") + dot + (part or (dot and b"0"))


def _quotes(text: bytes) -> bytes:
    """Quotes within names: a name ends where a quote stands before another field of an event."""
    parts: list[bytes] = []
    at = 0
    while name := _NAME.search(text, at):
        after = _AFTER_NAME.search(text, name.end())
        if after is None:
            break
        parts += [text[at : name.end()], _QUOTE.sub(rb'\\"', text[name.end() : after.start()])]
        at = after.start()
    return b"".join([*parts, text[at:]])


_WAYS: Final[dict[str, _Way]] = {
    "bytes that are not UTF-8: shown as escapes": _utf8,
    "control characters in a string: shown as escapes": _in_strings(
        _CONTROL, lambda raw: b"\\u%04x" % ord(raw[0])
    ),
    "a backslash that begins no escape: read as text": _backslashes,
    "a bare inf, nan or N/A: read as unknown": _outside_strings(_BARE, rb"\1null"),
    "a number that JSON cannot write: read as it was meant": _outside_strings(_NUMBER, _number),
    "a trailing comma": _outside_strings(_TRAILING, b""),
    "unescaped quotes in a name: read as text": _quotes,
}
