"""Student's tail, against values of published tables."""

import numpy as np
import pytest

from selftime.views.accounts.chance import above_zero


@pytest.mark.parametrize(
    ("degrees", "t", "tail"),
    [(1, 6.314, 0.05), (2, 6.965, 0.01), (10, 2.764, 0.01), (30, 1.697, 0.05)],
)
def test_tails_are_those_of_the_tables(degrees: int, t: float, tail: float) -> None:
    values = np.linspace(-1, 1, degrees + 1)
    values = values / (values.std(ddof=1) / np.sqrt(values.size)) + t
    assert above_zero(values) == pytest.approx(tail, rel=2e-3)


def test_of_one_value_nothing_is_told() -> None:
    assert above_zero(np.array([5.0])) == 1.0


def test_what_never_varies_is_sure() -> None:
    assert above_zero(np.full(3, 2.0)) == 0.0
    assert above_zero(np.full(3, -2.0)) == 1.0
