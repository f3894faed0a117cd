"""Escapes sentences and names from a trace for Markdown; names become code spans."""

from collections.abc import Iterator
from typing import Final

from selftime.reports.plain import cut_text_middle, plain

_MAX_QUOTED_NAME_CHARACTERS: Final = 120
"""Largest width of a quoted name in characters; longer ones lose their middle."""
_ZERO_WIDTH_SPACE: Final = "&#8203;"
"""HTML entity of a zero-width space; inserted, it keeps code hosts from making links of a text."""
_MENTION_ESCAPE_BY_CHARACTER: Final = {"@": f"@{_ZERO_WIDTH_SPACE}", "#": rf"\#{_ZERO_WIDTH_SPACE}"}
"""Replacements of `@` and `#`, so that code hosts see no mention of a person or an issue."""
_MARKDOWN_ESCAPE_BY_CHARACTER: Final = str.maketrans(
    {c: f"\\{c}" for c in r"\*_[]<>|~&$"} | _MENTION_ESCAPE_BY_CHARACTER
)
"""Replacements of characters that are markup within a line of Markdown or HTML."""
_LINK_START_REPLACEMENTS: Final = (
    ("://", f":{_ZERO_WIDTH_SPACE}//"),
    ("www.", f"www{_ZERO_WIDTH_SPACE}."),
)
"""Pairs of a link's start and its replacement, which code hosts do not turn into a link."""
LINE_START_MARKUP_CHARACTERS: Final = ("-", "+", "=")
"""Characters that are markup only at the start of a line."""


def code_span(name: str) -> str:
    """Returns a name, shortened, as a Markdown code span, even if it contains backticks."""
    shortened = cut_text_middle(plain(name), _MAX_QUOTED_NAME_CHARACTERS)
    fence = "`"
    while fence in shortened:
        fence += "`"
    padding = (
        " " if shortened.startswith("`") or shortened.endswith("`") or not shortened.strip() else ""
    )
    return f"{fence}{padding}{shortened}{padding}{fence}"


def escape_markdown(text: str) -> str:
    r"""Returns a sentence with its markup escaped, except for names in backticks (code spans).

    >>> print(escape_markdown("`a|b` calls <b>"))
    `a|b` calls \<b\>
    """
    sentence = "".join(escaped_markdown_pieces(text))
    return f"\\{sentence}" if sentence.startswith(LINE_START_MARKUP_CHARACTERS) else sentence


def escaped_markdown_pieces(text: str) -> Iterator[str]:
    """Yields a sentence in order: each escaped run of words, and each name in backticks."""
    *pairs, last = _pairs_of_words_and_quoted_name(plain(text).split("`"))
    for words, name in pairs:
        yield _escape_text_outside_code_spans(words)
        yield code_span(name)
    yield _escape_text_outside_code_spans(last[0])


def _escape_text_outside_code_spans(words: str) -> str:
    """Returns text outside of code spans with markup, mentions and links escaped."""
    words = words.translate(_MARKDOWN_ESCAPE_BY_CHARACTER)
    for link_start, broken_start in _LINK_START_REPLACEMENTS:
        words = words.replace(link_start, broken_start)
    return words


def _pairs_of_words_and_quoted_name(sentence_pieces: list[str]) -> list[tuple[str, str]]:
    """Splits a sentence into pairs (words, quoted name after them); the last is (words, "")."""
    paired_count = (len(sentence_pieces) - 1) // 2 * 2
    rest = "'".join(sentence_pieces[paired_count:])  # a backtick without its partner quotes nothing
    return [
        *zip(sentence_pieces[:paired_count:2], sentence_pieces[1:paired_count:2], strict=True),
        (rest, ""),
    ]
