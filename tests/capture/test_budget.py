"""How much of a program is recorded, by what one of its steps makes."""

import pytest

pytest.importorskip("torch")

from selftime.capture.recorder.budget import Budget
from selftime.capture.recorder.run_options import RunOptions

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("events", [1, 1_000, 10_000, 30_000, 60_000])
def test_the_end_of_a_recording_holds_the_program_no_longer_than_it_may(events: int) -> None:
    budget = Budget(RunOptions(active=5), events)
    assert budget.steps * budget.hold_ns <= 1e9
    assert (budget.steps + 1) * budget.hold_ns > 1e9 or budget.steps == 5


def test_one_step_is_recorded_though_it_holds_for_longer_and_that_is_said() -> None:
    budget = Budget(RunOptions(active=5), 1_000_000)
    assert budget.steps == 1
    told = budget.told() or ""
    assert "holds the program for about" in told
    assert told.endswith("so 1 of 5 steps is recorded; allow more with --hold")


def test_what_fits_needs_no_word() -> None:
    assert Budget(RunOptions(active=5), 1_000).told() is None


def test_fewer_steps_because_of_their_size_name_the_other_option() -> None:
    told = Budget(RunOptions(active=5, max_bytes=10_000_000), 10_000).told() or ""
    assert told.endswith("so 2 of 5 steps are recorded; allow more with --max-bytes")


def test_a_longer_hold_allows_more() -> None:
    assert Budget(RunOptions(active=5), 25_000).steps == 2
    assert Budget(RunOptions(active=5, hold=4), 25_000).steps == 5
