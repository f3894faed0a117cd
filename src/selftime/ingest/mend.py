r"""Mend the text of one event in the ways in which trace writers are known to err.

Raw control characters and backslashes of Windows paths in names, bare `inf`, `nan` and `N/A`,
trailing commas, unescaped quotes in names of generated code, bytes that are not UTF-8.
"""

import re
from collections.abc import Callable
from typing import Final

__all__ = ["mend"]

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")
_BAD_ESCAPE: Final = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|(?!["\\/bfnrtu]))')
_BARE: Final = re.compile(
    rb"(?<=[:\[,])(\s*)(?:[-+]?(?:inf(?:inity)?|nan(?:\(\w+\))?)|N/A)(?=\s*[,}\]])", re.IGNORECASE
)
_TRAILING: Final = re.compile(rb",(?=\s*[}\]])")
_NAME: Final = re.compile(
    rb'("name"\s*:\s*")(.*?)("\s*,\s*"(?:ph|cat|pid|tid|ts|dur|id|args)"\s*:)', re.DOTALL
)


def mend(text: bytes) -> tuple[bytes, str]:
    """The text with every known fault mended, and what they were; empty if there was none."""
    faults = []
    text = text.strip(b" \t\r\n,\x00")
    for fault, way in _WAYS.items():
        mended = way(text)
        if mended != text:
            faults.append(fault)
            text = mended
    return text, "; ".join(faults)


def _in_strings(
    pattern: re.Pattern[bytes], instead: Callable[[bytes], bytes]
) -> Callable[[bytes], bytes]:
    def within(string: re.Match[bytes]) -> bytes:
        return pattern.sub(lambda found: instead(found[0]), string[0])

    return lambda text: _STRING.sub(within, text)


def _outside_strings(pattern: re.Pattern[bytes], instead: bytes) -> Callable[[bytes], bytes]:
    """Strings are set aside, so that only the text between them is looked at."""

    def replace(text: bytes) -> bytes:
        strings = _STRING.findall(text)
        bare = pattern.sub(instead, _STRING.sub(b'""', text))
        parts = bare.split(b'""')
        if len(parts) != len(strings) + 1:
            return text
        return b"".join(a + b for a, b in zip(parts, [*strings, b""], strict=True))

    return replace


def _quotes(text: bytes) -> bytes:
    def escape(name: re.Match[bytes]) -> bytes:
        return name[1] + re.sub(rb'(?<!\\)"', rb'\\"', name[2]) + name[3]

    return _NAME.sub(escape, text)


def _utf8(text: bytes) -> bytes:
    return (
        text.decode("utf-8", "backslashreplace").replace("\\x", "\\\\x").encode()
        if not _is_utf8(text)
        else text
    )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


_WAYS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "bytes that are not UTF-8: shown as escapes": _utf8,
    "unescaped quotes in a name: read as text": _quotes,
    "control characters in a string: shown as escapes": _in_strings(
        _CONTROL, lambda raw: b"\\u%04x" % raw[0]
    ),
    "a backslash that begins no escape: read as text": _in_strings(
        _BAD_ESCAPE, lambda raw: b"\\" + raw
    ),
    "a bare inf, nan or N/A: read as unknown": _outside_strings(_BARE, rb"\1null"),
    "a trailing comma": _outside_strings(_TRAILING, b""),
}
