"""Whether steps become slower over a run is told if it is beyond chance."""

import numpy as np
from tests.ledgers import MS, Step, run_of

from selftime.analysis.run.step_trend import step_trend
from selftime.run import Run


def test_steady_steps_have_no_trend() -> None:
    noise = np.random.default_rng(1).random(400)
    assert step_trend(run_of([Step(20 + ms) for ms in noise.tolist()])) is None
    assert step_trend(Run()) is None


def test_steps_that_become_slower_have_one() -> None:
    found = step_trend(run_of([Step(20 + 0.05 * number) for number in range(200)]))
    assert found is not None
    assert (found.kind, found.steps) == ("training", 200)
    assert abs(found.first_ns - 20.5 * MS) < MS
    assert abs(found.last_ns - 29.5 * MS) < MS
    assert 0.4 < found.change < 0.5


def test_steps_that_become_faster_have_one() -> None:
    found = step_trend(run_of([Step(30 - 0.05 * number) for number in range(200)]))
    assert found is not None
    assert found.change < -0.2


def test_slow_steps_at_the_end_are_no_trend() -> None:
    steps = [*[Step(20)] * 180, *[Step(400)] * 20]
    assert step_trend(run_of(steps)) is None


def test_a_few_slower_steps_in_the_middle_are_no_trend() -> None:
    steps = [*[Step(20)] * 80, *[Step(26)] * 40, *[Step(20)] * 80]
    assert step_trend(run_of(steps)) is None


def test_few_steps_tell_none() -> None:
    assert step_trend(run_of([Step(20.0 + number) for number in range(30)])) is None
