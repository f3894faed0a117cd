"""How likely it is by chance alone that something looks as if it were there."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_POINTS: Final = 4_001
"""At which the integrand is taken, an odd number: tails agree with SciPy's to eight digits."""

_CELLS: Final = 20_000


def above_zero(values: NDArray[np.float64]) -> float:
    """Chance that the mean of so few values is so far above 0 if their true mean is 0.

    Student's t-test, one-sided, with t = mean / (s / sqrt(n)) and n - 1 degrees of freedom. Fewer
    than two values tell nothing: 1.
    """
    if values.size < 2:
        return 1.0
    mean, deviation = float(values.mean()), float(values.std(ddof=1))
    if deviation == 0:
        return 0.0 if mean > 0 else 1.0
    return student_tail(mean / (deviation / np.sqrt(values.size)), values.size - 1)


def student_tail(t: float, degrees: float) -> float:
    """How much of Student's distribution lies above t.

    With v degrees of freedom that is the integral of cos(x)^(v - 1) from atan(t / sqrt(v)) to
    pi / 2, over that from -pi / 2 to pi / 2.
    """
    begin = float(np.arctan(t / np.sqrt(degrees)))
    return _area(begin, degrees) / _area(-np.pi / 2, degrees)


def student_quantile(share: float, degrees: float) -> float:
    """The t below which so much of Student's distribution lies, right to 0.01 %.

    The integral of `student_tail` is added up over cells; the angle is found between their ends.
    """
    ends = np.linspace(-np.pi / 2, np.pi / 2, _CELLS + 1)
    middles = (ends[1:] + ends[:-1]) / 2
    below = np.append(0.0, np.cumsum(np.cos(middles) ** (degrees - 1)))
    angle = float(np.interp(share, below / below[-1], ends))
    return float(np.sqrt(degrees) * np.tan(angle))


def _area(begin: float, degrees: float) -> float:
    """Integral of cos(x)^(degrees - 1) from `begin` to pi / 2, by Simpson's rule."""
    x = np.linspace(begin, np.pi / 2, _POINTS)
    y = np.clip(np.cos(x), 0, None) ** (degrees - 1)
    weight = np.ones(_POINTS)
    weight[1:-1:2], weight[2:-1:2] = 4, 2
    return float(np.sum(weight * y) * (x[1] - x[0]) / 3)
