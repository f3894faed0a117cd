"""The first recording is kept where its end has used up the time to hold the program."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")

from selftime.capture.recorder.held_time import HeldTime
from selftime.capture.recorder.recording_cycle import RecordingCycle
from selftime.capture.recorder.run_options import RunOptions
from selftime.capture.steps import RecorderWork, StepSource

if TYPE_CHECKING:
    from tests.capture.conftest import Outcome, Runner

pytestmark = pytest.mark.torch

MANY_OPERATORS = """
import time
import torch
from torch import nn

net = nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(40):
    with torch.profiler.record_function(f"number {{step}}"):
        x = torch.ones(8, 16)
        for _ in range({operators}):
            x = x * 1.0
    if step == {slow}:
        time.sleep(2)
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def recorded_steps(outcome: "Outcome") -> list[int]:
    return [int(row["name"].split()[1]) for row in outcome.rows("number ")]


@pytest.mark.timed
def test_a_step_whose_end_held_too_long_is_kept_with_its_shapes(record: "Runner") -> None:
    outcome = record(MANY_OPERATORS.format(operators=1_000, slow=-1), warmup=None, hold=0.02)

    assert outcome.facts["partial"] is None
    assert outcome.result["steps_recorded"] == 1
    assert recorded_steps(outcome) == [1]
    assert "left_out" not in outcome.facts["steps"]
    events = outcome.trace["traceEvents"]
    products = [event for event in events if event.get("name", "").startswith("aten::mul")]
    assert len(products) >= 1_000
    assert all(event["args"]["Input Dims"][0] == [8, 16] for event in products)


@pytest.mark.timed
def test_times_of_a_kept_step_are_those_of_one_that_is_recorded_without_details(
    record: "Runner",
) -> None:
    outcome = record(MANY_OPERATORS.format(operators=1_000, slow=-1), warmup=None, hold=0.02)

    steps = outcome.facts["steps"]
    assert steps["matched_share"] > 0.9
    assert len(steps["detailed_ns"]) == len(steps["profiled_ns"]) == 1


@pytest.mark.timed
def test_a_step_that_is_unlike_others_is_not_kept(record: "Runner") -> None:
    outcome = record(MANY_OPERATORS.format(operators=1_000, slow=1), warmup=None, hold=0.02)

    assert outcome.result["steps_recorded"] == 5  # what it held does not count
    assert min(recorded_steps(outcome)) > 1


def test_steps_that_are_asked_for_are_recorded(record: "Runner") -> None:
    outcome = record(MANY_OPERATORS.format(operators=1_000, slow=-1), warmup=4, hold=0.02)

    assert min(recorded_steps(outcome)) >= 4


def test_small_steps_are_recorded_again_once_they_are_steady(record: "Runner") -> None:
    outcome = record(MANY_OPERATORS.format(operators=10, slow=-1), warmup=None, hold=10)

    assert outcome.result["steps_recorded"] == 5
    assert min(recorded_steps(outcome)) > 1


@pytest.mark.parametrize(("held_ns", "first"), [(0, 1), (3_000_000_000, 2)])
def test_a_step_passes_before_the_recording_where_other_steps_used_up_the_time(
    held_ns: int, first: int
) -> None:
    held = HeldTime()
    held.ns = held_ns
    cycle = RecordingCycle(RunOptions(), StepSource.OPTIMIZER, RecorderWork(print))
    cycle.continue_after(held)
    states = []
    for _ in range(first):
        cycle.advance_step(1_000_000, None)
        states.append(cycle.recording)
    cycle.discard()
    assert states == [False] * (first - 1) + [True]
    assert held.ns > held_ns
