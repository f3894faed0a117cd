"""Sentences and names as Markdown: every name quoted, none of them markup."""

from collections.abc import Iterator
from typing import Final

from selftime.reports.plain import cut_middle, plain

_LONGEST: Final = 120
"""Columns of a quoted name; a template's full C++ name tells no more than its two ends."""
_APART: Final = "&#8203;"
"""A blank of no width. Code hosts look for people, issues and addresses in what Markdown has made,
where no escape is left."""
_CALLS: Final = {"@": f"@{_APART}", "#": rf"\#{_APART}"}
_ACTIVE: Final = str.maketrans({c: f"\\{c}" for c in r"\*_[]<>|~&$"} | _CALLS)
"""Whatever Markdown, its tables, mentions or embedded HTML would act on within a line."""
_ADDRESSES: Final = (("://", f":{_APART}//"), ("www.", f"www{_APART}."))
ACTIVE_FIRST: Final = ("-", "+", "=")
"""What Markdown would act on at the start of a line only."""


def quoted(name: str) -> str:
    """A name as a code span, capped, whatever backticks it holds."""
    shown = cut_middle(plain(name), _LONGEST)
    fence = "`"
    while fence in shown:
        fence += "`"
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def inert(text: str) -> str:
    r"""A sentence in which nothing acts as markup but its own quoted names.

    >>> print(inert("`a|b` calls <b>"))
    `a|b` calls \<b\>
    """
    sentence = "".join(pieces(text))
    return f"\\{sentence}" if sentence.startswith(ACTIVE_FIRST) else sentence


def pieces(text: str) -> Iterator[str]:
    """A sentence in its parts, each inert: words, and quoted names between them."""
    *pairs, last = _pairs(plain(text).split("`"))
    for said, name in pairs:
        yield _words(said)
        yield quoted(name)
    yield _words(last[0])


def _words(said: str) -> str:
    """What stands beside quoted names, in which nothing is markup, a mention or an address."""
    said = said.translate(_ACTIVE)
    for found, apart in _ADDRESSES:
        said = said.replace(found, apart)
    return said


def _pairs(parts: list[str]) -> list[tuple[str, str]]:
    """What is said before each quoted name, and the name; the rest comes last, without one."""
    paired = (len(parts) - 1) // 2 * 2
    rest = "'".join(parts[paired:])  # a backtick without its partner quotes nothing
    return [*zip(parts[:paired:2], parts[1:paired:2], strict=True), (rest, "")]
