"""Edges of `unused_device_graphs` that its page does not draw."""

from selftime.advice.base import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_nobody_knows_what_was_asked_for_without_facts(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[1]
    bare = "\n".join(line for line in drawing.splitlines() if not line.startswith("facts"))
    [outcome] = rule(sketch(bare))
    assert isinstance(outcome, Unknown)


def test_a_device_that_is_busy_gains_nothing(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[1]
    drawing = drawing.replace("k   k   k k   k   k k   k   k", "k         y         k", 1)
    drawing = drawing.replace(" k   k   k k   k   k k   k   k", " kkkkkkkkkxxxxxxxxxxkkkkkkkkkk")
    [outcome] = rule(sketch(f"{drawing}\ny = cudaLaunchKernel\nx = other; launched_by = y"))
    assert isinstance(outcome, Checked)


def test_what_is_recorded_once_is_recorded_for_good(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    assert judge(drawing)
    assert not judge(drawing.replace("bbk   l   bbk   l   bbk", "bbk   l     k   l     k"))
