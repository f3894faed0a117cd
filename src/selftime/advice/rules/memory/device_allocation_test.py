"""Tests the rule `device_allocation` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch


def test_both_calls_of_a_line_are_one_finding(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.where.line == 9
    assert finding.count_per_step == 2.0
    assert finding.saving.estimate_ms == pytest.approx(6.0, abs=1.0)
    assert finding.changes


def test_allocations_in_a_few_steps_are_not_reported(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    once = drawing.replace("kfffmmm   kfffmmm   kfffmmm", "k         k      mm k")
    assert not judge(once)


def test_hidden_allocations_are_checked_with_a_saving_of_0_ms(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Checked)
    assert outcome.upper_ms == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, "unset PYTORCH_NO_CUDA_MEMORY_CACHING"),
        ({}, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
    ],
)
def test_a_cache_that_is_off_is_the_reason(
    rule: Rule, environment: dict[str, str], code: str
) -> None:
    metadata = {"selftime": {"settings": {"environment": environment}}}
    [finding] = rule(sketch(rule.drawings("Fires on")[0], metadata=metadata))
    assert isinstance(finding, Finding)
    assert finding.fix.code == code
    assert "Look whether" not in finding.fix.text
