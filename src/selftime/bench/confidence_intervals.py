"""Computes confidence intervals that stay valid although they are checked after several rounds.

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

from selftime.array_types import Floats
from selftime.compare.statistical_significance import CONFIDENCE_LEVEL

MIN_ROUNDS_FOR_INTERVAL: Final = 6
"""Smallest number of rounds with a 95 % confidence interval; with fewer rounds, chance too often
favours one program in all of them."""
_ROUNDS_BEFORE_FIRST_INSPECTION: Final = 8
"""Number of rounds after which the confidence interval is first checked; after fewer, the check
could use too little of the error probability."""


def inspection_rounds(max_rounds: int) -> tuple[int, ...]:
    """Returns the numbers of rounds after which the interval is checked: 8, 12, ..., `max_rounds`.

    They are even, so that each program was first equally often.
    """
    doubled = chain.from_iterable(
        (_ROUNDS_BEFORE_FIRST_INSPECTION << n, (_ROUNDS_BEFORE_FIRST_INSPECTION << n) * 3 // 2)
        for n in count()
    )
    early: list[int] = []
    for at in doubled:
        if at >= max_rounds:
            return (*early, max_rounds)
        early.append(at)
    raise AssertionError  # the sequence is infinite


@dataclass(slots=True)
class Inspections:
    """Computes confidence intervals after several rounds; all share one error probability."""

    max_rounds: int
    """Largest number of rounds of the bench."""
    used_error_probability: float = 0.0
    """Probability, used up by the inspections so far, that one of their intervals is wrong."""
    inspections_taken: int = 0

    def is_inspection_due(self, rounds: int) -> bool:
        return rounds in inspection_rounds(self.max_rounds)

    def confidence_intervals(
        self, *samples: Floats, is_last: bool = False
    ) -> list[tuple[float, float] | None]:
        """Returns a confidence interval of each sample's pseudo-median; None after too few rounds.

        The last inspection uses all remaining error probability. Samples are different figures of
        the same rounds: each has its own 95 % interval.
        """
        self.inspections_taken += 1
        share = self.inspections_taken / len(inspection_rounds(self.max_rounds))
        allowed = (1 - CONFIDENCE_LEVEL) * (
            1.0 if is_last else min(share, 1.0)
        ) - self.used_error_probability
        size = samples[0].size
        excluded_count = _pair_mean_count_below_interval(size, allowed)
        if excluded_count is None:
            return [None for _ in samples]
        self.used_error_probability += 2 * float(
            _signed_rank_cumulative_distribution(size)[excluded_count]
        )
        return [_pseudo_median_bounds(sample, excluded_count) for sample in samples]


def pseudo_median(sample: Floats) -> float:
    """Returns the median of the means of all pairs, self-pairs included (Hodges-Lehmann)."""
    return float(np.median(_pair_means(sample)))


def _pseudo_median_bounds(sample: Floats, excluded_count: int) -> tuple[float, float]:
    """Returns the (lowest, highest) pair mean left after dropping `excluded_count` on each side."""
    means = np.sort(_pair_means(sample))
    return float(means[excluded_count]), float(means[means.size - 1 - excluded_count])


def _pair_means(sample: Floats) -> Floats:
    first, second = np.triu_indices(sample.size)
    return np.asarray((sample[first] + sample[second]) / 2, np.float64)


def _pair_mean_count_below_interval(size: int, error_probability: float) -> int | None:
    """Returns how many pair means lie below the confidence interval; None without an interval."""
    fitting = int(
        np.searchsorted(
            2 * _signed_rank_cumulative_distribution(size),
            error_probability * (1 + 1e-12),
            side="right",
        )
    )
    return fitting - 1 if fitting else None


@cache
def _signed_rank_cumulative_distribution(size: int) -> Floats:
    """Returns the lower half of the cumulative distribution of Wilcoxon's signed-rank sum.

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
