"""What a check of a recording finds, and how much of a loss is tolerable."""

from typing import Final, Literal, NamedTuple, TypeAlias

import polars as pl

from selftime.units import count_text

Verdict: TypeAlias = Literal["good", "degraded", "unusable"]

FEW: Final = 0.01
"""What is missing or wrong up to this share changes no figure by more than the noise of steps."""
MANY: Final = 0.2
"""Beyond this share idle time may as well be work that was not recorded: nothing can be said."""

_ORDER: Final[tuple[Verdict, ...]] = ("good", "degraded", "unusable")
_EXAMPLES: Final = 10


class Check(NamedTuple):
    """One thing that was looked at, in the columns of the view."""

    check: str
    verdict: Verdict
    text: str
    value: float | None = None
    affects: str | None = None
    """The figures that are missing or doubtful."""
    slices: str | None = None
    """Examples, by id."""


def graded(share: float) -> Verdict:
    """The verdict on a share that is missing or wrong.

    >>> graded(0.01), graded(0.02), graded(0.5)
    ('good', 'degraded', 'unusable')
    """
    return "good" if share <= FEW else "degraded" if share <= MANY else "unusable"


def severity(verdict: Verdict) -> int:
    """How bad a verdict is, from 0.

    >>> severity("good"), severity("unusable")
    (0, 2)
    """
    return _ORDER.index(verdict)


def worst(*verdicts: Verdict) -> Verdict:
    """The worst of some verdicts.

    >>> worst("good", "unusable", "degraded")
    'unusable'
    """
    return max(verdicts, key=severity)


def examples(ids: pl.Series) -> str:
    """The first few ids, as text.

    >>> examples(pl.Series([3, 1, 2]))
    '1 2 3'
    """
    first = ids.sort().head(_EXAMPLES).to_list()
    more = ids.len() - len(first)
    return " ".join(map(str, first)) + (f" and {more:,} more" if more else "")


def several(count: int, what: str) -> str:
    """So many of something.

    >>> several(1, "launch"), several(1200, "launch"), several(2, "step")
    ('1 launch', '1,200 launches', '2 steps')
    """
    ending = "" if count == 1 else "es" if what.endswith(("ch", "s")) else "s"
    return f"{count_text(count)} {what}{ending}"
