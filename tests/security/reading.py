"""What a text would do to whoever reads it: a terminal, a spreadsheet, a browser, a code host."""

import csv
import re
import unicodedata
from html.parser import HTMLParser
from io import StringIO
from typing import Final

from markdown_it import MarkdownIt

__all__ = ["acting", "elements", "formulas", "linked", "rendered"]

_ACTS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that a terminal acts on, or that hide and reorder what is seen."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_SEPARATORS: Final = ",;\t"
"""What spreadsheets of one country or another take between two cells."""


def acting(text: str) -> set[str]:
    """The characters that do something where they are printed; the end of a line may."""
    return {c for c in text if c != "\n" and unicodedata.category(c) in _ACTS}


def formulas(text: str) -> list[str]:
    """The cells of a CSV that a spreadsheet would compute, whatever separates cells there."""
    return [
        cell
        for separator in _SEPARATORS
        for row in csv.reader(StringIO(text), delimiter=separator)
        for cell in row
        if cell.strip(' "').startswith(_FORMULA) and not _is_number(cell)
    ]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, set[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.setdefault(tag, set()).update(name for name, _ in attrs)


def elements(page: str) -> dict[str, set[str]]:
    """The elements of a page, each with the names of all the attributes that it has anywhere."""
    parser = _Elements()
    parser.feed(page)
    parser.close()
    return parser.found


def rendered(page: str) -> dict[str, set[str]]:
    """The elements that a code host makes of a page of Markdown."""
    return elements(_MARKDOWN.render(page))


def linked(page: str) -> list[str]:
    """What a code host makes links or calls of in the words of a page of Markdown, beside code."""
    words = _Words()
    words.feed(_MARKDOWN.render(page))
    words.close()
    return [found.group() for text in words.found for found in _LINKED.finditer(text)]


_LINKED: Final = re.compile(r"\w+://\S+|www\.\S+|[@#]\w+", re.ASCII)
"""Addresses, mentions of people, numbers of issues: see GitHub's documentation of autolinks."""
_MARKDOWN: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class _Words(HTMLParser):
    """The texts of a page that are no code."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - as called
        self.inside += tag in _CODE

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag in _CODE

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.found.append(data)


_CODE: Final = ("code", "pre")
