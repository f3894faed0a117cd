"""What is below the gate is checked, not reported."""

from dataclasses import replace

import numpy as np
import pytest

from selftime.advice import Checked, Finding, Fix, Saving, Where
from selftime.advice.gate import Gate, gate
from selftime.advice.replay import Cut, Scale
from selftime.intervals import union
from selftime.testing import sketch


def saving(estimate_ms: float, upper_ms: float | None = None) -> Finding:
    return Finding(
        title="It waits.",
        where=Where(),
        saving=Saving.of_step(100.0, estimate_ms, method="model", upper_ms=upper_ms),
        confidence="high",
        fix=Fix("Do not."),
    )


@pytest.mark.parametrize(
    ("noise_ms", "error_ms", "floor_ms"),
    [(0.0, 0.0, 2.0), (0.1, 0.2, 2.0), (1.0, 0.0, 3.0), (1.0, 2.0, 6.0)],
)
def test_the_floor_is_the_highest_of_three(
    noise_ms: float, error_ms: float, floor_ms: float
) -> None:
    assert Gate(100.0, noise_ms).floor_ms(error_ms) == pytest.approx(floor_ms)


def test_the_floor_itself_passes() -> None:
    assert Gate(100.0).passes(2.0)
    assert not Gate(100.0).passes(1.999)
    assert not Gate(0.0).passes(0.0)


def test_a_finding_above_the_floor_is_kept() -> None:
    finding = saving(2.0)
    assert Gate(100.0).judge(finding) == finding


def test_a_finding_without_a_number_has_no_gate_to_pass() -> None:
    finding = Finding(
        title="It waits.", where=Where(), saving=Saving(), confidence="low", fix=Fix("Do not.")
    )
    assert Gate(100.0).judge(finding) == finding


def test_a_finding_below_the_floor_was_checked() -> None:
    assert Gate(100.0).judge(saving(1.0, 1.5)) == Checked(
        "It waits: saves less than 2% of the step", 1.5
    )
    assert Gate(100.0, 9.0).judge(saving(3.0)) == Checked(
        "It waits: the saving is within step-to-step variation", 3.0
    )


def test_a_large_saving_is_told_though_the_steps_vary_by_more() -> None:
    told = Gate(100.0, noise_ms=30.0).judge(saving(20.0))
    assert isinstance(told, Finding)
    assert told.confidence == "low"
    assert ("step-to-step variation", 30.0) in [(e.metric, e.value) for e in told.evidence]


def test_savings_are_those_of_a_program_that_nobody_records() -> None:
    told = Gate(100.0, slowed=2.0).judge(saving(20.0, 30.0))
    assert isinstance(told, Finding)
    assert (told.saving.estimate_ms, told.saving.upper_ms) == (10.0, 30.0)
    assert told.saving.speedup == saving(20.0).saving.speedup
    assert told.confidence == "medium"


def test_a_promise_may_be_more_than_the_typical_step() -> None:
    """What strikes one step in many is no part of the typical one."""
    told = Gate(10.0, slowed=2.0).judge(saving(30.0, 40.0))
    assert isinstance(told, Finding)
    assert (told.saving.estimate_ms, told.saving.upper_ms) == (15.0, 15.0)


def test_averages_over_uneven_steps_are_put_in_terms_of_the_typical_one() -> None:
    assert Gate(100.0, mean_ms=200.0).typical(30.0) == pytest.approx(15.0)
    assert Gate(100.0).typical(30.0) == pytest.approx(30.0)


def test_what_else_varies_is_not_the_causes() -> None:
    noisy = Gate(100.0, noise_ms=30.0)
    assert isinstance(noisy.judge(saving(5.0)), Checked)
    assert isinstance(noisy.of_cause(0.5).judge(saving(5.0)), Finding)


STEPS = """
    mark 1 | ssssttttuuuu
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
"""


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ("", 1 / 1.3),
        ("python 1 | ffffffffffff", 1 / 1.7),
        ('facts = {"overhead": {"ratio": 1.0}}', 1.0),
    ],
)
def test_host_time_may_be_the_recorders_where_nobody_measured_it(more: str, left: float) -> None:
    """Device time is what it is: only savings of host time may shrink."""
    limits = gate(sketch(STEPS + more))
    assert limits is not None
    whole = union(np.array([0]), np.array([120_000]))
    for changes, share in (((Cut(whole),), left), ((Scale(np.array([0])),), 1.0)):
        judged = limits.judge(replace(saving_of(limits.step_ms / 2), changes=changes))
        assert isinstance(judged, Finding)
        assert judged.saving.low_ms == pytest.approx(share * limits.step_ms / 4)
        assert judged.saving.estimate_ms == pytest.approx(limits.step_ms / 2)


def saving_of(estimate_ms: float) -> Finding:
    told = Saving.of_step(4 * estimate_ms, estimate_ms, method="replay", low_ms=estimate_ms / 2)
    return replace(saving(estimate_ms), saving=told)
