"""Edges of `slow_compiled_code` that its page does not draw."""

from selftime.advice.base import Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_it_names_the_module_without_a_number(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert "Encoder" in finding.title
    assert finding.saving.method == "none"


def test_another_module_of_the_class_is_no_measure(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0].replace(" ff", " gg")
    assert not judge(f"{drawing}\ng = nn.Module: Encoder_1")


def test_what_is_missing_is_said(rule: Rule) -> None:
    [outcome] = rule(sketch(rule.drawings("Silent on")[1]))
    assert isinstance(outcome, Unknown)
    assert "without `torch.compile`" in outcome.needs


def test_times_that_overlap_tell_nothing(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0].replace(" ff ", " fffffff ").replace(" ff", " fffffff")
    assert not judge(drawing)
