"""Tests the rule `frequent_checkpoints` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch

SAVED = "run | training 600 ms: checkpoint save 500 ms at train.py:30 main\n"
USUAL = "run | 9 training 100 ms\n"


def test_every_other_checkpoint_is_saved(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s\n" + 4 * (USUAL + SAVED))
    assert finding.saving.run_s == pytest.approx(1)
    assert finding.saving.run_low_s == pytest.approx(1)
    assert finding.saving.run_high_s == pytest.approx(2)
    assert (finding.where.file, finding.where.line) == ("train.py", 30)
    assert finding.evidence[0].value == 4


def test_a_checkpoint_within_an_evaluation_is_told(judge: Judge[Finding]) -> None:
    seen = "program 200 ms at train.py:20 main, checkpoint save 300 ms at train.py:30 main"
    drawn = f"run | training 600 ms: evaluation 500 ms, {seen}\n"
    [finding] = judge("run | before 1 s\n" + 4 * (USUAL + drawn))
    assert finding.evidence[1].value == pytest.approx(300)


def test_readings_that_are_hardly_longer_than_their_error_have_low_confidence(
    judge: Judge[Finding],
) -> None:
    short = SAVED.replace("600", "220").replace("500", "120")
    [finding] = judge("run | before 100 ms\n" + 2 * ("run | 4 training 100 ms\n" + short))
    assert finding.confidence == "low"


def test_what_is_read_is_no_checkpoint_that_is_written(rule: Rule) -> None:
    drawn = "run | before 1 s\n" + 4 * (USUAL + SAVED.replace(" save ", " load "))
    assert not [said for said in rule(sketch(drawn)) if isinstance(said, Finding)]
