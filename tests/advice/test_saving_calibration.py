"""Intervals are as wide as promises were off."""

import json

import pytest
from calibrate import fitted, ratios

from selftime.advice.rules import RULES
from selftime.advice.savings.calibration import (
    CalibrationFactors,
    calibrate_saving,
    measured_calibration_factors,
)
from selftime.advice.savings.saving import SavingAmount

PROMISE = SavingAmount(
    step_ms=100.0, estimate_ms=20.0, low_ms=15.0, high_ms=25.0, upper_ms=40.0, method="replay"
)


def bounded(amount: SavingAmount, known: dict[str, CalibrationFactors]) -> SavingAmount:
    return calibrate_saving(amount, "slow_input", known, is_bounded=True)


def interval(amount: SavingAmount) -> tuple[float, float]:
    return amount.low_ms, amount.high_ms


def test_it_widens_to_what_was_measured_and_never_beyond_the_bound() -> None:
    assert interval(bounded(PROMISE, {"*": CalibrationFactors(0.5, 1.5, 30)})) == (10.0, 30.0)
    assert interval(bounded(PROMISE, {"*": CalibrationFactors(0.5, 9.0, 30)})) == (10.0, 40.0)


def test_a_bound_that_is_none_gives_way_up_to_the_step() -> None:
    wide = calibrate_saving(
        PROMISE, "slow_input", {"*": CalibrationFactors(0.5, 3.0, 30)}, is_bounded=False
    )
    assert interval(wide) == (10.0, 60.0)
    assert wide.upper_ms == 60.0
    whole = calibrate_saving(
        PROMISE, "slow_input", {"*": CalibrationFactors(0.5, 9.0, 30)}, is_bounded=False
    )
    assert whole.upper_ms == pytest.approx(100.0)
    small = calibrate_saving(
        PROMISE, "slow_input", {"*": CalibrationFactors(0.5, 1.1, 30)}, is_bounded=False
    )
    assert small.upper_ms == 40.0


def test_it_never_narrows_what_a_rule_leaves_open() -> None:
    assert interval(bounded(PROMISE, {"*": CalibrationFactors(0.9, 1.1, 30)})) == (15.0, 25.0)


def test_a_rule_with_enough_promises_has_its_own() -> None:
    known = {"*": CalibrationFactors(0.5, 1.5, 30), "slow_input": CalibrationFactors(0.6, 1.4, 10)}
    assert interval(bounded(PROMISE, known)) == (12.0, 28.0)
    known["slow_input"] = CalibrationFactors(0.6, 1.4, 9)
    assert interval(bounded(PROMISE, known)) == (10.0, 30.0)


@pytest.mark.parametrize("known", [{}, {"*": CalibrationFactors(0.1, 9.0, 9)}])
def test_too_few_promises_say_nothing(known: dict[str, CalibrationFactors]) -> None:
    assert bounded(PROMISE, known) == PROMISE


def line(achieved: float, *promised: float, low: float = 1.0) -> str:
    gone = [{"rule": "slow_input", "estimate_ms": estimate} for estimate in promised]
    found = {"saved_ms": achieved, "low_ms": low}
    return json.dumps({"format": "selftime.verification/1", "achieved": found, "gone": gone})


def test_only_repairs_of_one_promise_that_gave_something_count() -> None:
    lines = [line(9.0, 10.0), line(9.0, 10.0, 3.0), line(0.5, 10.0, low=-0.1), line(9.0)]
    assert list(ratios(lines)) == [("slow_input", 0.9)]


def test_other_files_are_refused() -> None:
    with pytest.raises(SystemExit, match="not a line of"):
        list(ratios(['{"format": "selftime.advice/1"}']))


def test_the_middle_of_the_ratios_is_taken() -> None:
    found = fitted([("a", ratio / 10) for ratio in range(11)])
    assert found == {"*": CalibrationFactors(0.1, 0.9, 11), "a": CalibrationFactors(0.1, 0.9, 11)}


def test_what_is_shipped_is_of_rules_that_there_are() -> None:
    assert set(measured_calibration_factors()) <= {"*", *RULES}
    assert all(0 <= f.low <= f.high for f in measured_calibration_factors().values())
