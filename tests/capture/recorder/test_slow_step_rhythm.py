"""Which steps are expected to be slow, from those that were."""

from random import Random

import pytest

from selftime.capture.recorder.slow_step_rhythm import (
    MAX_REMEMBERED,
    ExpectedStep,
    SlowStep,
    SlowStepRhythm,
)

MS = 1_000_000


def rhythm_of(*slow: int | tuple[int, int], observed_from: int = 0) -> SlowStepRhythm:
    """The rhythm after steps of these numbers were slow, by 500 ms or by as many as beside them."""
    rhythm = SlowStepRhythm()
    rhythm.observed_from = observed_from
    for one in slow:
        number, ms = one if isinstance(one, tuple) else (one, 500)
        rhythm.add(SlowStep(number, ms * MS))
    return rhythm


def expected(rhythm: SlowStepRhythm) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in rhythm.expected]


@pytest.mark.parametrize(
    ("slow", "next_steps"),
    [
        ((), []),
        ((20, 40), []),
        ((20, 40, 60), [(80, 80)]),
        ((19, 39, 59, 79), [(99, 99)]),
        ((50, 150, 251), [(351, 352)]),  # about equal
        ((5, 17, 80), []),
        ((4, 6, 8, 10, 12), [(16, 16)]),  # of each second step, each fourth: usual ones between
        ((1, 2, 3, 4), []),
    ],
)
def test_three_at_equal_distances_predict_the_next(
    slow: tuple[int, ...], next_steps: list[tuple[int, int]]
) -> None:
    assert expected(rhythm_of(*slow)) == next_steps


def test_what_did_not_come_before_needs_one_more() -> None:
    assert expected(rhythm_of(100, 120, 140)) == []
    assert expected(rhythm_of(100, 120, 140, 160)) == [(180, 180)]
    assert expected(rhythm_of(100, 120, 140, observed_from=90)) == [(160, 160)]


def test_slow_steps_of_other_extent_are_another_rhythm() -> None:
    logged = [(number, 60) for number in (20, 40, 60, 80)]
    saved = [(number, 900) for number in (50, 100, 150)]
    assert expected(rhythm_of(*sorted([*logged, *saved]))) == [(200, 200)]
    mixed = rhythm_of(*sorted([*logged, *saved[:1]]), (90, 60))
    assert expected(mixed) == [(100, 100)]


def test_two_rhythms_are_expected_side_by_side() -> None:
    slow = [(number, 60) for number in range(30, 210, 30)]
    slow += [(number, 900) for number in (70, 140, 209)]
    both = rhythm_of(*sorted(slow), observed_from=10)
    assert expected(both) == [(210, 210), (278, 279)]


def test_a_recorded_rhythm_is_expected_no_more() -> None:
    rhythm = rhythm_of(20, 40, 60)
    rhythm.ignore(rhythm.expected[0])
    for number in (80, 100, 120, 140):
        rhythm.add(SlowStep(number, 500 * MS))
    assert rhythm.expected == ()
    for number in (150, 200, 250):
        rhythm.add(SlowStep(number, 5_000 * MS))
    rhythm.add(SlowStep(300, 5_000 * MS))
    assert expected(rhythm) == [(350, 350)]


@pytest.mark.parametrize("count", [10, 32, 60])
@pytest.mark.sweep(1)
def test_slow_steps_at_random_hardly_ever_have_a_rhythm(count: int) -> None:
    random = Random(7)  # noqa: S311 - no secret
    samples = [sorted(random.sample(range(10, 400), count)) for _ in range(100)]
    assert sum(bool(expected(rhythm_of(*numbers))) for numbers in samples) <= 8


def test_what_is_remembered_is_bounded() -> None:
    rhythm = rhythm_of(*range(0, 40_000, 40))
    assert expected(rhythm) == [(40_000, 40_000)]
    assert len(rhythm._slow) == MAX_REMEMBERED


def test_a_step_is_of_a_rhythm_at_its_distances() -> None:
    one = ExpectedStep(99, 101, SlowStep(50, 500 * MS))
    assert one.is_rhythm_of(SlowStep(50, 400 * MS))
    assert one.is_rhythm_of(SlowStep(149, 1_400 * MS))
    assert one.is_rhythm_of(SlowStep(152, 500 * MS))
    assert not one.is_rhythm_of(SlowStep(120, 500 * MS))
    assert not one.is_rhythm_of(SlowStep(100, 5_000 * MS))
