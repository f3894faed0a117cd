"""Tests the rule `slow_compiled_code` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_the_finding_names_the_module_and_estimates_no_saving(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert "Encoder" in finding.title
    assert finding.saving.method == "none"


def test_another_module_of_the_same_class_is_not_compared(
    rule: Rule, judge: Judge[Finding]
) -> None:
    drawing = rule.drawings("Fires on")[0].replace(" ff", " gg")
    assert not judge(f"{drawing}\ng = nn.Module: Encoder_1")


def test_without_uncompiled_calls_the_outcome_is_unknown(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Unknown)
    assert "without `torch.compile`" in outcome.needs


def test_overlapping_compiled_and_uncompiled_times_give_no_finding(
    rule: Rule, judge: Judge[Finding]
) -> None:
    drawing = rule.drawings("Fires on")[0].replace(" ff ", " fffffff ").replace(" ff", " fffffff")
    assert not judge(drawing)
