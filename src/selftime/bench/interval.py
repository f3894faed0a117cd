"""Confidence intervals of a difference, valid when they are inspected repeatedly.

Each round gives one difference of two runs. The interval is Wilcoxon's for their centre: it only
assumes that noise is as likely to make a difference larger as smaller, which holds where both
programs run in turn on one machine, whatever else it does.

Stopping as soon as an interval is narrow selects intervals that are narrow by chance, and these
contain the true value too rarely. So the rounds with an inspection are fixed beforehand, and the
inspections share the allowed error probability: all intervals hold simultaneously (Jennison and
Turnbull, "Interim analyses: the repeated confidence interval approach", 1989; unused probability is
left to the next inspection, as by Lan and DeMets, "Discrete sequential boundaries for clinical
trials", 1983).
"""

from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from typing import Final

import numpy as np

from selftime.arrays import Floats
from selftime.compare.noise import CONFIDENCE_LEVEL

FEWEST_ROUNDS: Final = 6
"""The fewest rounds with a 95 % interval: in fewer, all signs agree by chance too often."""
_FIRST: Final = 8
"""Rounds before the first inspection: earlier, its share of the error probability is too small."""


def inspection_rounds(most: int) -> tuple[int, ...]:
    """Returns the numbers of rounds after which to inspect: 8, 12, 16, 24, 32, ..., `most`.

    They are even, so that each program was first equally often.
    """
    doubled = chain.from_iterable((_FIRST << n, (_FIRST << n) * 3 // 2) for n in count())
    early: list[int] = []
    for at in doubled:
        if at >= most:
            return (*early, most)
        early.append(at)
    raise AssertionError  # the sequence is infinite


@dataclass(slots=True)
class Inspections:
    """The inspections of a growing sample, and the error probability that they have used."""

    most: int
    """The most rounds."""
    used: float = 0.0
    taken: int = 0

    def is_due(self, rounds: int) -> bool:
        return rounds in inspection_rounds(self.most)

    def inspect(self, *samples: Floats, last: bool = False) -> list[tuple[float, float] | None]:
        """Returns the interval of the centre of each sample; None if there are too few rounds.

        The last inspection uses all remaining error probability. Samples are different figures of
        the same rounds: each has its own 95 % interval.
        """
        self.taken += 1
        share = self.taken / len(inspection_rounds(self.most))
        allowed = (1 - CONFIDENCE_LEVEL) * (1.0 if last else min(share, 1.0)) - self.used
        size = samples[0].size
        outside = _excluded_pairs(size, allowed)
        if outside is None:
            return [None for _ in samples]
        self.used += 2 * float(_cumulative_probabilities(size)[outside])
        return [_bounds(sample, outside) for sample in samples]


def pseudo_median(sample: Floats) -> float:
    """Returns the median of all pairs' means, with self-pairs (Hodges and Lehmann, 1963)."""
    return float(np.median(_pair_means(sample)))


def _bounds(sample: Floats, outside: int) -> tuple[float, float]:
    """Returns the pair means that have `outside` pair means below, or above them."""
    means = np.sort(_pair_means(sample))
    return float(means[outside]), float(means[means.size - 1 - outside])


def _pair_means(sample: Floats) -> Floats:
    first, second = np.triu_indices(sample.size)
    return np.asarray((sample[first] + sample[second]) / 2, np.float64)


def _excluded_pairs(size: int, allowed: float) -> int | None:
    """Returns how many pair means may be below the interval at this error probability."""
    fitting = int(
        np.searchsorted(2 * _cumulative_probabilities(size), allowed * (1 + 1e-12), side="right")
    )
    return fitting - 1 if fitting else None


@cache
def _cumulative_probabilities(size: int) -> Floats:
    """Returns cumulative probabilities of the signed-rank sum (Wilcoxon, 1945), lower half.

    Each rank is in the sum with probability one half.
    """
    most = size * (size + 1) // 2
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    for rank in range(1, size + 1):
        with_it = np.zeros_like(chance)
        with_it[rank:] = chance[:-rank]
        chance = (chance + with_it) / 2
    return np.asarray(np.cumsum(chance)[: most // 2], np.float64)
