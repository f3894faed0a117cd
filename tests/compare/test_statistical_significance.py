"""What is told of noise: against counting by hand, printed tables, and many drawn pairs."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from selftime.compare import statistical_significance
from selftime.compare.amounts_per_step import AmountsPerStep, mean_and_variance_over_steps
from selftime.compare.statistical_significance import (
    MeanAndVariance,
    difference_intervals,
    mann_whitney_p_value,
    median_shift,
)
from selftime.nesting import NO_SLICE

PAIRS = 100


def counted_out(before: list[float], after: list[float]) -> float:
    """The chance by looking at every way to deal the values out."""
    both, n = np.array([*before, *after]), len(before)

    def u(first: tuple[int, ...]) -> float:
        chosen = np.zeros(both.size, bool)
        chosen[list(first)] = True
        return float(sum((both[~chosen][:, None] > both[chosen]).sum(axis=1)))

    found = u(tuple(range(n)))
    ways = [u(first) for first in combinations(range(both.size), n)]
    least = min(sum(way <= found for way in ways), sum(way >= found for way in ways))
    return min(1.0, 2 * least / comb(both.size, n))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 6), (1, 5), (5, 5)])
def test_few_values_are_counted_out(seed: int, n: int, m: int) -> None:
    draw = np.random.default_rng(seed)
    before, after = draw.normal(size=n), draw.normal(0.5, size=m)
    assert mann_whitney_p_value(before, after) == pytest.approx(
        counted_out(before.tolist(), after.tolist())
    )


@pytest.mark.parametrize("apart", [0.0, 0.4, 0.8])
def test_the_normal_distribution_is_near_to_counting(
    apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(0)
    before, after = draw.normal(size=20), draw.normal(apart, size=20)
    exact = mann_whitney_p_value(before, after)
    monkeypatch.setattr(statistical_significance, "_MAX_VALUE_PAIRS_FOR_EXACT_P_VALUE", 0)
    assert mann_whitney_p_value(before, after) == pytest.approx(exact, rel=0.05, abs=5e-3)


def test_values_that_are_all_equal_tell_nothing() -> None:
    assert mann_whitney_p_value(np.ones(9), np.ones(7)) == 1.0
    found = median_shift(np.ones(9), np.ones(7))
    assert (found.difference, found.low, found.high, found.is_significant) == (0.0, 0.0, 0.0, False)


def test_a_sample_is_itself() -> None:
    times = np.random.default_rng(3).normal(100, 5, size=12)
    found = median_shift(times, times.copy())
    assert (found.difference, found.low, found.high) == (0.0, 0.0, 0.0)
    assert found.p_value == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_other_way_round_is_the_negative(seed: int) -> None:
    draw = np.random.default_rng(seed)
    before, after = draw.normal(100, 5, size=9), draw.normal(104, 5, size=14)
    there, back = median_shift(before, after), median_shift(after, before)
    assert (back.before, back.after) == (there.after, there.before)
    assert back.difference == -there.difference
    assert there.low is not None
    assert there.high is not None
    assert (back.low, back.high) == (-there.high, -there.low)
    assert back.p_value == pytest.approx(there.p_value)
    assert back.is_significant == there.is_significant


@pytest.mark.parametrize(
    ("n", "m", "is_enough"),
    [(3, 3, False), (3, 4, False), (4, 4, True), (3, 5, True), (2, 7, False)],
)
def test_what_could_never_be_told_is_unknown_and_no_chance(n: int, m: int, is_enough: bool) -> None:
    found = median_shift(np.linspace(1, 1.01, n), np.linspace(9, 9.01, m))
    assert (found.p_value is not None) == is_enough == found.is_significant


def test_one_step_tells_no_noise() -> None:
    found = median_shift(np.array([1.0]), np.array([2.0, 3.0]))
    assert (found.difference, found.low, found.p_value, found.is_significant) == (
        1.5,
        None,
        None,
        False,
    )


@pytest.mark.parametrize("steps", [8, 30])
@pytest.mark.parametrize("heavy", [False, True])
def test_pairs_of_one_distribution_and_of_two(steps: int, heavy: bool) -> None:
    draw = np.random.default_rng(1)

    def sample(middle: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        times = draw.normal(middle, 0.03 * 100, size=steps)
        if heavy:  # now and then a step is held up
            times += np.where(draw.random(steps) < 0.1, draw.exponential(30, size=steps), 0)
        return times

    false = sum(median_shift(sample(100), sample(100)).is_significant for _ in range(PAIRS))
    found = [median_shift(sample(100), sample(110)) for _ in range(PAIRS)]
    assert false <= 5
    least = 95 if steps > 8 or not heavy else 85  # one of eight steps may be another's ten percent
    assert sum(one.is_significant and one.difference > 0 for one in found) >= least


@pytest.mark.parametrize(
    ("degrees", "reach"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (60, 2.000)]
)
def test_intervals_reach_as_far_as_the_tables_say(degrees: int, reach: float) -> None:
    steps = degrees + 1
    still = MeanAndVariance(np.array([5.0]), np.array([0.0]), steps)
    varies = MeanAndVariance(
        np.array([7.0]), np.array([float(steps)]), steps
    )  # the mean's error is 1
    low, high = difference_intervals(still, varies)
    assert high[0] - 2 == pytest.approx(reach, rel=2e-3)
    assert 2 - low[0] == pytest.approx(reach, rel=2e-3)


def test_means_and_variances_count_the_steps_without_anything() -> None:
    draw = np.random.default_rng(0)
    thing, step = draw.integers(0, 5, 200), draw.integers(-1, 4, 200)
    much = draw.integers(1, 50, 200)
    found = mean_and_variance_over_steps(
        AmountsPerStep(thing, np.where(step < 0, NO_SLICE, step), much), 6, 4
    )
    dense = np.zeros((6, 4))
    np.add.at(dense, (thing[step >= 0], step[step >= 0]), much[step >= 0])
    assert found.mean == pytest.approx(dense.mean(axis=1))
    assert found.variance == pytest.approx(dense.var(axis=1, ddof=1))
