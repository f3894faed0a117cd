"""Wraps text to a width so that long names break where they have parts, such as after a slash."""

from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

_PART_ENDS: Final = ("/.(,=:", "_-")
"""Characters after which a name that is longer than a line continues on the next: if possible of
the first kind, which end a part, else of the second, which end a word."""
_MIN_FILLED_SHARE: Final = 0.5
"""Smallest share of a line that is filled before a name breaks; else it breaks at the width."""
_MIN_REST_CHARACTERS: Final = 4
"""Smallest number of characters that a broken name has on its last line: no lone backtick."""


@dataclass(frozen=True, slots=True)
class NamesText:
    """Text for a cell of a table, whose long names break after `/`, `.`, `(` and the like."""

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the lines of the text, each at most as wide as the cell."""
        for line in self._whole().divide(line_break_offsets(self.text, options.max_width)):
            line.rstrip()
            yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Returns the widths of the longest word and of the whole text."""
        return Measurement.get(console, options, self._whole())

    def _whole(self) -> Text:
        return Text(self.text, self.style, no_wrap=True)


def line_break_offsets(text: str, width: int) -> list[int]:
    """Returns the offsets at which a text is broken so that no line is wider than `width`.

    A line ends after a space; within a word only if the word alone is wider than a line. A `%`
    stays with its number.

    >>> line_break_offsets("the file `/a/long_folder/train.py`", 18)
    [9, 25]
    >>> line_break_offsets("it takes 30 % of it", 12)
    [9]
    """
    offsets, column, start = [], 0, 0
    for word in _words_with_percent(text):
        if column and column + cell_len(word) > width:
            offsets.append(start)
            column = 0
        rest = word
        while cell_len(rest) > width > 0:
            end = _length_of_first_line(rest, width)
            offsets.append(start + len(word) - len(rest) + end)
            rest = rest[end:]
        column += cell_len(rest) + 1
        start += len(word) + 1
    return offsets


def _words_with_percent(text: str) -> list[str]:
    """Returns the words of a text, of which a number and the `%` behind it are one."""
    words: list[str] = []
    for word in text.split(" "):
        if words and word.startswith("%"):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _length_of_first_line(word: str, width: int) -> int:
    """Returns how many characters of a word that is wider than a line go on its first line."""
    ends = [end for end in accumulate(map(cell_len, word)) if end <= width]
    fitting = max(1, min(len(ends), len(word) - _MIN_REST_CHARACTERS))
    for characters in _PART_ENDS:
        end = max(word.rfind(character, 0, fitting) for character in characters) + 1
        if end >= _MIN_FILLED_SHARE * width:
            return end
    return fitting
