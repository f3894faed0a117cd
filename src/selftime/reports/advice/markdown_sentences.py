"""Writes sentences as Markdown that are cut where they are longer than a number of tokens."""

from typing import Final

from selftime.reports.advice.markdown import LINE_START_MARKUP_CHARACTERS, escaped_markdown_pieces
from selftime.reports.advice.tokens import estimate_max_tokens

_MAX_SENTENCE_TOKENS: Final = 240
"""Largest number of tokens of one sentence, not counting names that the sentence quotes."""
_MAX_READ_SENTENCE_CHARACTERS: Final = 4000
"""Largest number of characters of a sentence that are used; the rest is dropped."""


def shortened_markdown_sentence(text: str) -> str:
    """Returns the text escaped for Markdown and shortened, without cutting a quoted name."""
    shortened, remaining = "", _MAX_SENTENCE_TOKENS
    for piece in escaped_markdown_pieces(text[:_MAX_READ_SENTENCE_CHARACTERS]):
        tokens = estimate_max_tokens(piece)
        if tokens > remaining:
            words = "" if piece.startswith("`") else piece[:remaining]
            return f"{_escape_line_start(shortened + words)} …"
        shortened += piece
        remaining -= tokens
    return _escape_line_start(shortened)


def _escape_line_start(sentence: str) -> str:
    """Returns the sentence with an escape if its first character would start a list or heading."""
    return f"\\{sentence}" if sentence.startswith(LINE_START_MARKUP_CHARACTERS) else sentence
