"""Finds at which of successive values, such as the step times of commits, their level changes.

The method is E-divisive (Matteson and James, "A nonparametric approach for multiple change point
analysis of multivariate data", JASA 109, 2014), as MongoDB uses it for commits (Daly, Brown, Ingo,
O'Leary and Bradford, "The use of change point detection to identify software performance
regressions in a continuous integration system", ICPE 2020): a series is split where the energy
distance of a side to what follows is largest, if random orders of the same values give such a
distance too rarely; both sides are then looked at alone. Nothing is assumed of the noise but that
its order is random.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from selftime.array_types import Floats

MIN_SEGMENT_VALUES: Final = 3
"""Smallest number of values on either side of a change: a single slow run is no change."""
CHANCE_OF_FALSE_CHANGE: Final = 0.002
"""Probability with which a change is found in a series that has none."""
_PERMUTATIONS: Final = 999
"""Number of random orders; they end early where the change cannot be found any more."""
MAX_VALUES: Final = 120
"""Largest number of values that are looked at; the time grows with their square."""


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first value of a new level, and the chance that random order gives such a change."""

    index: int
    chance: float


def change_points(values: Floats) -> tuple[ChangePoint, ...]:
    """Returns where the level of a series changes, in order; at most `MAX_VALUES` values."""
    draw = np.random.default_rng(0)  # the same series always has the same changes
    scaled = np.log(values) if values.size and values.min() > 0 else values
    found: list[ChangePoint] = []
    open_segments = [(0, values.size)]
    while open_segments:
        begin, end = open_segments.pop()
        split = _significant_split(scaled[begin:end], draw)
        if split is not None:
            at = begin + split.index
            found.append(ChangePoint(at, split.chance))
            open_segments += [(begin, at), (at, end)]
    return tuple(sorted(found, key=lambda one: one.index))


def _significant_split(values: Floats, draw: np.random.Generator) -> ChangePoint | None:
    """Returns the best split of a segment; None if chance explains it."""
    if values.size < 2 * MIN_SEGMENT_VALUES or not np.ptp(values):
        return None
    apart = np.abs(values[:, None] - values[None, :])
    index, distance = _best_split(apart)
    larger = 0
    for _ in range(_PERMUTATIONS):
        order = draw.permutation(values.size)
        larger += _best_split(apart[np.ix_(order, order)])[1] >= distance * (1 - 1e-12)
        if (larger + 1) / (_PERMUTATIONS + 1) > CHANCE_OF_FALSE_CHANGE:
            return None
    return ChangePoint(index, (larger + 1) / (_PERMUTATIONS + 1))


def _best_split(apart: Floats) -> tuple[int, float]:
    """Returns the size of the left side with the largest energy distance, and the distance.

    The right side may end before the values do, so that a level which is left again is seen, too.

    Args:
        apart: The absolute differences of all pairs of values; shape (n, n).
    """
    count = apart.shape[0]
    sums = apart.cumsum(axis=0).cumsum(axis=1)
    within = np.diagonal(sums)
    left = np.arange(MIN_SEGMENT_VALUES, count - MIN_SEGMENT_VALUES + 1)[:, None]
    ends = np.arange(2 * MIN_SEGMENT_VALUES, count + 1)[None, :]
    right = np.maximum(ends - left, 2)
    within_left = within[left - 1]
    between = sums[left - 1, ends - 1] - within_left
    within_right = within[ends - 1] - within_left - 2 * between
    distance = (
        2 * between / (left * right)
        - within_left / (left * (left - 1))
        - within_right / (right * (right - 1))
    ) * (left * right / (left + right))
    distance[ends - left < MIN_SEGMENT_VALUES] = -np.inf
    best, _ = np.unravel_index(int(np.argmax(distance)), distance.shape)
    return int(left[best, 0]), float(distance.max())
