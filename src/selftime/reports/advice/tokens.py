"""Estimates how many tokens a text has at most, for the tokenizer of any language model.

No model's vocabulary is used. A token is at least one byte of UTF-8, so the number of bytes is an
upper bound; for ordinary English it is four times too high. Ordinary words therefore count less:
words of letters only, with vowels, and without capitals inside. `tests/reports/test_tokens.py`
compares the bound with the vocabularies of three models, on ordinary text, on names and paths, and
on adversarial text.
"""

from itertools import groupby
from math import ceil
from typing import Final

_TOKENS_PER_LETTER: Final = 0.6
"""Estimated tokens per letter of an ordinary English word; long words take several tokens."""
_MIN_VOWEL_SHARE_OF_WORD: Final = 0.25
"""Smallest share of vowels in the letters of an ordinary word."""
_MAX_ORDINARY_WORD_LETTERS: Final = 14
"""Largest number of letters of an ordinary word; in longer words every byte counts as a token."""
_VOWELS: Final = frozenset("aeiouyAEIOUY")
_LETTER, _BLANK, _OTHER = 0, 1, 2


def estimate_max_tokens(text: str) -> int:
    """Returns an upper bound of the number of tokens in a text.

    >>> texts = "The host waits for a copy.", "xqzjk_1", "漢"
    >>> tuple(estimate_max_tokens(text) for text in texts)
    (14, 7, 3)
    """
    runs = [(kind, "".join(run)) for kind, run in groupby(text, _character_kind_code)]
    following_kinds = [*(kind for kind, _ in runs[1:]), _OTHER]
    return ceil(sum(map(_estimated_tokens_of_character_run, runs, following_kinds)))


def _character_kind_code(character: str) -> int:
    """Returns a code for the kind of a character: blank, ASCII letter, or other."""
    if character == " ":
        return _BLANK
    return _LETTER if character.isascii() and character.isalpha() else _OTHER


def _estimated_tokens_of_character_run(kind_and_run: tuple[int, str], following_kind: int) -> float:
    """Returns the estimated number of tokens of a run of letters, blanks or other characters."""
    kind, run = kind_and_run
    if kind == _BLANK:  # the last blank before a word is part of its token
        return len(run) - (following_kind == _LETTER)
    if kind == _LETTER and _is_ordinary_word(run):
        return max(1.0, _TOKENS_PER_LETTER * len(run))
    return len(run.encode("utf-8", "surrogatepass"))


def _is_ordinary_word(word: str) -> bool:
    """Returns whether a word looks like ordinary English: short, lower case, with vowels."""
    if len(word) > _MAX_ORDINARY_WORD_LETTERS or not (word[1:].islower() or len(word) == 1):
        return False
    return len(word) <= 2 or sum(
        letter in _VOWELS for letter in word
    ) >= _MIN_VOWEL_SHARE_OF_WORD * len(word)
