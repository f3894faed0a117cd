"""What a step takes, and the smallest saving that is worth a line."""

import pytest

from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.testing import sketch


@pytest.mark.parametrize(
    ("noise_ms", "least_ms"), [(0.0, 2.0), (0.1, 2.0), (1.0, 3.0), (9.0, 10.0)]
)
def test_the_threshold_is_a_share_of_the_step_or_what_it_varies_by(
    noise_ms: float, least_ms: float
) -> None:
    assert StepStatistics(100.0, noise_ms).least_significant_saving_ms() == pytest.approx(least_ms)


def test_the_threshold_itself_is_significant() -> None:
    assert StepStatistics(100.0).is_saving_worth_reporting(2.0)
    assert not StepStatistics(100.0).is_saving_worth_reporting(1.999)
    assert not StepStatistics(0.0).is_saving_worth_reporting(0.0)


def test_without_cost_of_recording_it_is_a_share_of_the_shorter_step() -> None:
    assert StepStatistics(100.0, measured_slowdown=2.0).is_unrecorded_saving_worth_reporting(1.0)
    assert not StepStatistics(100.0, measured_slowdown=2.0).is_unrecorded_saving_worth_reporting(
        0.999
    )


def test_why_a_saving_is_not_told() -> None:
    assert (
        StepStatistics(100.0).reason_saving_is_small("It waits.")
        == "It waits: saves less than 2 % of the step"
    )
    assert StepStatistics(100.0, 9.0).reason_saving_is_small("It waits") == (
        "It waits: the saving is within step-to-step variation"
    )


def test_averages_over_uneven_steps_are_put_in_terms_of_the_typical_one() -> None:
    assert StepStatistics(100.0, mean_ms=200.0).scaled_to_typical_step(30.0) == pytest.approx(15.0)
    assert StepStatistics(100.0).scaled_to_typical_step(30.0) == pytest.approx(30.0)


def test_what_else_varies_is_not_the_causes() -> None:
    noisy = StepStatistics(100.0, noise_ms=30.0)
    assert not noisy.is_saving_worth_reporting(5.0)
    assert noisy.with_noise(0.5).is_saving_worth_reporting(5.0)


STEPS = """
    mark 1 | ssssttttuuuu
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
"""


TIMES = (
    'facts = {{"overhead": {{"ratio": 1.1}}, '
    '"steps": {{"unprofiled_ns": [1, 1, 1], "profiled_ns": {}}}}}'
)


@pytest.mark.parametrize(
    ("more", "slowed", "inflated"),
    [
        ("", 1.0, 1.3),
        ("python 1 | ffffffffffff", 1.0, 1.7),
        ('facts = {"overhead": {"ratio": 2.5}}', 2.5, 1.0),
        ('facts = {"overhead": {"ratio": 0.9}}', 1.0, 1.0),
        (TIMES.format("[3, 3, 3]"), 3.0, 1.0),
        (TIMES.format("[1, 1, 1]"), 1.1, 1.0),
        ('facts = {"overhead": {"ratio": Infinity}}', 1.0, 1.3),
        ('facts = {"overhead": {"ratio": null}}', 1.0, 1.3),
    ],
)
def test_by_how_much_the_recorder_slowed_the_steps(
    more: str, slowed: float, inflated: float
) -> None:
    """Where nobody measured it, it may have been as much as elsewhere."""
    limits = step_statistics(sketch(STEPS + more))
    assert limits is not None
    assert (limits.measured_slowdown, limits.assumed_slowdown) == (slowed, inflated)
    assert limits.unrecorded_step_ms == pytest.approx(limits.step_ms / slowed)
