r"""Makes text from a trace safe to print: without terminal control sequences.

Names in traces are untrusted. Terminal escape sequences are removed; other characters that could
move, hide or reorder text are replaced by visible escapes.

>>> plain("\x1b[31mred\x1b[0m"), plain("a\nb\u202ec")
('red', 'a\\nb\\u202ec')
"""

import re
import unicodedata
from typing import Final

from rich.cells import cell_len

_TERMINAL_ESCAPE_SEQUENCE: Final = re.compile(
    r"""\x1b \[ [0-?]* [ -/]* [@-~]            # a control sequence, such as a colour
      | \x1b [\]PX^_] [^\x07\x1b]* (?: \x07 | \x1b\\ )?  # a string, such as a window title
      | \x1b [ -/]* [0-~]                      # any other escape sequence
      | \x9b [0-?]* [ -/]* [@-~]               # a control sequence of eight bits
    """,
    re.VERBOSE,
)
"""Pattern of terminal escape sequences, such as colours and window titles."""
_UNICODE_CATEGORIES_SHOWN_AS_ESCAPES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories (controls, invisible characters) whose characters are printed as escapes."""


def plain(text: str) -> str:
    """Returns the text without terminal escape sequences; control characters become visible."""
    return escape_control_characters(_TERMINAL_ESCAPE_SEQUENCE.sub("", text))


def escape_control_characters(text: str) -> str:
    """Returns the text with control and invisible characters replaced by visible escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    if unicodedata.category(character) not in _UNICODE_CATEGORIES_SHOWN_AS_ESCAPES:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def cut_text_middle(text: str, width: int) -> str:
    """Returns the text in at most `width` terminal columns, without its middle if it is longer.

    >>> cut_text_middle("aten::convolution_backward", 13)
    'aten::…ckward'
    """
    if cell_len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    tail = (width - 1) // 2
    head = width - 1 - tail
    return (
        f"{_longest_prefix_in_width(text, head)}…{_longest_prefix_in_width(text[::-1], tail)[::-1]}"
    )


def cut_text_end(text: str, width: int) -> str:
    """Returns the text in at most `width` terminal columns, without its end if it is longer.

    >>> cut_text_end("aten::convolution", 8)
    'aten::c…'
    """
    if cell_len(text) <= width:
        return text
    return f"{_longest_prefix_in_width(text, width - 1)}…" if width else ""


def _longest_prefix_in_width(text: str, width: int) -> str:
    """Returns the longest start of the text that fits `width` terminal columns."""
    for end, _ in enumerate(text):
        if cell_len(text[: end + 1]) > width:
            return text[:end]
    return text
