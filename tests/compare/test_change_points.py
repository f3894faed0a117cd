"""Changes of level are found at their place, and none in noise."""

import numpy as np
import pytest

from selftime.compare.change_points import change_points


def found(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> list[int]:
    return [one.index for one in change_points(values)]


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 40, [1.0, 2.0, 1.0, 2.0, 1.0]])
def test_too_few_or_constant_values_have_no_change(values: list[float]) -> None:
    assert not found(np.array(values))


def test_of_flat_noisy_series_hardly_one_has_a_change() -> None:
    draw = np.random.default_rng(0)
    noisy = [50 * np.exp(0.05 * draw.standard_normal(25)) for _ in range(20)]
    assert not any(map(found, noisy))


@pytest.mark.parametrize("at", [4, 20, 36])
def test_a_change_is_found_where_it_is(at: int) -> None:
    values = 50 * np.exp(0.03 * np.random.default_rng(at).standard_normal(40))
    values[at:] *= 1.3
    [index] = found(values)
    assert abs(index - at) <= 1


def test_two_changes_are_found_and_the_answer_is_the_same_each_time() -> None:
    values = 50 * np.exp(0.02 * np.random.default_rng(1).standard_normal(40))
    values[12:25] *= 1.2
    assert found(values) == found(values) == [12, 25]
