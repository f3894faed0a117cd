"""Edges of `device_allocation` that its page does not draw."""

import pytest

from selftime.advice.base import Checked, Finding, Rule
from selftime.testing import Judge, sketch


def test_both_calls_of_a_line_are_one_finding(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.line == 9
    assert finding.count_per_step == 2.0
    assert finding.saving.estimate_ms == pytest.approx(6.0, abs=1.0)
    assert finding.changes


def test_one_in_many_steps_is_left_alone(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    once = drawing.replace("kfffmmm   kfffmmm   kfffmmm", "k         k      mm k")
    assert not judge(once)


def test_what_is_hidden_is_told_with_its_figure(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Checked)
    assert outcome.upper_ms == pytest.approx(0.0)
