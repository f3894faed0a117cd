"""Tests whether the step times of two recordings differ significantly, and estimates how much.

All results are *after* minus *before*, and exactly negated if the two are swapped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import comb, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from selftime.analysis.students_t import student_t_quantile
from selftime.array_types import Floats

CONFIDENCE_LEVEL: Final = 0.95
"""Confidence level of the reported intervals, as a share: 95 %."""
BOOTSTRAP_RESAMPLES: Final = 2_000
"""Number of random resamples from which a bootstrap interval is computed."""
_MAX_VALUE_PAIRS_FOR_EXACT_P_VALUE: Final = 400
"""Largest product of sample sizes for which the p-value is exact, not a normal approximation."""
_MIN_STEPS_TO_ESTIMATE_VARIATION: Final = 2
"""Smallest number of steps from which the variation between steps can be estimated."""


@dataclass(frozen=True, slots=True)
class MedianShift:
    """The difference between two samples' medians, with its confidence interval and p-value."""

    before: float
    after: float
    """Medians of the two samples (`before` and `after`), in the samples' unit."""
    difference: float
    low: float | None
    high: float | None
    """Bounds (`low` and `high`) of the 95 % bootstrap interval of the difference; None if
    unknown."""
    p_value: float | None
    """Two-sided p-value of the Mann-Whitney test for a difference; None if unknown.

    None where the samples are too small to be significant at all, such as three and three.
    """

    @property
    def is_significant(self) -> bool:
        """Returns whether both the interval and the p-value show a significant difference."""
        if self.p_value is None or self.low is None or self.high is None:
            return False
        return self.p_value < 1 - CONFIDENCE_LEVEL and (self.low > 0 or self.high < 0)


def median_shift(before: Floats, after: Floats) -> MedianShift:
    """Returns the difference between two samples' medians, its confidence interval and p-value.

    Args:
        before: Shape (n,), n > 0.
        after: Shape (m,), m > 0.
    """
    first, second = float(np.median(before)), float(np.median(after))
    low = high = p_value = None
    if min(before.size, after.size) >= _MIN_STEPS_TO_ESTIMATE_VARIATION:
        apart = np.sort(_bootstrap_medians(after) - _bootstrap_medians(before))
        at = int((1 - CONFIDENCE_LEVEL) / 2 * BOOTSTRAP_RESAMPLES)
        low, high = float(apart[at]), float(apart[BOOTSTRAP_RESAMPLES - 1 - at])
        if 2 / comb(before.size + after.size, before.size) < 1 - CONFIDENCE_LEVEL:
            p_value = mann_whitney_p_value(before, after)
    return MedianShift(first, second, second - first, low, high, p_value)


def _bootstrap_medians(times: Floats) -> Floats:
    """Returns the medians of BOOTSTRAP_RESAMPLES random resamples, in the unit of `times`."""
    draw = np.random.default_rng(np.ascontiguousarray(times).view(np.uint64).tolist())
    return np.asarray(
        np.median(draw.choice(times, (BOOTSTRAP_RESAMPLES, times.size)), axis=1), np.float64
    )


def mann_whitney_p_value(before: Floats, after: Floats) -> float:
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
    if values.size == both.size and n * m <= _MAX_VALUE_PAIRS_FOR_EXACT_P_VALUE:
        ways = _number_of_orders_by_u_statistic(n, m)
        least = int(min(u, n * m - u))
        return min(1.0, 2 * sum(ways[: least + 1]) / comb(n + m, n))
    ties = float(np.sum(times.astype(np.float64) ** 3 - times)) / ((n + m) * (n + m - 1))
    deviation = sqrt(max(n * m / 12 * (n + m + 1 - ties), 0.0))
    if deviation == 0:
        return 1.0
    z = max(abs(u - n * m / 2) - 0.5, 0.0) / deviation
    return 2 * NormalDist().cdf(-z)


@cache
def _number_of_orders_by_u_statistic(n: int, m: int) -> list[int]:
    """Returns for each Mann-Whitney U from 0 to n * m the number of orderings that give this U.

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
class MeanAndVariance:
    """Means and variances of k amounts over the steps of a recording; arrays of shape (k,)."""

    mean: Floats
    variance: Floats
    step_count: int
    """Number of steps over which mean and variance are taken."""


def difference_intervals(
    before: MeanAndVariance, after: MeanAndVariance, level: float = CONFIDENCE_LEVEL
) -> tuple[Floats, Floats]:
    """Returns lower and upper bounds of the intervals of k differences of means, by Welch's t-test.

    s^2 = v1 / n1 + v2 / n2 has (s^2)^2 / ((v1 / n1)^2 / (n1 - 1) + (v2 / n2)^2 / (n2 - 1)) degrees
    of freedom.
    """
    difference = after.mean - before.mean
    if min(before.step_count, after.step_count) < _MIN_STEPS_TO_ESTIMATE_VARIATION:
        unknown = np.full(difference.size, np.nan)
        return unknown, unknown
    parts = before.variance / before.step_count, after.variance / after.step_count
    whole = parts[0] + parts[1]
    below = parts[0] ** 2 / (before.step_count - 1) + parts[1] ** 2 / (after.step_count - 1)
    degrees = np.divide(whole**2, below, out=np.ones_like(whole), where=below > 0)
    reach = _interval_half_width_function(level)(np.maximum(degrees, 1.0)) * np.sqrt(whole)
    return difference - reach, difference + reach


@cache
def _interval_half_width_function(level: float) -> Callable[[Floats], Floats]:
    """Returns a function of degrees of freedom: half the t interval's width, in standard errors.

    It interpolates on logarithmic scales, with an error of at most 0.02 %.
    """
    degrees = np.append(np.geomspace(1, 4, 80), np.geomspace(4.2, 400, 40))
    reach = np.array([student_t_quantile((1 + level) / 2, each) for each in degrees])
    at = np.log(np.append(degrees, 1e6))
    by = np.log(np.append(reach, NormalDist().inv_cdf((1 + level) / 2)))
    return lambda asked: np.exp(np.interp(np.log(asked), at, by))
