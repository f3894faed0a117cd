"""Tests the rule `unused_device_graphs` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_without_compiler_facts_the_outcome_is_unknown(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[1]
    bare = "\n".join(line for line in drawing.splitlines() if not line.startswith("facts"))
    [outcome] = rule(sketch(bare))
    assert isinstance(outcome, Unknown)


def test_a_busy_device_gives_no_finding(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[1]
    drawing = drawing.replace("k   k   k k   k   k k   k   k", "k         y         k", 1)
    drawing = drawing.replace(" k   k   k k   k   k k   k   k", " kkkkkkkkkxxxxxxxxxxkkkkkkkkkk")
    [outcome] = rule(sketch(f"{drawing}\ny = cudaLaunchKernel\nx = other; launched_by = y"))
    assert isinstance(outcome, Checked)


def test_graphs_captured_in_a_single_step_are_not_reported(
    rule: Rule, judge: Judge[Finding]
) -> None:
    drawing = rule.drawings("Fires on")[0]
    assert judge(drawing)
    assert not judge(drawing.replace("bbk   l   bbk   l   bbk", "bbk   l     k   l     k"))
