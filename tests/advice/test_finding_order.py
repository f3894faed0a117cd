"""Findings stand in the order of what their fixes are expected to save."""

import pytest

from selftime.advice import Finding, Fix, Saving, Where
from selftime.advice.finding_order import CONFIDENCE_WEIGHTS, expected_saving_ms, rank_findings
from selftime.advice.rule_outcomes import Confidence, FixSemantics


def finding(
    rule: str,
    estimate: float | None,
    confidence: Confidence = "high",
    semantics: FixSemantics = "neutral",
) -> Finding:
    saving = Saving(upper_ms=90.0)
    if estimate is not None:
        saving = Saving.of_step(100.0, estimate, method="model", high_ms=90.0, upper_ms=90.0)
    return Finding(
        rule=rule,
        title=rule,
        where=Where("train.py", 3),
        saving=saving,
        confidence=confidence,
        semantics=semantics,
        fix=Fix("Change it."),
    )


def order(*findings: Finding) -> list[str]:
    told = [found.rule for found in rank_findings(list(findings))]
    assert told == [found.rule for found in rank_findings(list(reversed(findings)))]
    return told


def test_nothing_has_no_order() -> None:
    assert rank_findings([]) == ()


def test_the_larger_saving_stands_first() -> None:
    assert order(finding("small", 3.0), finding("large", 30.0)) == ["large", "small"]


def test_a_saving_counts_less_the_less_sure_it_is() -> None:
    assert CONFIDENCE_WEIGHTS["high"] > CONFIDENCE_WEIGHTS["medium"] > CONFIDENCE_WEIGHTS["low"] > 0
    guessed, sure = finding("guessed", 15.0, "low"), finding("sure", 10.0)
    assert order(guessed, sure) == ["sure", "guessed"]


@pytest.mark.parametrize(
    ("confidence", "expected"), [("high", 10.0), ("medium", 8.0), ("low", 5.0)]
)
def test_what_is_expected_of_a_finding(confidence: Confidence, expected: float) -> None:
    assert expected_saving_ms(finding("it", 10.0, confidence)) == pytest.approx(expected)
    assert expected_saving_ms(finding("it", None, confidence)) is None


def test_even_a_guess_stands_first_if_it_is_worth_much_more() -> None:
    assert order(finding("guessed", 50.0, "low"), finding("sure", 10.0)) == ["guessed", "sure"]


@pytest.mark.parametrize("semantics", ["numerics", "training"])
def test_what_a_fix_changes_in_the_results_is_no_part_of_the_order(semantics: FixSemantics) -> None:
    found = [finding("same", 10.0), finding("other", 20.0, semantics=semantics)]
    assert order(*found) == ["other", "same"]


def test_findings_without_an_estimate_come_last() -> None:
    none, least = finding("none", None), finding("least", 0.5, "low", "training")
    assert order(none, least) == ["least", "none"]


def test_equal_findings_stand_in_the_order_of_their_rules() -> None:
    assert order(finding("b", 5.0), finding("a", 5.0), finding("c", None)) == ["a", "b", "c"]
