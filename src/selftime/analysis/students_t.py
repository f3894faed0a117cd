"""Computes p-values and quantiles of Student's t-distribution."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_SIMPSON_INTEGRATION_POINTS: Final = 4_001
"""Number of points (odd) at which Simpson's rule evaluates the integrand; tails then agree with
SciPy to eight digits.
"""

_QUANTILE_INTEGRATION_CELLS: Final = 20_000
"""Number of intervals over which the integral is summed to find a quantile."""


def one_sided_t_test_p_value(values: NDArray[np.float64]) -> float:
    """Returns the probability of a mean at least this far above 0 if the true mean is 0.

    This is Student's one-sided t-test with t = mean / (s / sqrt(n)) and n - 1 degrees of freedom.
    Fewer than two values give 1.
    """
    if values.size < 2:
        return 1.0
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    if deviation == 0:
        return 0.0 if mean > 0 else 1.0
    return student_t_tail_probability(mean / (deviation / np.sqrt(values.size)), values.size - 1)


def student_t_tail_probability(t: float, degrees_of_freedom: float) -> float:
    """Returns the probability that a value of Student's t-distribution exceeds t.

    With v degrees of freedom it is the integral of cos(x)^(v - 1) from atan(t / sqrt(v)) to pi / 2,
    divided by that from -pi / 2 to pi / 2.
    """
    begin = float(np.arctan(t / np.sqrt(degrees_of_freedom)))
    return _cosine_power_integral(begin, degrees_of_freedom) / _cosine_power_integral(
        -np.pi / 2, degrees_of_freedom
    )


def student_t_quantile(probability_below: float, degrees_of_freedom: float) -> float:
    """Returns the t below which a value of Student's t-distribution lies with this probability.

    The integral of `student_t_tail_probability` is summed over cells, and the angle is interpolated
    between them.
    """
    ends = np.linspace(-np.pi / 2, np.pi / 2, _QUANTILE_INTEGRATION_CELLS + 1)
    middles = (ends[1:] + ends[:-1]) / 2
    below = np.append(0.0, np.cumsum(np.cos(middles) ** (degrees_of_freedom - 1)))
    angle = float(np.interp(probability_below, below / below[-1], ends))
    return float(np.sqrt(degrees_of_freedom) * np.tan(angle))


def _cosine_power_integral(begin: float, degrees_of_freedom: float) -> float:
    """Returns the integral of cos(x)^(degrees - 1) from `begin` to pi / 2, by Simpson's rule."""
    x = np.linspace(begin, np.pi / 2, _SIMPSON_INTEGRATION_POINTS)
    y = np.clip(np.cos(x), 0, None) ** (degrees_of_freedom - 1)
    weight = np.ones(_SIMPSON_INTEGRATION_POINTS)
    weight[1:-1:2], weight[2:-1:2] = 4, 2
    return float(np.sum(weight * y) * (x[1] - x[0]) / 3)
