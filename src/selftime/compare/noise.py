"""Test whether two recordings differ by more than their steps vary, and by how much.

All results are *after* minus *before*, and exactly negated if the two are swapped.
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

CONFIDENCE_LEVEL: Final = 0.95
"""The confidence level of the intervals."""
RESAMPLES: Final = 2_000
"""Bootstrap resamples: the ends of a 95 % interval then vary by a few percent of its width."""
_EXACT: Final = 400
"""Pairs of values up to which the exact distribution of U is used, if no two values are equal."""
_FEWEST: Final = 2
"""The fewest steps whose variation can be estimated."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The difference between the medians of two samples."""

    before: float
    after: float
    """Medians of the samples."""
    difference: float
    low: float | None
    high: float | None
    """The 95 % interval of the difference, from a bootstrap of both medians (Efron, 1979)."""
    chance: float | None
    """Two-sided p-value of the difference (Mann and Whitney, 1947).

    None where the samples are too small to be significant at all, such as three and three.
    """

    @property
    def is_significant(self) -> bool:
        """Whether both the interval and the p-value show a significant difference."""
        if self.chance is None or self.low is None or self.high is None:
            return False
        return self.chance < 1 - CONFIDENCE_LEVEL and (self.low > 0 or self.high < 0)


def shift(before: Floats, after: Floats) -> Shift:
    """Returns the difference between the medians of two samples.

    Args:
        before: Shape (n,), n > 0.
        after: Shape (m,), m > 0.
    """
    first, second = float(np.median(before)), float(np.median(after))
    low = high = chance = None
    if min(before.size, after.size) >= _FEWEST:
        apart = np.sort(_medians(after) - _medians(before))
        at = int((1 - CONFIDENCE_LEVEL) / 2 * RESAMPLES)
        low, high = float(apart[at]), float(apart[RESAMPLES - 1 - at])
        if 2 / comb(before.size + after.size, before.size) < 1 - CONFIDENCE_LEVEL:
            chance = mann_whitney(before, after)
    return Shift(first, second, second - first, low, high, chance)


def _medians(times: Floats) -> Floats:
    """Returns medians of bootstrap resamples, shape (RESAMPLES,); deterministic for equal input."""
    draw = np.random.default_rng(np.ascontiguousarray(times).view(np.uint64).tolist())
    return np.asarray(np.median(draw.choice(times, (RESAMPLES, times.size)), axis=1), np.float64)


def mann_whitney(before: Floats, after: Floats) -> float:
    """Returns the two-sided p-value of the Mann-Whitney U test.

    It is exact for small samples without ties; else it uses the normal distribution, corrected for
    ties and continuity.
    """
    n, m = before.size, after.size
    both = np.concatenate([before, after])
    values, times = np.unique(both, return_counts=True)
    below = np.searchsorted(np.sort(before), after, side="left")
    upto = np.searchsorted(np.sort(before), after, side="right")
    u = float(np.sum(below + upto)) / 2
    if values.size == both.size and n * m <= _EXACT:
        ways = _counts_of_u(n, m)
        least = int(min(u, n * m - u))
        return min(1.0, 2 * sum(ways[: least + 1]) / comb(n + m, n))
    ties = float(np.sum(times.astype(np.float64) ** 3 - times)) / ((n + m) * (n + m - 1))
    deviation = sqrt(max(n * m / 12 * (n + m + 1 - ties), 0.0))
    if deviation == 0:
        return 1.0
    z = max(abs(u - n * m / 2) - 0.5, 0.0) / deviation
    return 2 * NormalDist().cdf(-z)


@cache
def _counts_of_u(n: int, m: int) -> list[int]:
    """Returns the number of orders of n and m values for each U from 0 to n m.

    These are the coefficients of the Gaussian binomial, the product of (1 - x^(n + i)) / (1 - x^i)
    over i from 1 to m.
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
    """Mean and variance per step of many amounts, over the steps of a recording; shape (k,)."""

    mean: Floats
    variance: Floats
    steps: int


def mean_bounds(
    before: Spread, after: Spread, level: float = CONFIDENCE_LEVEL
) -> tuple[Floats, Floats]:
    """Returns the interval of each difference of means, by Welch (1947); NaN if unknown.

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
    reach = _half_widths(level)(np.maximum(degrees, 1.0)) * np.sqrt(whole)
    return difference - reach, difference + reach


@cache
def _half_widths(level: float) -> Callable[[Floats], Floats]:
    """Returns a function from degrees of freedom to half-widths, in standard errors.

    It interpolates on logarithmic scales, with an error of at most 0.02 %.
    """
    degrees = np.append(np.geomspace(1, 4, 80), np.geomspace(4.2, 400, 40))
    reach = np.array([student_quantile((1 + level) / 2, each) for each in degrees])
    at = np.log(np.append(degrees, 1e6))
    by = np.log(np.append(reach, NormalDist().inv_cdf((1 + level) / 2)))
    return lambda asked: np.exp(np.interp(np.log(asked), at, by))
