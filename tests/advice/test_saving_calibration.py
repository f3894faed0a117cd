"""Intervals are as wide as promises were off."""

import json
from pathlib import Path

import pytest
from calibrate import Repair, between, chapters, fitted, left_out, repairs_of, within

from selftime.advice.bottleneck_catalogue import CATALOGUE_CHAPTERS
from selftime.advice.rules import RULES
from selftime.advice.savings.calibration import (
    CalibrationFactors,
    calibrate_saving,
    factors_by_rule,
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


@pytest.mark.parametrize(
    ("pairs", "chosen"), [((10, 10), "slow_input"), ((9, 10), "A"), ((9, 9), "*")]
)
def test_a_rule_has_its_own_factors_if_enough_else_its_chapters(
    pairs: tuple[int, int], chosen: str
) -> None:
    found = {
        "*": CalibrationFactors(0.5, 1.5, 30),
        "A": CalibrationFactors(0.6, 1.4, pairs[1]),
        "slow_input": CalibrationFactors(0.7, 1.3, pairs[0]),
    }
    of_rules = factors_by_rule(found, {"slow_input": "A", "loop_indexing": "D"})
    assert of_rules.get("slow_input", of_rules["*"]) == found[chosen]
    assert "loop_indexing" not in of_rules


def test_too_few_promises_say_nothing() -> None:
    few = factors_by_rule({"*": CalibrationFactors(0.1, 9.0, 9)}, {"slow_input": "A"})
    assert not few
    assert bounded(PROMISE, few) == PROMISE


def test_a_repair_that_loses_makes_the_lower_bound_a_loss() -> None:
    assert interval(bounded(PROMISE, {"*": CalibrationFactors(-0.2, 1.5, 30)})) == (-4.0, 30.0)


def repair(ratio: float, *, width: float = 0.1, rule: str = "slow_input") -> Repair:
    return Repair(rule, 1.0, 0.75, 1.6, ratio, ratio - width / 2, ratio + width / 2)


def line(gain: float, *promised: float, width: float = 1.0) -> str:
    gone = [
        {"rule": "slow_input", "estimate_ms": one, "low_ms": one / 2, "high_ms": 2 * one}
        for one in promised
    ]
    found = {"saved_ms": gain, "low_ms": gain - width / 2, "high_ms": gain + width / 2}
    return json.dumps({"format": "selftime.verification/1", "achieved": found, "gone": gone})


def test_repairs_of_one_finding_count_if_they_are_told_closely(tmp_path: Path) -> None:
    lines = [line(9.0, 10.0), line(9.0, 10.0, 3.0), line(-9.0, 10.0), line(9.0, 10.0, width=11.0)]
    (tmp_path / "kept.jsonl").write_text("\n".join(lines))
    assert [one.saved for one in repairs_of(tmp_path / "kept.jsonl")] == [9.0, -9.0]


def test_the_finding_that_was_repaired_goes_before_all_that_are_gone(tmp_path: Path) -> None:
    told = json.loads(line(30.0, 10.0, 20.0))
    told["repaired"] = {"promise": told["gone"][0], "saved_ms": 8.0, "low_ms": 7.0, "high_ms": 9.0}
    (tmp_path / "kept.jsonl").write_text(json.dumps(told))
    [found] = repairs_of(tmp_path / "kept.jsonl")
    assert (found.promised, found.saved) == (10.0, 8.0)


def test_a_table_of_repairs_is_read(tmp_path: Path) -> None:
    (tmp_path / "repairs.csv").write_text(
        "program,rule,promised,promised_low,promised_high,saved,saved_low,saved_high\n"
        "one,slow_input,10,7,16,9,8,10\nother,slow_input,10,7,16,9,,\n"
        "withdrawn,slow_input,,,,9,8,10\n"
    )
    assert list(repairs_of(tmp_path / "repairs.csv")) == [
        Repair("slow_input", 10.0, 7.0, 16.0, 9.0, 8.0, 10.0)
    ]


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "advice.jsonl").write_text('{"format": "selftime.advice/1"}')
    with pytest.raises(SystemExit, match="not a line of"):
        list(repairs_of(tmp_path / "advice.jsonl"))


def test_the_middle_of_the_ratios_is_taken() -> None:
    found = fitted((repair(ratio / 10) for ratio in range(11)), {"slow_input": "A"})
    middle = CalibrationFactors(0.1, 0.9, 11)
    assert found == {"*": middle, "A": middle, "slow_input": middle}


def test_intervals_are_counted() -> None:
    assert within([repair(0.7), repair(0.8), repair(1.5), repair(1.7)]) == (2, 4)


def test_what_factors_hold_by_construction_is_told_apart_from_what_they_hold_of_others() -> None:
    of = {"slow_input": "A"}
    repairs = [repair(part / 10) for part in range(11)]
    assert between(repairs, fitted(repairs, of), of) == 9
    assert left_out(repairs, of) == 7  # 0.1 and 0.9 lie outside the middle of the others
    assert between(repairs, {}, of) == 0


def test_what_is_shipped_is_fitted_to_the_table_of_repairs() -> None:
    repairs = list(repairs_of(Path(__file__).parents[2] / "corpus" / "repairs.csv"))
    found = fitted(repairs, chapters())
    assert measured_calibration_factors() == factors_by_rule(found, chapters())


def test_what_is_shipped_is_of_rules_that_there_are() -> None:
    factors = measured_calibration_factors()
    assert set(factors) <= {"*", *RULES}
    assert all(one.low <= one.high for one in factors.values())
    assert set(chapters().values()) <= set(CATALOGUE_CHAPTERS)
