"""From the claim of a rule to the saving that is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from selftime.advice import Checked, Evidence, Finding, Fix, Outcome, Saving, Unknown, Where
from selftime.advice.replay import Change, CutHostTime, RemoveWaits, ScaleDeviceWork
from selftime.advice.savings.claims import (
    REPLAYED_SAVING_RANGE,
    UNSURE_SAVING_RANGE,
    ComputedSavingClaim,
    ModelledClaim,
    RemovalClaim,
    SavingClaim,
    SavingRange,
    UpperBoundClaim,
)
from selftime.advice.savings.estimates import (
    estimated_saving_of_recorded_step,
    without_recording_cost,
)
from selftime.advice.savings.saving_from_claim import outcome_with_saving
from selftime.advice.step_statistics import step_statistics
from selftime.intervals import union
from selftime.testing import sketch
from selftime.trace import Trace

STEPS = """
    column = 10 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaabbb aaaaaabbb aaaaaabbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
"""
"""Steps of 100 ms: 60 in `a`, 30 in `b`, 10 in neither."""
KNOWN = 'facts = {"overhead": {"ratio": 1.0}}'
TWICE = 'facts = {"overhead": {"ratio": 2.0}}'
UNEVEN = """
    column = 10 ms
    mark 1 | ssssssssssttttttttuuuuuuuuuuuuvvvvvvvvvvwwwwwwwwwwww
    cpu 1  | aaaaaabbb aaaaaaa aaaaaaaaaaa aaaaaabbb aaaaaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
"""
"""Steps of 80 to 120 ms."""


def finding(claim: SavingClaim | None, **more: Any) -> Finding:
    told: dict[str, Any] = {"where": Where(), "confidence": "high", "fix": Fix("Do not."), **more}
    return Finding(title="It waits.", claim=claim, **told)


def told(claim: SavingClaim | None, drawing: str = STEPS + KNOWN, **more: Any) -> Outcome:
    return outcome_with_saving(sketch(drawing), finding(claim, **more))


def saving(claim: SavingClaim | None, drawing: str = STEPS + KNOWN) -> Saving:
    outcome = told(claim, drawing)
    assert isinstance(outcome, Finding), outcome
    return outcome.saving


def interval(one: Saving) -> tuple[float | None, ...]:
    """Its ends, estimate and bound, to a micro second."""
    times = (one.low_ms, one.estimate_ms, one.high_ms, one.upper_ms)
    return tuple(None if time is None else round(time, 3) for time in times)


def time_in(letter: str, keep: float = 0.0, trace: Trace | None = None) -> CutHostTime:
    slices = (trace or sketch(STEPS)).slices
    found = slices.filter(slices["name"] == letter)
    begin = found["start"].to_numpy()
    return CutHostTime(union(begin, begin + found["duration"].to_numpy()), keep)


A, B = time_in("a"), time_in("b")
HALF = time_in("a", 0.5)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (RemovalClaim((HALF,)), (22.5, 30.0, 37.5, 60.0)),
        (RemovalClaim((A,)), (45.0, 60.0, 60.0, 60.0)),
        (RemovalClaim((HALF,), largest_changes=(HALF,)), (22.5, 30.0, 30.0, 30.0)),
        (RemovalClaim((HALF,), interval=UNSURE_SAVING_RANGE), (0.0, 30.0, 37.5, 60.0)),
        (RemovalClaim((HALF,), interval=SavingRange(1.0, None)), (30.0, 30.0, 60.0, 60.0)),
        (RemovalClaim((HALF,), worst_case_changes=(time_in("a", 0.8),)), (12.0, 30.0, 37.5, 60.0)),
        (
            RemovalClaim(
                (HALF,),
                worst_case_changes=(time_in("a", 0.8),),
                worst_case_share=REPLAYED_SAVING_RANGE.low,
            ),
            (9.0, 30.0, 37.5, 60.0),
        ),
        (RemovalClaim((HALF,), best_case_changes=(time_in("a", 0.2),)), (22.5, 30.0, 48.0, 60.0)),
        (RemovalClaim((HALF, B)), (45.0, 60.0, 75.0, 90.0)),
    ],
)
def test_what_a_fix_removes_is_replayed_and_is_as_sure_as_the_rule(
    claim: RemovalClaim, expected: tuple[float, ...]
) -> None:
    found = saving(claim)
    assert interval(found) == expected
    assert found.method == "replay"
    assert found.speedup == pytest.approx(100 / (100 - expected[1]))


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (ModelledClaim(20.0, 40.0), (15.0, 20.0, 25.0, 40.0)),
        (ModelledClaim(20.0, 22.0), (15.0, 20.0, 22.0, 22.0)),
        (ModelledClaim(20.0, 10.0), (15.0, 20.0, 20.0, 20.0)),
        (ModelledClaim(20.0, 22.0, may_exceed_max=True), (15.0, 20.0, 25.0, 25.0)),
        (ModelledClaim(20.0, 40.0, low_ms=12.0, high_ms=35.0), (12.0, 20.0, 35.0, 40.0)),
        (ModelledClaim(20.0, 40.0, low_ms=12.0, low_share=0.5), (6.0, 20.0, 25.0, 40.0)),
        (ModelledClaim(20.0, 40.0, interval=SavingRange(0.5, None)), (10.0, 20.0, 40.0, 40.0)),
    ],
)
def test_what_a_rule_models_is_as_sure_as_it_says(
    claim: ModelledClaim, expected: tuple[float, ...]
) -> None:
    assert interval(saving(claim)) == expected


def test_of_some_fixes_only_a_bound_is_known() -> None:
    assert interval(saving(UpperBoundClaim(30.0))) == (None, None, None, 30.0)
    assert saving(UpperBoundClaim(30.0), STEPS + TWICE).upper_ms == pytest.approx(15.0)
    assert saving(UpperBoundClaim(30.0, is_slowed=False), STEPS + TWICE).upper_ms == 30.0
    assert interval(saving(None)) == (None, None, None, None)


def test_a_rule_of_another_package_may_give_its_saving() -> None:
    given = Saving.of_step(100.0, 0.5, method="model")
    for outcome in (told(None, saving=given), told(ComputedSavingClaim(given))):
        assert isinstance(outcome, Finding)
        assert outcome.saving.estimate_ms == 0.5


def test_a_claim_is_replayed_once() -> None:
    trace, claim = sketch(STEPS), RemovalClaim((HALF,))
    assert estimated_saving_of_recorded_step(trace, claim) is estimated_saving_of_recorded_step(
        trace, claim
    )


def test_a_finding_says_what_it_changes() -> None:
    for claim in (RemovalClaim((HALF,)), ModelledClaim(20.0, 40.0, changes=(HALF,))):
        outcome = told(claim)
        assert isinstance(outcome, Finding)
        assert outcome.changes == (HALF,)


def test_savings_are_those_of_a_program_that_nobody_records() -> None:
    """The bound stays what was recorded, up to the whole step."""
    outcome = told(ModelledClaim(20.0, 30.0), STEPS + TWICE)
    assert isinstance(outcome, Finding)
    assert interval(outcome.saving) == (7.5, 10.0, 12.5, 30.0)
    assert outcome.saving.speedup == pytest.approx(1.25)
    assert outcome.confidence == "medium"
    assert [e.metric for e in outcome.evidence] == ["recording overhead"]
    assert interval(saving(ModelledClaim(20.0, 80.0), STEPS + TWICE))[3] == 50.0


def test_what_no_recorder_slows_takes_as_long_without_one() -> None:
    times = ModelledClaim(20.0, 30.0, is_slowed=False)
    assert interval(saving(times, STEPS + TWICE)) == (15.0, 20.0, 25.0, 30.0)
    assert saving(times, STEPS + TWICE).speedup == pytest.approx(50 / 30)
    of_all = ModelledClaim(20.0, 20.0, step_ms=120.0, is_slowed=False)
    assert saving(of_all, STEPS + TWICE).speedup == pytest.approx((50 + 20) / 50)


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ((A,), 1 / 1.3),
        ((RemoveWaits(np.array([0])),), 1.0),
        ((ScaleDeviceWork(np.array([0])),), 1.0),
        ((), 1.0),
    ],
)
def test_host_time_may_be_the_recorders_where_nobody_measured_it(
    changes: tuple[Change, ...], share: float
) -> None:
    """Device time is what it is: only savings of host time may shrink."""
    trace = sketch(STEPS)
    limits = step_statistics(trace)
    assert limits is not None
    claim = ModelledClaim(20.0, 40.0, changes=changes)
    found = without_recording_cost(limits, claim, estimated_saving_of_recorded_step(trace, claim))
    assert found.low_ms == pytest.approx(share * 15.0)
    assert found.estimate_ms == pytest.approx(20.0)


def test_what_is_small_was_checked() -> None:
    assert isinstance(told(ModelledClaim(2.0, 3.0)), Finding)
    small = told(ModelledClaim(1.0, 1.5))
    assert small == Checked("It waits: saves less than 2 % of the step", upper_ms=1.5)


def test_what_varies_by_more_was_checked_unless_it_is_large() -> None:
    trace = sketch(UNEVEN + KNOWN)
    limits = step_statistics(trace)
    assert limits is not None
    assert limits.noise_ms > 4
    checked = outcome_with_saving(trace, finding(ModelledClaim(5.0, 9.0)))
    assert isinstance(checked, Checked)
    assert checked.reason == "It waits: the saving is within step-to-step variation"
    large = outcome_with_saving(trace, finding(ModelledClaim(20.0, 30.0)))
    assert isinstance(large, Finding)
    assert large.confidence == "low"
    assert Evidence("step-to-step variation", limits.noise_ms, "ms") in large.evidence
    steady = outcome_with_saving(trace, finding(ModelledClaim(5.0, 9.0, noise_ms=0.0)))
    assert isinstance(steady, Finding)
    assert steady.confidence == "high"


@pytest.mark.parametrize(
    ("drawing", "recorded_ms", "is_slowed", "upper_ms"),
    [
        (STEPS + TWICE, None, True, None),
        (STEPS + TWICE, 0.0, True, 0.0),
        (STEPS + TWICE, 80.0, True, 40.0),
        (STEPS + TWICE, 20.0, False, 20.0),
        (STEPS + TWICE, 80.0, False, 50.0),
        (STEPS + TWICE, 120.0, True, 50.0),
        (STEPS + KNOWN, 80.0, True, 80.0),
        (STEPS, 80.0, True, 80.0),
    ],
)
def test_a_checked_cause_is_bounded_in_a_step_without_profiler(
    drawing: str, recorded_ms: float | None, upper_ms: float | None, *, is_slowed: bool
) -> None:
    """A recording that doubles the step doubles the host's times in it, and no device's."""
    checked = Checked("Free", recorded_ms, is_slowed=is_slowed)
    outcome = outcome_with_saving(sketch(drawing), checked)
    assert outcome == replace(checked, upper_ms=upper_ms)


def test_without_a_step_the_bound_of_a_checked_cause_is_unknown() -> None:
    assert outcome_with_saving(Trace(), Checked("Free", 1.0)) == Checked("Free", 1.0)


def test_what_is_unknown_stays_as_it_is() -> None:
    assert outcome_with_saving(sketch(STEPS), Unknown("stacks")) == Unknown("stacks")


@pytest.mark.parametrize(
    ("change", "upper_ms"),
    [
        (CutHostTime(union([0], [60_000_000])), 4.0),
        (ScaleDeviceWork(np.array([0])), 8.0),
    ],
)
def test_a_finding_that_saves_little_is_bounded_as_a_checked_cause(
    change: Change, upper_ms: float
) -> None:
    small = ModelledClaim(0.5, 8.0, changes=(change,))
    outcome = told(small, STEPS + TWICE)
    assert isinstance(outcome, Checked)
    assert outcome.upper_ms == pytest.approx(upper_ms)
