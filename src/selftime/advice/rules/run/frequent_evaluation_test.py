"""Tests the rule `frequent_evaluation` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

SEEN = "program 500 ms at train.py:40 validate"
EPOCH = f"""
    run | 9 training 100 ms
    run | training 600 ms: evaluation 500 ms, {SEEN}
"""


def test_every_other_evaluation_is_saved(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s" + 4 * EPOCH)
    assert finding.saving.run_s == pytest.approx(1)
    assert finding.saving.run_high_s == pytest.approx(1.5)
    assert finding.where.function == "validate"


def test_the_evaluation_after_the_last_step_counts(judge: Judge[Finding]) -> None:
    after = f"run | after 500 ms: evaluation 500 ms, {SEEN}"
    [finding] = judge("run | before 1 s" + EPOCH + after)
    assert finding.evidence[0].value == 2


def test_a_checkpoint_within_it_is_not_evaluation(judge: Judge[Finding]) -> None:
    seen = "program 250 ms at train.py:40 validate, checkpoint save 250 ms at train.py:50 main"
    [finding] = judge("run | before 100 ms" + 4 * EPOCH.replace(SEEN, seen))
    assert finding.evidence[1].value == pytest.approx(350, rel=0.01)
    assert finding.where.line == 40


def test_it_tells_how_often_it_was_where_that_is_little(rule: Rule) -> None:
    [outcome] = rule(sketch("run | before 9 s" + 2 * EPOCH))
    assert isinstance(outcome, Checked)
    assert "evaluates 2 times" in outcome.reason


def test_an_evaluation_of_many_calls_of_the_model_is_one(judge: Judge[Finding]) -> None:
    calls = f"""
        run | 40 inference 10 ms: evaluation 9 ms, {SEEN.replace("500", "9")}
    """
    [finding] = judge("run | before 100 ms" + calls + 3 * EPOCH + calls)
    assert finding.evidence[0].value == 5


def test_steps_of_training_with_an_evaluation_each_have_one_each(judge: Judge[Finding]) -> None:
    step = f"run | training 600 ms: evaluation 500 ms, {SEEN}\n"
    [finding] = judge("run | before 100 ms\n" + 4 * step)
    assert finding.evidence[0].value == 4


def test_calls_before_the_first_step_of_training_are_one_evaluation(judge: Judge[Finding]) -> None:
    calls = f"run | 40 before 10 ms: evaluation 9 ms, {SEEN.replace('500', '9')}\n"
    [finding] = judge("run | before 100 ms\n" + calls + 3 * EPOCH)
    assert finding.evidence[0].value == 4


def test_a_model_that_acts_in_evaluation_mode_is_not_evaluated(rule: Rule) -> None:
    moves = f"run | training 12 ms: evaluation 10 ms, {SEEN.replace('500', '10')}\n"
    rounds = 20 * (moves + 30 * "run | inference 10 ms: evaluation 9 ms\nrun | before 1 ms\n")
    [outcome] = rule(sketch("run | before 100 ms\n" + rounds))
    assert isinstance(outcome, Checked)
    assert "more often than the program makes steps" in outcome.reason
