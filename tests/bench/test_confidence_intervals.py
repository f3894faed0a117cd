"""Whether the intervals hold the truth as often as they say, though one looks again and again."""

from collections.abc import Callable
from itertools import product
from math import expm1

import numpy as np
import pytest

from selftime.array_types import Floats
from selftime.bench.confidence_intervals import (
    MIN_ROUNDS_FOR_INTERVAL,
    Inspections,
    inspection_rounds,
    pseudo_median,
)

Draw = Callable[[np.random.Generator, int], Floats]

NOISES: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(0, 0.02, n),
    "Student's with 2 degrees of freedom": lambda rng, n: 0.01 * rng.standard_t(2, n),
    "exponential": lambda rng, n: rng.exponential(0.02, n),
    "hiccups": lambda rng, n: (
        rng.normal(0, 0.01, n) + (rng.random(n) < 0.15) * rng.exponential(0.5, n)
    ),
}
SERIES = 600


def differences(rng: np.random.Generator, draw: Draw, rounds: int, drift: float) -> Floats:
    """What a machine gives whose speed drifts, by a walk and steadily; 0 is the truth.

    Runs are A B, B A, A B and so on, as the rounds make them.
    """
    slow = np.cumsum(rng.normal(0, drift, 2 * rounds)) + np.arange(2 * rounds) * drift / 2
    logs = draw(rng, 2 * rounds) + slow
    first, second = logs[0::2], logs[1::2]
    return np.where(np.arange(rounds) % 2 == 0, first - second, second - first)


def stopped(sample: Floats, precision: float) -> tuple[float, float]:
    """The interval at which a bench would have stopped."""
    looks = Inspections(sample.size)
    for count in inspection_rounds(sample.size):
        [found] = looks.confidence_intervals(sample[:count], is_last=count == sample.size)
        if found is not None and expm1((found[1] - found[0]) / 2) <= precision:
            break
    assert found is not None
    return found


@pytest.mark.parametrize("drift", [0.0, 0.01])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.sweep(4)
def test_the_interval_at_the_stop_holds_the_truth(noise: str, drift: float) -> None:
    rng = np.random.default_rng(7)
    held = claimed = 0
    for _ in range(SERIES):
        low, high = stopped(differences(rng, NOISES[noise], 32, drift) + 0.1, 0.02)
        held += low <= 0.1 <= high
        low, high = stopped(differences(rng, NOISES[noise], 32, drift), 0.02)
        claimed += not low <= 0 <= high
    assert held >= 0.95 * SERIES
    assert claimed <= 0.05 * SERIES


def test_a_look_after_every_round_would_claim_too_often() -> None:
    """What the sharing of the chance is for: each look with a 95 % interval of its own."""
    rng = np.random.default_rng(8)
    claimed = 0
    for _ in range(SERIES):
        sample = rng.normal(0, 0.02, 32)
        for count in range(MIN_ROUNDS_FOR_INTERVAL, sample.size + 1):
            [found] = Inspections(count).confidence_intervals(sample[:count], is_last=True)
            if found is not None and expm1((found[1] - found[0]) / 2) <= 0.01:
                break
        assert found is not None
        claimed += not found[0] <= 0 <= found[1]
    assert claimed > 0.05 * SERIES


@pytest.mark.parametrize("size", [6, 8, 11])
def test_the_chance_is_that_of_all_ways_to_set_signs(size: int) -> None:
    """The interval leaves 0 out for exactly the shares of signs that are rarer than 5 %."""
    steps = np.exp2(
        np.arange(size, dtype=np.float64)
    )  # whatever signs they get, no two means of pairs are equal
    left_out = 0
    for signs in product((-1.0, 1.0), repeat=size):
        [found] = Inspections(size).confidence_intervals(steps * np.array(signs), is_last=True)
        assert found is not None
        left_out += not found[0] <= 0 <= found[1]
    assert 0 < left_out / 2**size <= 0.05


def test_fewer_than_six_tell_no_interval() -> None:
    for size in range(1, 9):
        [found] = Inspections(32).confidence_intervals(np.arange(float(size)), is_last=True)
        assert (found is None) == (size < MIN_ROUNDS_FOR_INTERVAL)


def test_looks_never_use_more_than_five_percent() -> None:
    for most in (6, 8, 20, 32, 100, 512):
        looks = Inspections(most)
        for count in inspection_rounds(most):
            looks.confidence_intervals(np.arange(float(count)), is_last=count == most)
        assert 0.03 < looks.used_error_probability <= 0.05


def test_looks_are_at_even_rounds_and_the_last_at_the_most() -> None:
    assert inspection_rounds(32) == (8, 12, 16, 24, 32)
    assert inspection_rounds(6) == (6,)
    assert inspection_rounds(50) == (8, 12, 16, 24, 32, 48, 50)


def test_the_middle_is_little_moved_by_a_hiccup() -> None:
    sample = np.array([1.0, 1.1, 0.9, 1.0, 1.05, 50.0])
    assert pseudo_median(sample) == pytest.approx(1.05, abs=0.05)


def test_exchanged_programs_have_the_opposite_interval() -> None:
    sample = np.random.default_rng(3).normal(0.3, 1, 20)
    [one], [other] = (
        Inspections(20).confidence_intervals(s, is_last=True) for s in (sample, -sample)
    )
    assert one is not None
    assert other == pytest.approx((-one[1], -one[0]))
