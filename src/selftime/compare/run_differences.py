"""Tests whether runs of a program take longer than other runs of it, by how runs vary.

Steps of one run share what differs between runs: the place of the process in memory, the cores that
it got, the temperature and the neighbours of the machine. So a run counts as one value, however
many steps it has (Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance
evaluation", OOPSLA 2007; Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM
2013). The logarithms of the values are compared by Student's t-test of two samples with one
variance, as a slow machine makes all differences larger in proportion. With a single later run that
is a prediction interval for it (Hahn and Meeker, "Statistical Intervals", 1991).
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from selftime.analysis.students_t import student_t_quantile, student_t_tail_probability
from selftime.array_types import Floats
from selftime.compare.statistical_significance import CONFIDENCE_LEVEL

MIN_RUNS_TO_ESTIMATE_VARIATION: Final = 3
"""Smallest number of earlier runs from which the variation between runs is estimated; of two, the
interval would reach to six times their difference and further."""

_LARGEST_EXPONENT: Final = 50.0
"""Exponent beyond which an increase is no more computed."""


@dataclass(frozen=True, slots=True)
class RunShift:
    """The difference of later runs from earlier ones, with its interval and its chance."""

    before: float
    after: float
    """Means of the two samples (`before` and `after`): geometric ones unless a value is 0."""
    low: float
    high: float
    """Upper bound of the 95 % interval of the difference (`low`: lower bound)."""
    chance: float
    """Probability of later runs at least this slow if nothing changed (one-sided)."""
    error: float
    """Standard error of the shift: of the logarithm unless a value is 0."""
    degrees_of_freedom: int
    is_of_logarithms: bool

    @property
    def difference(self) -> float:
        return self.after - self.before

    def least_increase_told(self, chance: float) -> float | None:
        """Returns by which share runs have to be slower to be told from chance; None if unknown."""
        reach = student_t_quantile(1 - chance, self.degrees_of_freedom) * self.error
        if self.is_of_logarithms:
            return float(np.expm1(min(reach, _LARGEST_EXPONENT)))
        return reach / self.before if self.before > 0 else None


def shift_between_runs(before: Floats, after: Floats) -> RunShift | None:
    """Returns how much later runs differ from earlier ones; None if these are too few.

    Args:
        before: One value for each earlier run.
        after: One value for each later run; one is enough.
    """
    if before.size < MIN_RUNS_TO_ESTIMATE_VARIATION or not after.size:
        return None
    is_positive = min(before.min(), after.min()) > 0
    first, second = (np.log(one) if is_positive else one for one in (before, after))
    shift = float(second.mean() - first.mean())
    degrees = before.size + after.size - 2
    squares = sum(float(np.sum((one - one.mean()) ** 2)) for one in (first, second))
    error = sqrt(squares / degrees * (1 / before.size + 1 / after.size))
    reach = student_t_quantile((1 + CONFIDENCE_LEVEL) / 2, degrees) * error
    if error > 0:
        chance = student_t_tail_probability(shift / error, degrees)
    else:
        chance = 0.0 if shift > 0 else 1.0
    middle = float(first.mean())
    ends = [middle, middle + shift, middle + shift - reach, middle + shift + reach]
    start, end, low, high = (float(np.exp(one)) if is_positive else one for one in ends)
    return RunShift(start, end, low - start, high - start, chance, error, degrees, is_positive)


def interval_of_runs(values: Floats) -> tuple[float, float] | None:
    """Returns the 95 % interval of the mean over runs; None if these are too few."""
    if values.size < MIN_RUNS_TO_ESTIMATE_VARIATION:
        return None
    reach = student_t_quantile((1 + CONFIDENCE_LEVEL) / 2, values.size - 1)
    reach *= float(values.std(ddof=1)) / sqrt(values.size)
    middle = float(values.mean())
    return middle - reach, middle + reach
