"""Tests the rule `explicit_synchronize` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge


def test_a_wait_within_an_operator_is_not_the_programs_own(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [drawing] = rule.drawings("Fires on")
    [finding] = judge(drawing)
    assert finding.covers == ("B9",)
    within = drawing.replace("a        ", "abbbbbbbb").replace("a = ", "b = aten::mm\na = ")
    assert "abbbbbbbb" in within
    assert not judge(within)
