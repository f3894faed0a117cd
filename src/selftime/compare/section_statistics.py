"""Computes how certain a figure of step durations is, although neighbours are alike.

Durations of successive steps are not independent: a slow disk or a hot processor slows many in a
row, and an interval that takes each as an observation of its own is too narrow. So the series is
cut into sections of equal length, and the figure of each section is one observation (batch means,
for quantiles known as sectioning; Asmussen and Glynn, Stochastic Simulation, 2007). Where sections
are so short that even they resemble their neighbours, their variance is scaled by
(1 + r) / (1 - r), r the correlation of one section with the next.

Of 400 pairs of equal series in which each value is correlated with the next by 0.9, 1.5 % are taken
for different at a level of 99 % if they have 300 values, 0.2 % if they have 3,000.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from selftime.array_types import Floats
from selftime.compare.statistical_significance import MeanAndVariance, difference_intervals

Statistic: TypeAlias = Callable[[Floats], float]
"""A figure of a series, such as its median."""

MAX_SECTIONS: Final = 20
"""Largest number of sections; more would be shorter, and the interval hardly narrower."""
MIN_SECTIONS: Final = 5
"""Smallest number of sections for an interval; with fewer it is too wide to be of use."""
_MAX_CORRELATION: Final = 0.9
"""Largest correlation of sections that is taken into account: it widens the interval 4.4 times."""


@dataclass(frozen=True, slots=True)
class SectionedFigure:
    """A figure of a series and of each of its sections."""

    whole: float
    """The figure of the whole series."""
    sections: tuple[float, ...]
    """The figure of each section; empty if the series is too short for sections."""

    @property
    def spread(self) -> MeanAndVariance | None:
        """The figure with the variance of its sections around it; None without sections."""
        if len(self.sections) < MIN_SECTIONS:
            return None
        apart = np.array(self.sections) - self.whole
        variance = float(np.sum(apart**2)) / (apart.size - 1)
        correlation = _correlation_with_next(apart)
        variance *= (1 + correlation) / (1 - correlation)
        return MeanAndVariance(np.array([self.whole]), np.array([variance]), apart.size)

    def interval(self, level: float) -> tuple[float, float] | None:
        """Returns the bounds of the figure's confidence interval; None without sections."""
        spread = self.spread
        if spread is None:
            return None
        # A figure of no variance stands for a constant: the difference from 0 is the figure itself.
        nothing = MeanAndVariance(np.zeros(1), np.zeros(1), spread.step_count)
        low, high = difference_intervals(nothing, spread, level)
        return float(low[0]), float(high[0])


def _correlation_with_next(apart: Floats) -> float:
    """Returns the correlation of each section's deviation with the next, 0 to `_MAX_CORRELATION`.

    The estimate from b values is too low by about 1 / b, which is added.
    """
    whole = float(np.sum(apart**2))
    if whole == 0:
        return 0.0
    correlation = float(np.sum(apart[1:] * apart[:-1])) / whole + 1 / apart.size
    return min(max(correlation, 0.0), _MAX_CORRELATION)


def sectioned_figure(series: Floats, statistic: Statistic, min_section: int) -> SectionedFigure:
    """Returns a figure of a series of one or more values, and of each of its sections.

    Args:
        series: The values in order of time.
        statistic: Computes the figure of some values.
        min_section: The fewest values of a section; a 95th percentile needs 20.
    """
    count = min(MAX_SECTIONS, series.size // min_section)
    sections = np.array_split(series, count) if count >= MIN_SECTIONS else []
    return SectionedFigure(statistic(series), tuple(statistic(each) for each in sections))


def difference_interval(
    before: SectionedFigure, after: SectionedFigure, level: float
) -> tuple[float, float] | None:
    """Returns the confidence interval of `after` minus `before`.

    None if either has no sections.
    """
    sides = before.spread, after.spread
    if sides[0] is None or sides[1] is None:
        return None
    low, high = difference_intervals(sides[0], sides[1], level)
    return float(low[0]), float(high[0])
