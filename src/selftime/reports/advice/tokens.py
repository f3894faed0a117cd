"""How many tokens of a language model a text is, at most, whatever the model.

No vocabulary is asked for that: each model has its own. A token is at least one byte of UTF-8, so
bytes are a bound; for ordinary English it is four times too high. So a word that reads like one
counts less: it has letters only, vowels among them, and no capital inside. `tests/reports/
test_tokens.py` holds the bound against the vocabularies of three models, on ordinary text, on
names and paths, and on what is made to be expensive.
"""

from itertools import groupby
from math import ceil
from typing import Final

_A_LETTER: Final = 0.6
"""Tokens of a letter in a word that reads like one: longer words are made of pieces."""
_LEAST_VOWELS: Final = 0.25
_MOST_LETTERS: Final = 14
"""Words that are longer are counted by bytes: they are names."""
_VOWELS: Final = frozenset("aeiouyAEIOUY")
_LETTER, _BLANK, _ELSE = 0, 1, 2


def most_tokens(text: str) -> int:
    """The most tokens that a text can be.

    >>> most_tokens("The host waits for a copy."), most_tokens("xqzjk_1"), most_tokens("漢")
    (14, 7, 3)
    """
    runs = [(kind, "".join(run)) for kind, run in groupby(text, _kind)]
    following = [*(kind for kind, _ in runs[1:]), _ELSE]
    return ceil(sum(map(_of_run, runs, following)))


def _kind(character: str) -> int:
    if character == " ":
        return _BLANK
    return _LETTER if character.isascii() and character.isalpha() else _ELSE


def _of_run(told: tuple[int, str], following: int) -> float:
    kind, run = told
    if kind == _BLANK:  # the last one before a word is a part of it
        return len(run) - (following == _LETTER)
    if kind == _LETTER and _reads(run):
        return max(1.0, _A_LETTER * len(run))
    return len(run.encode("utf-8", "surrogatepass"))


def _reads(word: str) -> bool:
    if len(word) > _MOST_LETTERS or not (word[1:].islower() or len(word) == 1):
        return False
    return len(word) <= 2 or sum(letter in _VOWELS for letter in word) >= _LEAST_VOWELS * len(word)
