"""How sure a difference is after some rounds, when one looks at it again and again.

Each round gives one difference of two runs. The interval is Wilcoxon's of their middle: it asks of
the noise only that it is as likely to make a difference larger as smaller, which holds where both
programs run in turn on one machine, whatever else it does.

Who stops as soon as an interval is narrow stops where chance made it narrow, and such intervals
hold the truth too rarely. So the rounds after which one looks are laid down before, and the looks
share the chance of an error among them: the intervals of all looks hold at once (Jennison and
Turnbull, "Interim analyses: the repeated confidence interval approach", 1989; what a look does not
use up is left to the next, as by Lan and DeMets, "Discrete sequential boundaries for
clinical trials", 1983).
"""

from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from typing import Final

import numpy as np

from selftime.arrays import Floats
from selftime.compare.noise import LEVEL

FEWEST: Final = 6
"""Rounds: of fewer there is no 95 % interval, as all signs are the same by chance too often."""
_FIRST: Final = 8
"""Rounds before the first look: what each of some looks may use up is enough from here on."""


def planned(most: int) -> tuple[int, ...]:
    """Rounds after which to look: 8, 12, 16, 24, 32 and so on, the last after `most`.

    They are even, so that each program was first as often as the other.
    """
    doubled = chain.from_iterable((_FIRST << n, (_FIRST << n) * 3 // 2) for n in count())
    early: list[int] = []
    for at in doubled:
        if at >= most:
            return (*early, most)
        early.append(at)
    raise AssertionError  # the doubled ones do not end


@dataclass(slots=True)
class Looks:
    """The looks at growing samples, and how much of the chance of an error they have used up."""

    most: int
    """Rounds at most."""
    used: float = 0.0
    taken: int = 0

    def is_due(self, rounds: int) -> bool:
        return rounds in planned(self.most)

    def look(self, *samples: Floats, last: bool = False) -> list[tuple[float, float] | None]:
        """The interval of the middle of each sample; None where rounds are too few for one.

        The last look uses up all that is left. Samples are other figures of the same rounds: each
        has its own 95 %.
        """
        self.taken += 1
        share = self.taken / len(planned(self.most))
        allowed = (1 - LEVEL) * (1.0 if last else min(share, 1.0)) - self.used
        size = samples[0].size
        outside = _outside(size, allowed)
        if outside is None:
            return [None for _ in samples]
        self.used += 2 * float(_chances(size)[outside])
        return [_bounds(sample, outside) for sample in samples]


def middle(sample: Floats) -> float:
    """The median of the means of all pairs, each with itself too (Hodges and Lehmann, 1963)."""
    return float(np.median(_pair_means(sample)))


def _bounds(sample: Floats, outside: int) -> tuple[float, float]:
    """The means of pairs from the one with `outside` below it to that with as many above it."""
    means = np.sort(_pair_means(sample))
    return float(means[outside]), float(means[means.size - 1 - outside])


def _pair_means(sample: Floats) -> Floats:
    first, second = np.triu_indices(sample.size)
    return np.asarray((sample[first] + sample[second]) / 2, np.float64)


def _outside(size: int, allowed: float) -> int | None:
    """How many means of pairs may lie below the interval, if it may miss by this chance."""
    fitting = int(np.searchsorted(2 * _chances(size), allowed * (1 + 1e-12), side="right"))
    return fitting - 1 if fitting else None


@cache
def _chances(size: int) -> Floats:
    """The chance of each sum of signed ranks or a smaller one (Wilcoxon, 1945), up to the half.

    Each rank is in the sum or is not, by a coin.
    """
    most = size * (size + 1) // 2
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    for rank in range(1, size + 1):
        with_it = np.zeros_like(chance)
        with_it[rank:] = chance[:-rank]
        chance = (chance + with_it) / 2
    return np.asarray(np.cumsum(chance)[: most // 2], np.float64)
