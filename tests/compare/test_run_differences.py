"""Runs are held against runs by how runs vary, however many steps each has."""

import numpy as np
import pytest

from selftime.compare.run_differences import interval_of_runs, shift_between_runs


def test_fewer_than_three_earlier_runs_tell_nothing() -> None:
    assert shift_between_runs(np.array([1.0, 1.1]), np.array([9.0])) is None
    assert shift_between_runs(np.array([1.0, 1.1, 1.2]), np.zeros(0)) is None
    assert interval_of_runs(np.array([1.0, 1.1])) is None


def test_one_later_run_has_the_prediction_interval_of_the_earlier_ones() -> None:
    """Mean of logarithms 0, s = 0.1, n = 3: 4.3027 (t of 2 degrees) * 0.1 * sqrt(1 + 1 / 3)."""
    before = np.exp([-0.1, 0.0, 0.1])
    found = shift_between_runs(before, np.exp([0.2]))
    assert found is not None
    assert found.before == pytest.approx(1.0)
    assert found.after == pytest.approx(np.exp(0.2))
    reach = 4.302653 * 0.1 * np.sqrt(4 / 3)
    assert found.low == pytest.approx(np.exp(0.2 - reach) - 1, rel=1e-4)
    assert found.high == pytest.approx(np.exp(0.2 + reach) - 1, rel=1e-4)
    assert found.chance == pytest.approx(0.1127, abs=2e-3)  # t = 1.732 of 2 degrees


def test_values_of_zero_are_compared_as_they_are() -> None:
    found = shift_between_runs(np.array([0.0, 1.0, 2.0]), np.array([1.0]))
    assert found is not None
    assert (found.before, found.difference) == (1.0, 0.0)
    constant = shift_between_runs(np.zeros(3), np.array([1.0]))
    assert constant is not None
    assert constant.chance == 0.0


def test_few_unchanged_runs_are_called_slower_and_most_slow_ones_are_found() -> None:
    """Of runs that vary by 3 %, against five: the chance is the one that is stated."""
    draw = np.random.default_rng(0)
    noise = np.exp(0.03 * draw.standard_normal((400, 6)))
    found = [shift_between_runs(row[:5], row[5:]) for row in noise]
    assert (
        sum(one is not None and one.chance < 0.05 for one in found) <= 28
    )  # 5 % of 400, and chance
    slower = [shift_between_runs(row[:5], 1.3 * row[5:]) for row in noise]
    assert sum(one is not None and one.chance < 0.05 / 3 for one in slower) >= 380
