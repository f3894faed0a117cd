"""Student's tail, against values of published tables."""

import numpy as np
import pytest

from selftime.analysis.students_t import one_sided_t_test_p_value, student_t_quantile


@pytest.mark.parametrize(
    ("degrees", "t", "tail"),
    [(1, 6.314, 0.05), (2, 6.965, 0.01), (10, 2.764, 0.01), (30, 1.697, 0.05)],
)
def test_tails_are_those_of_the_tables(degrees: int, t: float, tail: float) -> None:
    values = np.linspace(-1, 1, degrees + 1)
    values = values / (values.std(ddof=1) / np.sqrt(values.size)) + t
    assert one_sided_t_test_p_value(values) == pytest.approx(tail, rel=2e-3)


@pytest.mark.parametrize(
    ("share", "degrees", "t"),
    [(0.975, 1, 12.706), (0.975, 2, 4.3027), (0.995, 4, 4.6041), (0.975, 30, 2.0423), (0.5, 7, 0)],
)
def test_quantiles_are_those_of_the_tables(share: float, degrees: int, t: float) -> None:
    assert student_t_quantile(share, degrees) == pytest.approx(t, rel=2e-4, abs=1e-9)


def test_of_one_value_nothing_is_told() -> None:
    assert one_sided_t_test_p_value(np.array([5.0])) == 1.0


def test_what_never_varies_is_sure() -> None:
    assert one_sided_t_test_p_value(np.full(3, 2.0)) == 0.0
    assert one_sided_t_test_p_value(np.full(3, -2.0)) == 1.0
