r"""Text from a trace, made safe to show: it stays data wherever it is printed.

Names come from programs and files that nobody checked. Terminal control sequences are removed, and
whatever else could move, hide or reorder what a reader sees is shown as an escape.

>>> plain("\x1b[31mred\x1b[0m"), plain("a\nb\u202ec")
('red', 'a\\nb\\u202ec')
"""

import re
import unicodedata
from typing import Final

from rich.cells import cell_len

_SEQUENCE: Final = re.compile(
    r"""\x1b \[ [0-?]* [ -/]* [@-~]            # a control sequence, such as a colour
      | \x1b [\]PX^_] [^\x07\x1b]* (?: \x07 | \x1b\\ )?  # a string, such as a window title
      | \x1b [ -/]* [0-~]                      # any other escape sequence
      | \x9b [0-?]* [ -/]* [@-~]               # a control sequence of eight bits
    """,
    re.VERBOSE,
)
_SHOWN_AS_ESCAPES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: controls, invisible formatting and bidi, surrogates, line separators."""


def plain(text: str) -> str:
    """The text with nothing in it that a terminal or a page would act on."""
    return escaped(_SEQUENCE.sub("", text))


def escaped(text: str) -> str:
    """The text with every character shown as an escape that would act instead of being seen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _SHOWN_AS_ESCAPES:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def cut_middle(text: str, width: int) -> str:
    """The text in at most `width` columns of a terminal, its middle left out if it is longer.

    >>> cut_middle("aten::convolution_backward", 13)
    'aten::…ckward'
    """
    if cell_len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    tail = (width - 1) // 2
    head = width - 1 - tail
    return f"{_fitting(text, head)}…{_fitting(text[::-1], tail)[::-1]}"


def cut_end(text: str, width: int) -> str:
    """The text in at most `width` columns of a terminal, its end left out if it is longer.

    >>> cut_end("aten::convolution", 8)
    'aten::c…'
    """
    if cell_len(text) <= width:
        return text
    return f"{_fitting(text, width - 1)}…" if width else ""


def _fitting(text: str, width: int) -> str:
    for end, _ in enumerate(text):
        if cell_len(text[: end + 1]) > width:
            return text[:end]
    return text
