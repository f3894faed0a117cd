from typing import TYPE_CHECKING

import pytest

from selftime.capture.recorder.steadiness import MOST_STEPS, is_steady

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

MS = 1_000_000


@pytest.mark.parametrize(
    "durations",
    [[], [10], [100, 50], [100, 50, 30, 20], [10, 10, 40], [10, 9, 40]],
    ids=["nothing", "alone", "faster", "faster and faster", "compiled again", "a late surprise"],
)
def test_steps_that_still_change_are_let_pass(durations: list[int]) -> None:
    assert not is_steady([duration * MS for duration in durations])


@pytest.mark.parametrize(
    "durations",
    [[10, 10], [900, 100, 50, 52], [10, 40, 11], [10, 9, 40, 10]],
    ids=["alike", "after a warm-up", "after a pause", "after a surprise"],
)
def test_a_step_like_the_shortest_before_it_is_steady(durations: list[int]) -> None:
    assert is_steady([duration * MS for duration in durations])


def test_a_program_that_never_settles_is_not_waited_for() -> None:
    halving = [2 ** (33 - step) for step in range(MOST_STEPS)]

    assert not is_steady(halving[:-1])
    assert is_steady(halving)
    assert is_steady([31_000 * MS])


@pytest.mark.torch
@pytest.mark.timed
def test_recording_begins_after_the_warm_up(record: "Runner") -> None:
    outcome = record(
        """
        import time
        import torch
        from torch import nn

        net = nn.Linear(16, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(40):
            with torch.profiler.record_function(f"number {step}"):
                time.sleep(1 / 2**step if step < 5 else 0.01)
            net(torch.randn(8, 16)).sum().backward()
            optimizer.step()
        """,
        warmup=None,
    )

    assert outcome.result["steps_recorded"] == 5
    assert outcome.facts["partial"] is None
    first, *_ = (int(row["name"].split()[1]) for row in outcome.rows("number "))
    assert first >= 6  # those before are each half as long as the one before
    assert len(outcome.facts["steps"]["unprofiled_ns"]) >= 2 + 5
