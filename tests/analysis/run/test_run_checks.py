"""Tests the check whether the recorded steps are like those of the run."""

from dataclasses import replace

import pytest
from tests.ledgers import EPOCH, MS, STARTUP, Step, run_of

from selftime.advice import advise
from selftime.testing import sketch

STEP = """
    mark 1 | ssssssssss
    cpu 1  | mmmmmmmmmm
    s = ProfilerStep#1
    m = aten::mm
"""


@pytest.mark.parametrize(
    ("steps", "around", "verdict"),
    [
        ("20 training 10 ms", [10, 10, 10], None),
        ("20 training 60 ms", [10, 10, 10], "degraded"),
        ("20 training 4 ms", [10, 10, 10], "degraded"),
        ("20 training 18 ms", [10, 10, 10], None),
        ("20 training 60 us", [0.02, 0.02, 0.02], None),
        ("9 training 1 ms\nrun | 11 training 30 ms", [1, 30, 1, 30, 1], None),
        ("20 training 60 ms", [], None),
    ],
)
def test_steps_that_do_not_stand_for_the_others_of_the_run(
    steps: str, around: list[float], verdict: str | None
) -> None:
    times = [int(ms * 1_000_000) for ms in around]
    facts = {"overhead": {"ratio": 1.0}, "steps": {"unprofiled_ns": times}}
    run = f"run | before 1 s\nrun | training 10 ms recorded\nrun | {steps}\n"
    trace = sketch(STEP + run, metadata={"selftime": facts})
    found = dict(trace.view("health").select("check", "verdict").rows())
    assert found.get("steps of the run") == verdict


@pytest.mark.parametrize(("first_ms", "verdict"), [(400, "unusable"), (3, None)])
def test_recorded_steps_that_are_parts_of_a_step_are_no_steps(
    first_ms: int, verdict: str | None
) -> None:
    """Three calls of a model, 4 ms each, from 20 ms after the start of the run's first step."""
    legend = "column = 40 us\na = ProfilerStep#2\nb = ProfilerStep#3\nc = ProfilerStep#4\n"
    lane = "".join(f" {letter * 99}" for letter in "abc")
    run = run_of([Step(first_ms), *[Step(12)] * 9])
    origin = EPOCH + STARTUP + 20 * MS
    trace = replace(sketch(f"{legend}mark 1 | {lane}"), origin=origin, run=run)
    found = dict(trace.view("health").select("check", "verdict").rows())
    assert found.get("parts of a step") == verdict
    assert (advise(trace).health.verdict == "unusable") == (verdict is not None)
