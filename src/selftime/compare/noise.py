"""Whether two recordings differ by more than their steps vary, and by how much.

Everything here is told of *after* less *before*, and is exactly the negative where the two are
exchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import comb, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from selftime.analysis.students_t import student_quantile
from selftime.arrays import Floats

LEVEL: Final = 0.95
"""Of the intervals."""
RESAMPLES: Final = 2_000
"""Enough for the ends of a 95 % interval to vary by a few percent of its width."""
_EXACT: Final = 400
"""Pairs of values up to which the distribution of U is counted out, if no two values are equal."""
_FEWEST: Final = 2
"""Steps; of fewer there is no telling what varies."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How the middle of one sample lies to that of another."""

    before: float
    after: float
    """Medians."""
    difference: float
    low: float | None
    high: float | None
    """The 95 % interval of the difference: of a bootstrap of both medians (Efron, 1979)."""
    chance: float | None
    """Two-sided, of samples so far apart if nothing changed (Mann and Whitney, 1947).

    None where there are so few that none could be far enough apart: three and three, for one.
    """

    @property
    def is_told(self) -> bool:
        """Whether both say that it is no chance."""
        if self.chance is None or self.low is None or self.high is None:
            return False
        return self.chance < 1 - LEVEL and (self.low > 0 or self.high < 0)


def shift(before: Floats, after: Floats) -> Shift:
    """Compare two samples by their middles.

    Args:
        before: Shape (n,), n > 0.
        after: Shape (m,), m > 0.
    """
    first, second = float(np.median(before)), float(np.median(after))
    low = high = chance = None
    if min(before.size, after.size) >= _FEWEST:
        apart = np.sort(_medians(after) - _medians(before))
        at = int((1 - LEVEL) / 2 * RESAMPLES)
        low, high = float(apart[at]), float(apart[RESAMPLES - 1 - at])
        if 2 / comb(before.size + after.size, before.size) < 1 - LEVEL:
            chance = mann_whitney(before, after)
    return Shift(first, second, second - first, low, high, chance)


def _medians(times: Floats) -> Floats:
    """Medians of resamples with replacement, shape (RESAMPLES,); the same of the same times."""
    draw = np.random.default_rng(np.ascontiguousarray(times).view(np.uint64).tolist())
    return np.asarray(np.median(draw.choice(times, (RESAMPLES, times.size)), axis=1), np.float64)


def mann_whitney(before: Floats, after: Floats) -> float:
    """Two-sided chance of samples whose ranks are so far apart, if both are drawn from one.

    Counted out where both are small and no two values are equal; else by the normal distribution,
    corrected for ties and by a half for continuity.
    """
    n, m = before.size, after.size
    both = np.concatenate([before, after])
    values, times = np.unique(both, return_counts=True)
    below = np.searchsorted(np.sort(before), after, side="left")
    upto = np.searchsorted(np.sort(before), after, side="right")
    u = float(np.sum(below + upto)) / 2
    if values.size == both.size and n * m <= _EXACT:
        ways = _ways(n, m)
        least = int(min(u, n * m - u))
        return min(1.0, 2 * sum(ways[: least + 1]) / comb(n + m, n))
    ties = float(np.sum(times.astype(np.float64) ** 3 - times)) / ((n + m) * (n + m - 1))
    deviation = sqrt(max(n * m / 12 * (n + m + 1 - ties), 0.0))
    if deviation == 0:
        return 1.0
    z = max(abs(u - n * m / 2) - 0.5, 0.0) / deviation
    return 2 * NormalDist().cdf(-z)


@cache
def _ways(n: int, m: int) -> list[int]:
    """In how many orders of n and m values U is 0, 1, …, n m: the Gaussian binomial's coefficients.

    It is the product of (1 - x^(n + i)) / (1 - x^i) over i from 1 to m.
    """
    ways = [1] + [0] * (n * m)
    for i in range(1, m + 1):
        for at in range(n * m, n + i - 1, -1):
            ways[at] -= ways[at - n - i]
        for at in range(i, n * m + 1):
            ways[at] += ways[at - i]
    return ways


@dataclass(frozen=True, slots=True)
class Spread:
    """Of many amounts a step: the mean and variance over the steps of one recording, shape (k,)."""

    mean: Floats
    variance: Floats
    steps: int


def mean_bounds(before: Spread, after: Spread, level: float = LEVEL) -> tuple[Floats, Floats]:
    """The interval of each difference of means; NaN where steps are too few (Welch, 1947).

    s^2 = v1 / n1 + v2 / n2 has (s^2)^2 / ((v1 / n1)^2 / (n1 - 1) + (v2 / n2)^2 / (n2 - 1)) degrees
    of freedom.
    """
    difference = after.mean - before.mean
    if min(before.steps, after.steps) < _FEWEST:
        unknown = np.full(difference.size, np.nan)
        return unknown, unknown
    parts = before.variance / before.steps, after.variance / after.steps
    whole = parts[0] + parts[1]
    below = parts[0] ** 2 / (before.steps - 1) + parts[1] ** 2 / (after.steps - 1)
    degrees = np.divide(whole**2, below, out=np.ones_like(whole), where=below > 0)
    reach = _reaches(level)(np.maximum(degrees, 1.0)) * np.sqrt(whole)
    return difference - reach, difference + reach


@cache
def _reaches(level: float) -> Callable[[Floats], Floats]:
    """How many standard errors an interval reaches to either side, by degrees of freedom.

    Its logarithm is drawn straight over that of the degrees between points, right to 0.02 %.
    """
    degrees = np.append(np.geomspace(1, 4, 80), np.geomspace(4.2, 400, 40))
    reach = np.array([student_quantile((1 + level) / 2, each) for each in degrees])
    at = np.log(np.append(degrees, 1e6))
    by = np.log(np.append(reach, NormalDist().inv_cdf((1 + level) / 2)))
    return lambda asked: np.exp(np.interp(np.log(asked), at, by))
